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
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from fmab_jax.errors import Refusal, describe_error, is_user_error, locate_error


class Named:
    """A class that options name."""

    name: ClassVar[str]


class Source(NamedTuple):
    """A plug-in file or one of its helpers, for processes that cannot read the file.

    Attributes:
        name: Name of the module; that of a plug-in has a digest of its content and its helpers.
        path: Path of the file on the machine that read it.
        content: Content of the file.
        helpers: The modules that a plug-in reaches by import, by name.
    """

    name: str
    path: str
    content: bytes
    helpers: tuple[Source, ...] = ()


# What is installed beside users' code is no part of a plug-in's identity.
_LIBRARIES = ("builtins", "fmab_jax", "jax", "jaxlib", "numpy")
_INSTALLED = tuple(
    Path(sysconfig.get_path(name)).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_sources: dict[str, Source] = {}
# Helpers by name, as imported; the files may have changed since.
_helpers: dict[str, Source] = {}
# Digests of classes with source, as it was at first use.
_digests: dict[type, str] = {}
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
            _execute(Source(name, path, content, tuple(Source(*helper) for helper in helpers)))


def imported(path: Path) -> ModuleType:
    """Imports a file, once for each content of the file and its helpers."""
    content, place = path.read_bytes(), path.resolve()
    modules = _reach_modules(place.parent, content)
    helpers = tuple(
        helper for helper in modules if _is_helper(helper) and helper.path != str(place)
    )
    contents = tuple((helper.name, helper.content) for helper in helpers)
    digest = hashlib.sha256(bytes(place) + content + repr(contents).encode()).hexdigest()[:12]
    name = f"fmab_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest}"
    return sys.modules.get(name) or _execute(Source(name, str(place), content, helpers))


def imported_module(name: str) -> ModuleType:
    """Imports a module by its dotted name."""
    _modules[name] = importlib.import_module(name)
    return _modules[name]


def _is_helper(helper: Source) -> bool:
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
        if helper := _helpers.get(fullname):
            return _state_module(fullname, helper.path, helper.content)
        if any(name.startswith(f"{fullname}.") for name in _helpers):
            # A folder without __init__.py.
            return ModuleSpec(fullname, None, is_package=True)
        return None


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


def _reach_modules(root: Path, content: bytes, package: str = "") -> list[Source]:
    """Returns the modules below a folder that a text reaches by import, by name.

    Args:
        root: The folder of the file, or that of its outermost package.
        content: The text.
        package: Dotted name of the package of the file; only its modules count then.
    """
    if not package and root.resolve() in _INSTALLED:
        return []
    modules: dict[str, Source] = {}
    pending = [(content, package)]
    while pending:
        for name in sorted(_list_imports(*pending.pop())):
            outermost, *inner = name.split(".")
            file = root.joinpath(outermost, *inner)
            if name in modules or outermost in _LIBRARIES:
                continue
            if package and outermost != package.partition(".")[0]:
                continue
            if file.with_name(f"{file.name}.py").is_file():
                file, within = file.with_name(f"{file.name}.py"), ".".join((outermost, *inner)[:-1])
            elif (file / "__init__.py").is_file():
                file, within = file / "__init__.py", name
            else:
                continue
            modules[name] = Source(name, str(file), file.read_bytes())
            pending.append((modules[name].content, within))
    return [modules[name] for name in sorted(modules)]


def _list_imports(content: bytes, package: str) -> set[str]:
    """Returns the dotted names that a text of a package imports anywhere, and their packages."""
    names = set[str]()
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # whoever imports it gets the error
        return names
    for node in ast.walk(tree):
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

    It includes helpers of the file. A class without source is hashed by its compiled code, and by
    all that this reads.
    """
    if owner not in _digests:
        text = _describe_class(owner, {id(owner): owner}, owner.__module__.partition(".")[0])
        digest = _hash(text) if text else ""
        if text and not _read_module(owner.__module__):
            return digest  # in a notebook what a class reads may change
        _digests[owner] = digest
    return _digests[owner]


def code_digest(*parts: object) -> str:
    """Returns a hash of functions, of all that they read, and of texts."""
    # Identities of outputs in stores of version 0.3 are written in this form.
    texts = (f"{x!r}['None']" if isinstance(x, str) else _describe(x, {}) for x in parts)
    return _hash("".join(texts))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _is_library(name: str, own_package: str = "") -> bool:
    """Tells whether a module is installed, and not of the package of a plug-in."""
    outermost = name.partition(".")[0]
    if outermost in _LIBRARIES or outermost in sys.builtin_module_names:
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if outermost == own_package or file is None:
        return False
    return any(map(Path(file).resolve().is_relative_to, _INSTALLED))


def _is_stated(owner: type) -> bool:
    """Tells whether a class is the one of its name in its module, and not made by a function."""
    value: object = sys.modules.get(owner.__module__)
    for name in owner.__qualname__.split("."):
        value = getattr(value, name, None)
    return value is owner


def _read_module(name: str) -> str:
    """Returns the source of a module, as executed if that is known, with its helpers.

    It is "" without source. Helpers are written by name, so that a moved folder keeps the text.
    """
    module = sys.modules.get(name)
    source = _sources.get(name) or _helpers.get(name)
    package = getattr(module, "__package__", None) or ""
    try:
        content = source.content if source else inspect.getsource(module).encode()  # type: ignore[arg-type]
        folders = Path(inspect.getfile(module)).absolute().parents  # type: ignore[arg-type]
    except (OSError, TypeError):
        return ""
    helpers: Iterable[Source] = source.helpers if source else ()
    if name not in _sources:
        root = folders[len(package.split(".")) if package else 0]
        modules = _reach_modules(root, content, package)
        helpers = [_helpers.get(module.name, module) for module in modules]
    text = importlib.util.decode_source(content)
    texts = [text if text.endswith("\n") else text + "\n"]
    for helper in sorted(helpers):
        texts.append(f"\n{helper.name}.py\n{helper.content.decode(errors='backslashreplace')}")
    return "".join(texts)


def _describe(value: object, seen: dict[int, object]) -> str:
    """Returns a text of a value and of all that it reads, equal in every process.

    Args:
        value: A function, class, module, array, container or plain value.
        seen: Functions, classes, modules and objects that are described already, by address.
    """
    if isinstance(value, MethodType):
        value = (value.__func__, value.__self__)
    value = getattr(value, "fget", getattr(value, "__func__", value))
    if isinstance(value, functools.partial):
        value = ("partial", value.func, value.args, value.keywords)
    if callable(value):
        value = inspect.unwrap(value)  # of jax.jit
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_describe(item, seen) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{k!r}: {_describe(x, seen)}' for k, x in value.items()))}}}"
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(repr, value)))
    if isinstance(value, (np.ndarray, jax.Array)):  # a long one is printed in part
        array = np.asarray(value)
        return f"{array.shape} {array.dtype} {hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, (type(None), bool, int, float, complex, str, bytes, np.generic)):
        return repr(value)
    if id(value) in seen:
        return "as above"
    seen[id(value)] = value
    if isinstance(value, ModuleType):
        is_library = _is_library(value.__name__)
        return value.__name__ if is_library else _read_module(value.__name__)
    if isinstance(value, (FunctionType, type)):
        module = value.__module__ or ""  # of a text that is executed
        if _is_library(module):
            return f"{module}.{value.__qualname__}"
        if isinstance(value, type):
            return f"{value.__qualname__} {_describe_class(value, seen)}"
        return _describe_function(value, _read_module(module), seen)
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    fields = vars(value) if hasattr(value, "__dict__") else {}
    return f"{text} {_describe(type(value), seen)} {_describe(dict(fields), seen)}"


def _describe_class(owner: type, seen: dict[int, object], own_package: str = "") -> str:
    """Returns the source of a class and of its bases, and all that this does not say of them."""
    texts: dict[str, None] = {}
    special = ("__call__", "__init__", "__post_init__")
    for base in owner.__mro__:
        if _is_library(base.__module__, own_package):
            continue
        text = _read_module(base.__module__)
        texts[text] = None
        if not text or not _is_stated(base):
            body = vars(base).items()
            members = {n: x for n, x in body if n in special or not n.startswith("__")}
            texts[f"{base.__qualname__} {_describe(members, seen)}"] = None
    return "".join(texts)


def _describe_function(function: FunctionType, source: str, seen: dict[int, object]) -> str:
    """Returns the code of a function, what it holds, and its source or else all that it reads."""
    values = [*(cell.cell_contents for cell in function.__closure__ or ()), function.__defaults__]
    if function.__kwdefaults__:
        values.append(function.__kwdefaults__)
    if not source:
        names = _list_names(function.__code__) & {*function.__globals__}
        values.append({name: function.__globals__[name] for name in names})
    held = [_describe(value, seen) for value in values]
    return f"{_describe_code(function.__code__)}{held}{source}"


def _describe_code(code: CodeType) -> str:
    def write(constant: object) -> str:
        if isinstance(constant, CodeType):
            return _describe_code(constant)
        if isinstance(constant, frozenset):
            return repr(sorted(map(repr, constant)))
        return repr(constant)

    return f"{code.co_code.hex()} {code.co_names} {list(map(write, code.co_consts))}"


def _list_names(code: CodeType) -> set[str]:
    """Returns the names that code and the functions in it read."""
    inner = (_list_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)
