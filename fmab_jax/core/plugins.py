"""Files of plug-ins: how they are imported, and the digest of their source.

A changed plug-in is another algorithm, and so is one with a changed helper: a module that lies in
the plug-in's own folder and that its text imports. Helpers of helpers do not count.
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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import jax

from fmab_jax.errors import Refusal, describe_error, is_user_error, locate_error


class Source(NamedTuple):
    """A plug-in file as it was imported, for processes that do not see the file.

    Attributes:
        name: The module's; it has a digest of the content and of its helpers.
        path: Where the file lies here.
        content: Of the file.
        helpers: Name and content of each helper.
    """

    name: str
    path: str
    content: bytes
    helpers: tuple[tuple[str, bytes], ...] = ()


_sources: dict[str, Source] = {}
# Helpers by name, as they were executed; the files may have changed since.
_executed: dict[str, bytes] = {}
# Modules that users named as plug-ins, by name.
_named: dict[str, ModuleType] = {}


@contextlib.contextmanager
def errors_as(refusal: Callable[[BaseException, str], Refusal]) -> Iterator[None]:
    """Raises a refusal in place of what somebody else's code raises.

    A `Refusal` stays as it is, and so does what the machine is to blame for.

    Args:
        refusal: Makes it, of the error and of its reason and place in words.
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
    field: str, value: Any, allowed: str, remedy: str = "mend it"
) -> contextlib.AbstractContextManager[None]:
    """Refuses what a plug-in's code raises, with its reason; see `errors_as`."""
    return errors_as(lambda _, why: Refusal(field, value, allowed, f"{remedy} ({why})"))


def defined_in(module: Any, kind: Any, *, named: bool = True) -> Iterator[Any]:
    """Yields the subclasses that a module defines and that have a name, or those that have none."""
    # A class that has two names in the module is one class.
    for owner in dict.fromkeys(x for x in vars(module).values() if isinstance(x, type)):
        if issubclass(owner, kind) and owner.__module__ == module.__name__:
            if bool(vars(owner).get("name")) == named:
                yield owner


def file_of(owner: type) -> str | None:
    """Returns the file that defines a class; None where there is none."""
    return getattr(sys.modules.get(owner.__module__), "__file__", None)


def plugin_sources() -> list[Source]:
    """Returns the plug-in files that this process has imported, in order."""
    return list(_sources.values())


def import_sources(sources: Iterable[Source]) -> None:
    """Imports plug-in files of another process under the names they have there, each once.

    Classes pickled there can then be unpickled here. Their helpers are those of there, too.
    """
    for source in sources:
        if source.name not in sys.modules:
            _execute(source)


def plugin_modules() -> list[ModuleType]:
    """Returns the plug-ins that this process has imported, in order."""
    files = [sys.modules[name] for name in _sources if name in sys.modules]
    return [*files, *_named.values()]


def forget_plugin(module: ModuleType) -> None:
    """Has a plug-in that was refused count as none."""
    for known in (_sources, _named):
        for name in [name for name in known if sys.modules.get(name) is module]:
            del known[name]


def imported(path: Path) -> ModuleType:
    """Imports a file, once for each content of it and of its helpers."""
    content, place = path.read_bytes(), path.resolve()
    beside = _helpers(str(place), content)
    helpers = tuple((name, beside[name]) for name in beside if _is_helper(name, place))
    digest = hashlib.sha256(bytes(place) + content + repr(helpers).encode()).hexdigest()[:12]
    name = f"fmab_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest}"
    return sys.modules.get(name) or _execute(Source(name, str(place), content, helpers))


def imported_module(name: str) -> ModuleType:
    """Imports a module by its dotted name."""
    _named[name] = importlib.import_module(name)
    return _named[name]


def _is_helper(name: str, plugin: Path) -> bool:
    """Tells whether a module beside a plug-in is what its name means here: no other one has it."""
    file = getattr(sys.modules.get(name), "__file__", None)
    beside = str(plugin.with_name(f"{name}.py"))
    return name not in sys.modules or name in _executed or file == beside


