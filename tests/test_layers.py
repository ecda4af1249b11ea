"""Imports run only downwards, heavy libraries load late, and importing changes no jax setting."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import networkx as nx

import fmab_jax as fmab

PACKAGE = Path(__file__).parents[1] / "fmab_jax"

# Rooms from the ground up, each a folder or a module. The loop lies below the algorithms in it.
ROOMS = (
    *("errors", "lazy_imports", "parameters", "files", "machine", "means_files"),
    *("sampling", "parts", "records", "ratings", "equations", "draws", "layouts", "accounts"),
    *("elimination", "algorithms", "run", "analysis", "sweeps", "planning", "plots", "reports"),
    "cli",
)
ROOF = ("__main__",)
# Inside a room, what everybody else in it stands on comes first; the rest is free of cycles.
DRAWING = ("plots",)


def module_of(path):
    """Returns the dotted name of a file of the package, below the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor(module):
    """Returns the floor of a module's room, None if it has none."""
    if module.partition(".")[0] in ROOF:
        return len(ROOMS)
    names = module.split(".")
    rooms = (".".join(names[:size]) for size in range(len(names), 0, -1))
    return next((ROOMS.index(room) for room in rooms if room in ROOMS), None)


def imported_names(source):
    """Returns the absolute dotted names that a module of the package imports, wherever it does."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # Relative imports would hide where they lead; none is used.
            base = "." if node.level else node.module or ""
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def violations(module, source):
    """Returns one line for every import of `module` that the floors forbid."""
    found = []
    if floor(module) is None:
        return [f"{module} has no floor"]
    for name in sorted(imported_names(source)):
        top, _, rest = name.partition(".")
        if not top:
            found.append(f"{module} imports {name}: write the whole name")
        if top == "matplotlib" and module.partition(".")[0] not in DRAWING:
            found.append(f"{module} imports {name}: only the room of plots may")
        if top != "fmab_jax":
            continue
        target = rest.partition(".")[0]
        if target == "__version__":
            continue  # defined by the package itself
        there = floor(rest)
        if there is None:
            found.append(f"{module} imports {name}: import from the module that defines it")
        elif there > floor(module):
            found.append(f"{module} imports upwards: {name}")
        elif rest == module:
            found.append(f"{module} imports itself")
    return found


def cycles(imports):
    """Returns the modules that import one another in a ring, whether at the top or inside."""
    graph = nx.DiGraph((a, b) for a, targets in imports.items() for b in targets)
    return [" -> ".join(sorted(ring)) for ring in nx.simple_cycles(graph)]


def run_fresh(script):
    """Runs `script` in a new interpreter from the project root; returns the JSON it prints."""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def sources():
    """Returns the text of every module of the package but `fmab_jax` itself, by name."""
    found = {module_of(path): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    # The package names every public module, and loads each only when it is asked for.
    del found[""]
    return found


def test_imports_run_only_downwards():
    """Would catch a low room that leans on a high one, and matplotlib outside plots."""
    found = sources()
    assert {"errors", "sampling.keys", "cli.main"} <= set(found)
    assert [line for name, text in found.items() for line in violations(name, text)] == []


def test_importing_everything_leaves_jax_settings_alone():
    """Would catch a module that switches on x64, or any other setting, for its importer."""
    modules = [f"fmab_jax.{name}" for name in sources() if name != "__main__"]
    changed = run_fresh(
        f"""
import importlib, json, jax
before = dict(jax.config.values)
assert "jax_enable_x64" in before
import fmab_jax
for name in {sorted(modules)}:
    importlib.import_module(name)
after = jax.config.values
print(json.dumps({{n: [repr(v), repr(after[n])] for n, v in before.items() if after[n] != v}}))
"""
    )
    assert changed == {}


def test_the_bare_import_is_light():
    """Would catch `import fmab_jax` loading jax, matplotlib or xarray before anything is asked."""
    loaded = run_fresh(
        "import json, sys, fmab_jax\n"
        "print(json.dumps({n: n in sys.modules for n in "
        "['fmab_jax', 'jax', 'matplotlib', 'scipy', 'xarray']}))"
    )
    assert loaded.pop("fmab_jax")
    assert not any(loaded.values()), loaded


def test_an_editor_sees_every_public_name_where_it_is():
    """Would catch a public name that is completed nowhere, or that an editor looks up elsewhere."""
    stub = ast.parse(Path(fmab.__file__).with_suffix(".pyi").read_text("utf-8"))
    found = {
        each.asname or each.name: (getattr(import_module(line.module), each.name), each.asname)
        for line in stub.body
        if isinstance(line, ast.ImportFrom)
        for each in line.names
    }
    # What a stub imports is handed on only where it says "as", or gives it a name.
    seen = {name: value for name, (value, handed) in found.items() if handed}
    seen |= {
        line.targets[0].id: found[line.value.id][0]
        for line in stub.body
        if isinstance(line, ast.Assign)
    }
    assert set(seen) == set(fmab.__all__) - {"__version__"}
    assert all(getattr(fmab, name) is found for name, found in seen.items())
