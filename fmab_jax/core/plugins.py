"""Files of plug-ins: imports, and digests of their source.

A changed plug-in is another algorithm, and so is one with a changed helper: a module in the
plug-in's folder that its text imports. Helpers of helpers do not count.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar, NamedTuple

import jax

from fmab_jax.errors import Refusal, describe_error, is_user_error, locate_error


class Named:
    """A class that options name."""

    name: ClassVar[str]


class Source(NamedTuple):
    """An imported plug-in file, for processes that cannot read the file.

    Attributes:
        name: Name of the module, with a digest of the content and of its helpers.
        path: Path of the file on this machine.
        content: Content of the file.
        helpers: Name and content of each helper.
    """

    name: str
    path: str
    content: bytes
    helpers: tuple[tuple[str, bytes], ...] = ()


_sources: dict[str, Source] = {}
# Contents of executed helpers by name; the files may have changed since.
_executed: dict[str, bytes] = {}
# Modules that users named as plug-ins, by name.
_modules: dict[str, ModuleType] = {}


@contextlib.contextmanager
def errors_as(refusal: Callable[[BaseException, str], Refusal]) -> Iterator[None]:
    """Raises a refusal in place of an error of a user's code.

    A `Refusal` passes unchanged, and so do errors of the machine.

    Args:
        refusal: Builds the refusal from the error and a text of its reason and place.
    """
    try:
        yield
    except (Refusal, MemoryError, jax.errors.JaxRuntimeError):
        raise
    except BaseException as error:
        if not is_user_error(error):
            raise
        raise refusal(error, describe_error(error, 160) + locate_error(error)) from error


def foreign_refused(
    field: str, value: object, allowed: str, remedy: str = "mend it"
) -> contextlib.AbstractContextManager[None]:
    """Converts errors of a plug-in's code to refusals; see `errors_as`."""
    return errors_as(lambda _, why: Refusal(field, value, allowed, f"{remedy} ({why})"))


def defined_in(
    module: ModuleType, kind: type | tuple[type, ...], *, is_named: bool = True
) -> Iterator[Any]:
    """Yields the subclasses that a module defines: those with a name, or those without."""
    # A class may have two names in the module.
    for owner in dict.fromkeys(x for x in vars(module).values() if isinstance(x, type)):
        if issubclass(owner, kind) and owner.__module__ == module.__name__:
            if bool(vars(owner).get("name")) == is_named:
                yield owner


def file_of(owner: type) -> str | None:
    """Returns the file that defines a class, or None."""
    return getattr(sys.modules.get(owner.__module__), "__file__", None)


def plugin_sources() -> list[Source]:
    """Returns the plug-in files that this process has imported, in order."""
    return list(_sources.values())


def import_sources(sources: Iterable[Source]) -> None:
    """Imports plug-in files of another process under the same names, each once.

    Classes that the other process pickled can then be unpickled. Their helpers are imported, too.
    """
    for source in sources:
        if source.name not in sys.modules:
            _execute(source)


def plugin_modules() -> list[ModuleType]:
    """Returns the plug-ins that this process has imported, in order."""
    files = [sys.modules[name] for name in _sources if name in sys.modules]
    return [*files, *_modules.values()]


def forget_plugin(module: ModuleType) -> None:
    """Removes a refused plug-in from the registries."""
    for registry in (_sources, _modules):
        for name in [name for name in registry if sys.modules.get(name) is module]:
            del registry[name]


def imported(path: Path) -> ModuleType:
    """Imports a file, once for each content of the file and its helpers."""
    content, place = path.read_bytes(), path.resolve()
    contents = _read_helpers(str(place), content)
    helpers = tuple((name, contents[name]) for name in contents if _is_helper(name, place))
    digest = hashlib.sha256(bytes(place) + content + repr(helpers).encode()).hexdigest()[:12]
    name = f"fmab_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest}"
    return sys.modules.get(name) or _execute(Source(name, str(place), content, helpers))


def imported_module(name: str) -> ModuleType:
    """Imports a module by its dotted name."""
    _modules[name] = importlib.import_module(name)
    return _modules[name]


def _is_helper(name: str, plugin: Path) -> bool:
    """Tells whether a module in a plug-in's folder is the only one of its name."""
    file = getattr(sys.modules.get(name), "__file__", None)
    helper_file = str(plugin.with_name(f"{name}.py"))
    return name not in sys.modules or name in _executed or file == helper_file


