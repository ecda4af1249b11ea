"""Files of plug-ins: how they are imported, and the digest of all their source.

A changed plug-in is another algorithm, and so is one whose helper has changed: a module that it
imports, however indirectly, from its own folder or distribution. Such files are imported from their
source as it is, once for each content; no old bytecode runs, and none is written.
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
import site
import sys
import sysconfig
import traceback
import typing
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from fmab_jax.errors import Refusal, Shown, foreign, place_of, reason_of, refuse

_OURS = Path(__file__).resolve().parents[1]


class Source(NamedTuple):
    """A plug-in file as it was imported, for processes that do not see the file.

    Attributes:
        name: The module's; it has a digest of the content.
        path: Where the file lies here.
        content: Of the file.
        helpers: Name, path and content of each module that it imported from its own folder.
    """

    name: str
    path: str
    content: bytes
    helpers: tuple[tuple[str, str, bytes], ...] = ()


_sources: dict[str, Source] = {}
# Helpers by path, as they were executed; the files may have changed since.
_executed_as: dict[str, bytes] = {}
# Files of modules that users named as plug-ins.
_modules: set[str] = set()
# Those modules, by name.
_named: dict[str, ModuleType] = {}


@contextlib.contextmanager
def foreign_refused(
    field: str, value: Any, allowed: str, remedy: str = "mend it"
) -> Iterator[None]:
    """Refuses what a plug-in's code raises, with its reason; a `Refusal` stays as it is."""
    try:
        yield
    except Refusal:
        raise
    except BaseException as error:
        if not foreign(error):
            raise
        refuse(field, value, allowed, f"{remedy} ({reason_of(error)}{place_of(error)})")


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
            _forget({path: content for _, path, content in source.helpers})
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
    content, place = path.read_bytes(), str(path.resolve())
    helpers = _helpers(place, content)
    digest = hashlib.sha256(bytes(path.resolve()) + content)
    for each in sorted(helpers):
        digest.update(each.encode() + helpers[each])
    name = f"fmab_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest.hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    _forget(helpers)
    return _execute(Source(name, place, content))


def imported_module(name: str) -> ModuleType:
    """Imports a module by its dotted name."""
    module = importlib.import_module(name)
    if file := getattr(module, "__file__", None):
        _modules.add(os.path.realpath(file))
    _named[name] = module
    names_once(module, name)
    return module


def names_once(module: Any, where: str) -> None:
    """Refuses a module of whose classes or functions two have one name."""
    with contextlib.suppress(OSError, TypeError, SyntaxError):  # no source, nothing to compare
        defined_once(inspect.getsource(module).encode(), where)


def _forget(helpers: Mapping[str, bytes]) -> None:
    """Has helpers imported anew if one of them was executed with another content."""
    if any(_executed_as.get(path, content) != content for path, content in helpers.items()):
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) in helpers:
                del sys.modules[name]


def _execute(source: Source) -> ModuleType:
    module = ModuleType(source.name)
    module.__file__ = source.path
    code = compile(source.content, source.path, "exec")
    defined_once(source.content, os.path.basename(source.path))
    finder = _Finder(source)
    sys.modules[source.name] = module
    sys.meta_path.insert(0, finder)
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[source.name]
        sys.meta_path.remove(finder)
        raise
    # A function may import a helper later, and helpers that were sent lie on no path here.
    if not source.helpers:
        sys.meta_path.remove(finder)
    helpers = {path: (name, path, content) for name, path, content in finder.found}
    for path, content in _helpers(source.path, source.content, module).items():
        parts = Path(os.path.relpath(path, _root(source.path).folder)).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        helpers.setdefault(path, (name, path, content))
    _sources[source.name] = source._replace(helpers=source.helpers or tuple(helpers.values()))
    return module


