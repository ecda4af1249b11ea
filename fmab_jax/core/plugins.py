"""Files of plug-ins: imports, and digests of their source.

A changed plug-in is another one. So is one with a changed helper: a module of its folder, or of its
package, that it reaches by import. One rule holds for every kind of part.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import hashlib
import importlib.abc
import importlib.util
import inspect
import re
import sys
import sysconfig
import traceback
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from fmab_jax.errors import Refusal, describe_error, is_user_error, locate_error


class Named:
    """A class that options name."""

    name: ClassVar[str]


class Helper(NamedTuple):
    """A module that a plug-in reaches by import.

    Attributes:
        name: Dotted name.
        path: Path of the file on the machine that read it.
        content: Content of the file.
    """

    name: str
    path: str
    content: bytes


class Source(NamedTuple):
    """An imported plug-in file, for processes that cannot read the file.

    Attributes:
        name: Name of the module, with a digest of the content and of its helpers.
        path: Path of the file on the machine that read it.
        content: Content of the file.
        helpers: Its helpers, by name.
    """

    name: str
    path: str
    content: bytes
    helpers: tuple[Helper, ...] = ()


# Packages whose version a store states, and Python's own: no part of a plug-in's identity.
_LIBRARIES = (
    "abc",
    "builtins",
    "fmab_jax",
    "functools",
    "jax",
    "jaxlib",
    "math",
    "numpy",
    "operator",
    "typing",
)
_sources: dict[str, Source] = {}
# Helpers by name, as imported; the files may have changed since.
_helpers: dict[str, Helper] = {}
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

    Classes that the other process pickled can then be unpickled.
    """
    for name, path, content, helpers in sources:
        if name not in sys.modules:
            _execute(Source(name, path, content, tuple(Helper(*helper) for helper in helpers)))


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
    reached = _reach_modules(place.parent, content)
    helpers = tuple(
        helper for helper in reached if _is_helper(helper) and helper.path != str(place)
    )
    contents = tuple((helper.name, helper.content) for helper in helpers)
    digest = hashlib.sha256(bytes(place) + content + repr(contents).encode()).hexdigest()[:12]
    name = f"fmab_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest}"
    return sys.modules.get(name) or _execute(Source(name, str(place), content, helpers))


def imported_module(name: str) -> ModuleType:
    """Imports a module by its dotted name."""
    _modules[name] = importlib.import_module(name)
    return _modules[name]


def _is_helper(helper: Helper) -> bool:
    """Tells whether the module in a plug-in's folder is the only one of its name."""
    file = getattr(sys.modules.get(helper.name), "__file__", None)
    return helper.name not in sys.modules or helper.name in _helpers or file == helper.path


class _Loader(importlib.abc.SourceLoader):
    """Loads a module from its content, so that its digest is that of what runs."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path, self.content = path, content

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_data(self, path: str | bytes) -> bytes:
        return self.content


class _Finder(importlib.abc.MetaPathFinder):
    """Finds helpers, also where a process has no file of theirs."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        helper = _helpers.get(fullname)
        return None if helper is None else _state_module(fullname, helper.path, helper.content)


def _state_module(name: str, path: str, content: bytes) -> ModuleSpec:
    spec = importlib.util.spec_from_file_location(name, path, loader=_Loader(path, content))
    assert spec is not None
    return spec