def _execute(source: Source) -> ModuleType:
    """Executes a plug-in's helpers in the order of their imports, and then its file."""
    # Helpers may import each other, so one change reloads all.
    is_unchanged = all(n in sys.modules and _executed.get(n) == text for n, text in source.helpers)
    pending = {} if is_unchanged else dict(source.helpers)

    def execute(name: str, path: str, content: bytes) -> ModuleType:
        for helper in sorted(_imported_names(content)):
            if helper in pending:
                helper_path = os.path.join(os.path.dirname(source.path), f"{helper}.py")
                _executed[helper] = pending.pop(helper)
                execute(helper, helper_path, _executed[helper])
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            exec(compile(content, path, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    module = execute(source.name, source.path, source.content)
    _sources[source.name] = source
    return module


def _read_helpers(path: str, content: bytes, package: str = "") -> dict[str, bytes]:
    """Reads the modules in a file's folder that its text imports: content by name."""
    contents = dict[str, bytes]()
    for name in sorted(_imported_names(content, package)):
        file = Path(path).with_name(f"{name}.py")
        if file != Path(path) and file.is_file():
            contents[name] = file.read_bytes()
    return contents


def _imported_names(content: bytes, package: str = "") -> set[str]:
    """Returns the modules that a text imports anywhere, as named in its package."""
    names = set[str]()
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level <= 1:
            parts = [package] * node.level + [node.module or ""]
            base = ".".join(part for part in parts if part)
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    if package:
        names = {x.removeprefix(f"{package}.") for x in names if x.startswith(f"{package}.")}
    return {name for name in names if name.isidentifier()}


def plugin_of(error: BaseException) -> str:
    """Returns the file of the plug-in or helper that raised an error; "" for none."""
    modules = [*_sources, *_executed, *_modules]
    plugin_files = {getattr(sys.modules.get(name), "__file__", None) for name in modules}
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((file for file in reversed(files) if file in plugin_files), "")


def source_digest(owner: type) -> str:
    """Returns a hash of the source of a user's class; "" for a class of this package.

    It includes helpers of the file. A class without source is hashed by its compiled code.
    """
    # Type checkers take a class with fields to be unhashable.
    return _source_digest(typing.cast(Hashable, owner))


@functools.cache
def _source_digest(owner: type) -> str:
    digest = hashlib.sha256()
    helpers: dict[str, bytes] = {}
    trusted_packages = ("builtins", "fmab_jax", "abc", "typing")
    owners = [x for x in owner.__mro__ if x.__module__.partition(".")[0] not in trusted_packages]
    for base in owners:
        try:
            module = sys.modules[base.__module__]
            text = _read_source(module).encode()
            digest.update(text)
        except (OSError, TypeError, KeyError):
            for name, value in sorted(vars(base).items()):
                digest.update(f"{name}={_describe_value(value)};".encode())
            continue
        if source := _sources.get(module.__name__):
            helpers |= dict(source.helpers)
        elif file := getattr(module, "__file__", None):
            helpers |= _read_helpers(file, text, getattr(module, "__package__", None) or "")
    # A moved folder keeps its digest.
    for name in sorted(helpers):
        digest.update(f"\n{name}.py\n".encode() + helpers[name])
    return digest.hexdigest()[:12] if owners else ""


def code_digest(*parts: object) -> str:
    """Returns a hash of functions and their modules, and of texts.

    It includes the closures and defaults of a function.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(_describe_value(part).encode())
        closure = [cell.cell_contents for cell in getattr(part, "__closure__", None) or ()]
        closure.append(getattr(part, "__defaults__", None))
        digest.update(repr([_describe_value(x) for x in closure]).encode())
        module = sys.modules.get(getattr(part, "__module__", None) or "")
        with contextlib.suppress(OSError, TypeError):  # no source
            if module is not None and not module.__name__.startswith("fmab_jax."):
                digest.update(_read_source(module).encode())
    return digest.hexdigest()[:12]


def _read_source(module: ModuleType) -> str:
    """Returns the source of a module, as executed if that is known."""
    if source := _sources.get(module.__name__):
        text = importlib.util.decode_source(source.content)
        return text if text.endswith("\n") else text + "\n"
    return inspect.getsource(module)


def _describe_value(value: object) -> str:
    """Returns a text of a function's code or of a value that is equal in every process."""
    value = getattr(value, "fget", getattr(value, "__func__", value))
    code = value if isinstance(value, CodeType) else getattr(value, "__code__", None)
    if code is not None:
        return (
            f"{code.co_code.hex()} {code.co_names} {[_describe_value(c) for c in code.co_consts]}"
        )
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