class _Finder:
    """Has modules beside a plug-in executed from their source, or from what was sent with it."""

    def __init__(self, source: Source) -> None:
        self._root = _root(source.path)
        self._sent = {name: (path, content) for name, path, content in source.helpers}
        self.found: list[tuple[str, str, bytes]] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Returns how a module beside the plug-in is imported; None for any other."""
        if name in self._sent:
            place, content = self._sent[name]
            package = os.path.basename(place) == "__init__.py"
            spec = ModuleSpec(name, _Loader(name, place, content, []), is_package=package)
            spec.origin, spec.has_location = place, True
            if package:
                spec.submodule_search_locations = [os.path.dirname(place)]
            return spec
        usual = PathFinder.find_spec(name, path, target)
        if usual is None or not isinstance(usual.loader, SourceFileLoader):
            return None
        place = os.path.realpath(usual.origin or "")
        if not self._root.holds(place):
            return None
        usual.loader, usual.cached = _Loader(name, place, None, self.found), None
        usual.origin = place
        return usual


class _Loader(SourceFileLoader):
    """Executes a file's source, or another content in its place, and keeps what it executed."""

    def __init__(
        self, name: str, path: str, content: bytes | None, found: list[tuple[str, str, bytes]]
    ) -> None:
        super().__init__(name, path)
        self._content, self._found = content, found

    def get_code(self, fullname: str) -> CodeType:
        """Returns the code of what is executed."""
        content = self.get_data(self.path) if self._content is None else self._content
        code = self.source_to_code(content, self.path)
        _executed_as[self.path] = content
        self._found.append((fullname, self.path, content))
        return code


class _Root(NamedTuple):
    """Where the helpers of a file lie.

    Attributes:
        folder: Below which.
        names: Only in these of its packages and modules; None for all.
    """

    folder: str
    names: frozenset[str] | None

    def holds(self, path: str) -> bool:
        """Tells whether a file is one of them; nothing of this package, of Python or NumPy is."""
        try:
            inside = Path(path).relative_to(self.folder)
        except ValueError:
            return False
        if path.startswith(f"{_OURS}{os.sep}") or "site-packages" in inside.parts:
            return False
        return self.names is None or inside.parts[0].removesuffix(".py") in self.names


def _root(path: str) -> _Root:
    """Returns where the helpers of a file lie: its folder, that of its package, or distribution."""
    folder = Path(os.path.realpath(path)).parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    if str(folder) not in _installed_in():
        return _Root(str(folder), None)
    top = Path(os.path.realpath(path)).relative_to(folder).parts[0].removesuffix(".py")
    return _Root(str(folder), frozenset({top, *_beside(top)}))


@functools.cache
def _installed_in() -> frozenset[str]:
    """Returns the folders in which distributions lie side by side."""
    names = [*sysconfig.get_paths().values(), site.getusersitepackages()]
    with contextlib.suppress(AttributeError):  # not in old virtual environments
        names += site.getsitepackages()
    return frozenset(map(os.path.realpath, names))


@functools.cache
def _beside(top: str) -> frozenset[str]:
    """Returns the packages that a distribution has beside one of them."""
    every = metadata.packages_distributions()
    own = {*every.get(top, ())}
    return frozenset(name for name, owners in every.items() if own.intersection(owners))


def _helpers(path: str, content: bytes, module: Any = None) -> dict[str, bytes]:
    """Returns the content of all that a file imports, however indirectly, by path.

    What its text says, wherever it says it, and what a module that was executed shows of it.
    Only what lies in the file's folder, package or distribution; not the file itself. Without a
    module, as the files are; with one, as they were executed.
    """
    root, found = _root(path), dict[str, bytes]()
    path = os.path.realpath(path)
    left = [(path, content, module)]
    while left:
        place, text, shown = left.pop()
        near = {*_imports(place, text, root), *_shown(shown)}
        for each in sorted(near):
            if each == path or each in found or not root.holds(each):
                continue
            with contextlib.suppress(OSError):  # compiled, or gone
                known = _executed_as.get(each) if module else None
                found[each] = Path(each).read_bytes() if known is None else known
                left.append((each, found[each], _module_of(each) if module else None))
    return found


def _module_of(path: str) -> ModuleType | None:
    own = (m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == path)
    return next(own, None)


def _shown(module: Any) -> Iterator[str]:
    """Yields the files of what an executed module holds: modules, functions, classes."""
    for value in list(vars(module).values()) if module else ():
        with contextlib.suppress(Exception):  # an object of a plug-in may raise anything
            yield from _file_of(value)


