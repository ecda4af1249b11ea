"""Imports run only downwards, heavy libraries load late, and importing changes no jax setting."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "fmab_jax"

FLOORS = {
    "checks": 0,
    "graphs": 0,
    "draws": 0,
    "schedule": 0,
    "problems": 1,  # instances are drawn, so they stand on draws
    "exchange": 1,
    "trajectory": 1,
    "bands": 1,
    "summary": 1,
    "files": 0,
    "locks": 1,
    "run_folder": 2,
    "store": 1,
    "theory": 2,
    "privacy": 1,
    "elimination": 2,
    "simulation": 3,
    "study": 4,
    "plots": 4,
    "results": 5,
    "sweeps": 6,
    "sweep_plots": 6,
    "study_file": 5,
    "exports": 6,
    "terminal": 1,
    "progress": 1,
    "sweep_commands": 7,
    "__main__": 8,
}


def imported_names(source: str) -> set[str]:
    """Returns the absolute dotted names that a module of the package imports, wherever it does."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # The package has no subpackages: one dot is the package itself.
            base = ".".join(filter(None, ["fmab_jax" if node.level else "", node.module or ""]))
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def violations(module: str, source: str) -> list[str]:
    """Returns one line for every import of `module` that the floors forbid."""
    found = []
    if module not in FLOORS:
        return [f"{module} has no floor"]
    for name in sorted(imported_names(source)):
        top, _, rest = name.partition(".")
        if top == "matplotlib" and module not in ("plots", "sweep_plots"):
            found.append(f"{module} imports {name}: only the modules of plots may")
        if top != "fmab_jax":
            continue
        target = rest.partition(".")[0]
        if target == "__version__":
            continue  # defined by the package itself
        if target not in FLOORS:
            found.append(f"{module} imports {name}: import from the module that defines it")
        elif target == module:
            found.append(f"{module} imports itself")
        elif not (FLOORS[target] < FLOORS[module] or target == "checks"):
            found.append(f"{module} (floor {FLOORS[module]}) imports {target} ({FLOORS[target]})")
    return found


def run_fresh(script: str) -> dict:
    """Runs `script` in a new interpreter from the project root; returns the JSON it prints."""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_imports_run_only_downwards():
    """Would catch a low module that leans on a high one, and matplotlib outside plots."""
    sources = {path.stem: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    assert "__init__" in sources and "plots" in sources
    # __init__ names every public module, and loads each only when it is asked for.
    del sources["__init__"]
    assert [line for name, text in sources.items() for line in violations(name, text)] == []


def test_the_layer_check_sees_every_form_of_import():
    """Would catch a layer check that overlooks relative, nested, type-only or aliased imports."""
    bad = {
        "draws": [
            "from . import simulation",
            "from .simulation import simulate",
            "import fmab_jax.simulation as s",
            "def f():\n    from fmab_jax import problems",
            "if TYPE_CHECKING:\n    from .exchange import Exchange",
            "from fmab_jax import Problem",
            "from . import graphs",
            "from .draws import laplace",
        ],
        "bands": ["import matplotlib.pyplot as plt", "from .trajectory import curve"],
        "store": ["from matplotlib import figure", "from .sweeps import sweep"],
        "unheard_of": [""],
    }
    for module, sources in bad.items():
        for source in sources:
            assert len(violations(module, source)) == 1, (module, source)
    good = "import jax\nfrom fmab_jax.checks import real\nfrom . import elimination, bands"
    assert violations("simulation", good) == []
    assert violations("plots", "from matplotlib.figure import Figure") == []


def test_importing_everything_leaves_jax_settings_alone():
    """Would catch a module that switches on x64, or any other setting, for its importer."""
    modules = [f"fmab_jax.{path.stem}" for path in PACKAGE.glob("*.py") if path.stem != "__init__"]
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


def test_only_plots_loads_matplotlib():
    """Would catch matplotlib arriving at run time through another library or a lazy import."""
    modules = [
        f"fmab_jax.{path.stem}"
        for path in PACKAGE.glob("*.py")
        if path.stem not in {"__init__", "plots", "sweep_plots"}
    ]
    loaded = run_fresh(
        "import importlib, json, sys\n"
        f"[importlib.import_module(n) for n in {sorted(modules)}]\n"
        "print(json.dumps({'matplotlib': 'matplotlib' in sys.modules}))"
    )
    assert loaded == {"matplotlib": False}