def _execute(source: Source) -> ModuleType:
    """Executes a plug-in's helpers, each after those that it imports itself, and then its file."""
    # All anew if one has changed: they may import each other.
    same = all(n in sys.modules and _executed.get(n) == text for n, text in source.helpers)
    waiting = {} if same else dict(source.helpers)

    def execute(name: str, path: str, content: bytes) -> ModuleType:
        for helper in sorted(_imported_names(content)):
            if helper in waiting:
                beside = os.path.join(os.path.dirname(source.path), f"{helper}.py")
                _executed[helper] = waiting.pop(helper)
                execute(helper, beside, _executed[helper])
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


def _helpers(path: str, content: bytes, package: str = "") -> dict[str, bytes]:
    """Returns the modules in a file's own folder that its text imports: content by name."""
    found = dict[str, bytes]()
    for name in sorted(_imported_names(content, package)):
        file = Path(path).with_name(f"{name}.py")
        if file != Path(path) and file.is_file():
            found[name] = file.read_bytes()
    return found


def _imported_names(content: bytes, package: str = "") -> set[str]:
    """Returns the modules that a text imports, wherever it says so, as named in its package."""
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
    """Returns the plug-in file, or a helper of one, in which an error arose; "" for none."""
    modules = [*_sources, *_executed, *_named]
    theirs = {getattr(sys.modules.get(name), "__file__", None) for name in modules}
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((file for file in reversed(files) if file in theirs), "")


def source_digest(owner: type) -> str:
    """Returns a hash of the source of a class that is not this package's; "" for this package's.

    Helpers of the file count. Of a class whose source cannot be found, the compiled code stands for
    it.
    """
    # The cast is for type checkers, which take a class with fields to be unhashable.
    return _source_digest(typing.cast(Any, owner))


@functools.cache
def _source_digest(owner: type) -> str:
    whole = hashlib.sha256()
    helpers: dict[str, bytes] = {}
    known = ("builtins", "fmab_jax", "abc", "typing")
    owners = [x for x in owner.__mro__ if x.__module__.partition(".")[0] not in known]
    for each in owners:
        try:
            module = sys.modules[each.__module__]
            text = _text(module).encode()
            whole.update(text)
        except (OSError, TypeError, KeyError):
            for name, value in sorted(vars(each).items()):
                whole.update(f"{name}={_stated(value)};".encode())
            continue
        if source := _sources.get(module.__name__):
            helpers |= dict(source.helpers)
        elif file := getattr(module, "__file__", None):
            helpers |= _helpers(file, text, getattr(module, "__package__", None) or "")
    # Only names: a folder that was moved has the same digest.
    for name in sorted(helpers):
        whole.update(f"\n{name}.py\n".encode() + helpers[name])
    return whole.hexdigest()[:12] if owners else ""


def code_digest(*parts: Any) -> str:
    """Returns a hash of functions, and of the modules that they are from; and of texts.

    What a function closes over, and its defaults, count as well.
    """
    whole = hashlib.sha256()
    for part in parts:
        whole.update(_stated(part).encode())
        closed = [cell.cell_contents for cell in getattr(part, "__closure__", None) or ()]
        closed.append(getattr(part, "__defaults__", None))
        whole.update(repr([_stated(x) for x in closed]).encode())
        module = sys.modules.get(getattr(part, "__module__", None) or "")
        with contextlib.suppress(OSError, TypeError):  # no source
            if module is not None and not module.__name__.startswith("fmab_jax."):
                whole.update(_text(module).encode())
    return whole.hexdigest()[:12]


def _text(module: ModuleType) -> str:
    """Returns the source of a module, as it was executed where that is known."""
    if source := _sources.get(module.__name__):
        text = importlib.util.decode_source(source.content)
        return text if text.endswith("\n") else text + "\n"
    return inspect.getsource(module)


def _stated(value: Any) -> str:
    """Returns what a function does, or a value is, the same in every process."""
    value = getattr(value, "fget", getattr(value, "__func__", value))
    code = value if isinstance(value, CodeType) else getattr(value, "__code__", None)
    if code is not None:
        return f"{code.co_code.hex()} {code.co_names} {[_stated(c) for c in code.co_consts]}"
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