def _file_of(value: Any) -> Iterator[str]:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if isinstance(name, str):
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str) and file.endswith(".py"):
            yield os.path.realpath(file)


def _imports(path: str, content: bytes, root: _Root) -> Iterator[str]:
    """Yields the files that a text's import statements may mean."""
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError, RecursionError):
        return
    here, below = os.path.dirname(path), f"{root.folder}{os.sep}"
    searched = [
        root.folder,
        here,
        *(p for p in sys.path if p and os.path.realpath(p).startswith(below)),
    ]
    for node in nodes:
        if isinstance(node, ast.Import):
            names, folders = [alias.name for alias in node.names], searched
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
            up = os.path.normpath(os.path.join(here, *[os.pardir] * (node.level - 1)))
            folders = [up] if node.level else searched
        else:
            continue
        for name in names:
            parts = name.split(".") if name else []
            for folder in folders:
                for size in range(len(parts) + 1):
                    stem = os.path.join(folder, *parts[:size])
                    for each in (f"{stem}.py" * (size > 0), os.path.join(stem, "__init__.py")):
                        if each and (each in _executed_as or os.path.isfile(each)):
                            yield os.path.realpath(each)


def blamed(error: BaseException) -> str:
    """Returns the plug-in file, or a helper of one, in which an error arose; "" for none."""
    theirs = {source.path for source in _sources.values()} | {*_executed_as, *_modules}
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((file for file in reversed(files) if os.path.realpath(file) in theirs), "")


def defined_once(source: bytes, where: str) -> None:
    """Refuses a file whose later class or function takes the place of an earlier one.

    Only what stands in the file's own indentation, without a decorator that may want it so.

    Raises:
        ValueError: If two have one name; the line names both.
    """
    found: dict[str, ast.stmt] = {}
    for each in ast.parse(source).body:
        if not isinstance(each, (ast.ClassDef, ast.FunctionDef)) or each.name == "_":
            continue
        if isinstance(each, ast.FunctionDef) and each.decorator_list:
            continue
        other = found.setdefault(each.name, each)
        if other is not each:
            told = Shown(f"{each.name} of line {other.lineno} and of line {each.lineno}")
            refuse("plugin", told, f"the name of one of {where}", "rename one of them")


def source_digest(owner: type) -> str:
    """Returns a hash of the source of a class that is not this package's; "" for this package's.

    A changed plug-in is another algorithm, and so is one with a changed helper. Of a class whose
    source cannot be found, the compiled code stands for it.
    """
    # The cast is for type checkers, which take a class with fields to be unhashable.
    return _source_digest(typing.cast(Any, owner))


@functools.cache
def _source_digest(owner: type) -> str:
    whole = hashlib.sha256()
    found = False
    helpers: dict[str, bytes] = {}
    for each in owner.__mro__:
        if each.__module__.partition(".")[0] in ("builtins", "fmab_jax", "abc", "typing"):
            continue
        found = True
        try:
            module = sys.modules[each.__module__]
            text = _text(module)
            whole.update(text.encode())
        except (OSError, TypeError, KeyError):
            for name, value in sorted(vars(each).items()):
                whole.update(f"{name}={_stated(value)};".encode())
            continue
        if file := getattr(module, "__file__", None):
            root = _root(file).folder
            for path, content in _helpers(file, text.encode(), module).items():
                helpers[os.path.relpath(path, root)] = content
    # Paths are relative to the file: a folder that was moved has the same digest.
    for path in sorted(helpers):
        whole.update(f"\n{path}\n".encode() + helpers[path])
    return whole.hexdigest()[:12] if found else ""


def code_digest(*parts: Any) -> str:
    """Returns a hash of functions, and of the modules that they are from; and of texts.

    What a function closes over, and its defaults, count as well.
    """
    whole = hashlib.sha256()
    for part in parts:
        whole.update(_stated(part).encode())
        closed = [cell.cell_contents for cell in getattr(part, "__closure__", None) or ()]
        whole.update(
            repr([_stated(x) for x in (*closed, getattr(part, "__defaults__", None))]).encode()
        )
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