def _execute(source: Source) -> ModuleType:
    """Executes a plug-in's file; its helpers are imported by it."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    # Helpers may import each other, so one change reloads all.
    if any(_helpers.get(helper.name) != helper for helper in source.helpers):
        for helper in source.helpers:
            sys.modules.pop(helper.name, None)
            _helpers[helper.name] = helper
    spec = _state_module(source.name, source.path, source.content)
    module = sys.modules[source.name] = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[source.name]
        raise
    _sources[source.name] = source
    return module


def _reach_modules(root: Path, content: bytes, package: str = "") -> list[Helper]:
    """Returns the modules below a folder that a text reaches by import, by name.

    Args:
        root: The folder of the file, or that of its outermost package.
        content: The text.
        package: Dotted name of the package of the file; only its modules count then.
    """
    # In a folder of installed packages, every import of a package would count.
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    has_packages = bool(package) or str(root) not in installed
    reached: dict[str, Helper] = {}
    pending = [(content, package)]
    while pending:
        for name in sorted(_list_imports(*pending.pop())):
            outermost, *inner = name.split(".")
            file = root.joinpath(outermost, *inner)
            if name in reached or outermost in _LIBRARIES:
                continue
            if package and outermost != package.partition(".")[0]:
                continue
            if file.with_name(f"{file.name}.py").is_file() and (has_packages or not inner):
                file, within = file.with_name(f"{file.name}.py"), ".".join((outermost, *inner)[:-1])
            elif has_packages and (file / "__init__.py").is_file():
                file, within = file / "__init__.py", name
            else:
                continue
            reached[name] = Helper(name, str(file), file.read_bytes())
            pending.append((reached[name].content, within))
    return [reached[name] for name in sorted(reached)]


def _list_imports(content: bytes, package: str) -> set[str]:
    """Returns the dotted names that a text of a package imports anywhere, and their packages."""
    names = set[str]()
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parts, *([base] if base else [])])
            # An imported name may be a module.
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    parts_of = [name.split(".") for name in names if name and not name.startswith(".")]
    return {".".join(parts[: i + 1]) for parts in parts_of for i in range(len(parts))}


def plugin_of(error: BaseException) -> str:
    """Returns the file of the plug-in or helper that raised an error; "" for none."""
    modules = [*_sources, *_helpers, *_modules]
    plugin_files = {getattr(sys.modules.get(name), "__file__", None) for name in modules}
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((file for file in reversed(files) if file in plugin_files), "")


def code_of(*parts: object) -> str:
    """Returns a hash of the source of all users' classes in some parts; "" for none.

    Args:
        *parts: Objects, such as an algorithm; fields of dataclasses are parts as well, such as the
            mechanism of an algorithm.
    """
    digests = [digest for owner in _collect_classes(parts) if (digest := source_digest(owner))]
    if len(digests) < 2:
        return "".join(digests)
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:12]


def _collect_classes(parts: Iterable[object]) -> list[type]:
    """Returns the classes of dataclasses, and of those in their fields, each once."""
    classes: dict[type, None] = {}
    for part in parts:
        if isinstance(part, tuple):
            classes |= dict.fromkeys(_collect_classes(part))
        elif dataclasses.is_dataclass(part) and not isinstance(part, type):
            classes[type(part)] = None
            values = (getattr(part, field.name) for field in dataclasses.fields(part))
            classes |= dict.fromkeys(_collect_classes(values))
    return list(classes)


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
    owners = [x for x in owner.__mro__ if x.__module__.partition(".")[0] not in _LIBRARIES]
    for base in owners:
        try:
            text, own_helpers = _read_module(sys.modules[base.__module__])
        except (OSError, TypeError, KeyError):
            for name, value in sorted(vars(base).items()):
                digest.update(f"{name}={_describe_value(value)};".encode())
                digest.update(_describe_globals(value, base.__module__).encode())
            continue
        digest.update(text)
        helpers |= own_helpers
    digest.update(_describe_helpers(helpers))
    return digest.hexdigest()[:12] if owners else ""


def code_digest(*parts: object) -> str:
    """Returns a hash of functions, their modules with helpers, and of texts.

    It includes the closures and defaults of a function.
    """
    digest = hashlib.sha256()
    for part in parts:
        while isinstance(part, functools.partial):
            digest.update(repr((part.args, sorted(part.keywords.items()))).encode())
            part = part.func
        part = inspect.unwrap(part) if callable(part) else part  # of jax.jit
        digest.update(_describe_value(part).encode())
        closure = [cell.cell_contents for cell in getattr(part, "__closure__", None) or ()]
        closure.append(getattr(part, "__defaults__", None))
        digest.update(repr([_describe_value(x) for x in closure]).encode())
        name = getattr(part, "__module__", None) or ""
        if name in sys.modules and name.partition(".")[0] not in _LIBRARIES:
            try:
                text, helpers = _read_module(sys.modules[name])
                digest.update(text + _describe_helpers(helpers))
            except (OSError, TypeError):  # no source
                own = inspect.getattr_static(type(part), "__call__", None)
                for function in (part, own):
                    digest.update(_describe_globals(function, name).encode())
                digest.update(_describe_value(own).encode())
    return digest.hexdigest()[:12]


def _read_module(module: ModuleType) -> tuple[bytes, dict[str, bytes]]:
    """Returns the source of a module, as executed if that is known, and its helpers by name.

    Raises:
        OSError: If it has no source.
        TypeError: If it has no file.
    """
    package = getattr(module, "__package__", None) or ""
    if source := _sources.get(module.__name__):
        content, helpers = source.content, source.helpers
    else:
        helper = _helpers.get(module.__name__)
        content = helper.content if helper else inspect.getsource(module).encode()
        file = inspect.getfile(module)
        depth = module.__name__.count(".") + (Path(file).name == "__init__.py")
        root = Path(file).parents[depth if package else 0]
        reached = _reach_modules(root, content, package)
        helpers = tuple(_helpers.get(each.name, each) for each in reached)
    text = importlib.util.decode_source(content)
    return (text if text.endswith("\n") else text + "\n").encode(), {
        helper.name: helper.content for helper in helpers
    }


def _describe_helpers(helpers: dict[str, bytes]) -> bytes:
    """Returns names and contents; a moved folder keeps them."""
    return b"".join(f"\n{name}.py\n".encode() + helpers[name] for name in sorted(helpers))


def _describe_globals(function: object, module: str, known: frozenset[str] = frozenset()) -> str:
    """Returns a text of what a function of a notebook reads outside itself."""
    function = getattr(function, "fget", getattr(function, "__func__", function))
    if not isinstance(function, FunctionType):
        return ""
    texts = []
    for name in sorted(_list_names(function.__code__) - known):
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType) and value.__module__ == module:
            inner = _describe_globals(value, module, known | {name})
            texts.append(f"{name}={_describe_value(value)};{inner}")
        elif value is not None and not callable(value) and not isinstance(value, ModuleType):
            texts.append(f"{name}={_describe_value(value)};")
    return "".join(texts)


def _list_names(code: CodeType) -> set[str]:
    """Returns the names that code and the functions in it read."""
    inner = (_list_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*inner)


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
    if isinstance(value, np.ndarray):  # a long one is printed in part
        return f"{value.shape} {value.dtype} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
