"""The site is built without a warning, holds what it is to hold, and asks nobody for anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fmab_jax as fmab

ROOT = Path(__file__).parents[1]

pytest.importorskip("properdocs", reason='needs pip install -e ".[docs]"')
pytest.importorskip("mkdocstrings", reason='needs pip install -e ".[docs]"')
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Returns the folder of the site, built strictly: a broken link or reference fails it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(folder)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert told.returncode == 0, told.stderr[-3000:]
    return folder


def test_every_public_name_has_a_place_in_the_reference(site):
    """Would catch a new public name that no page of the reference shows."""
    pages = "".join(page.read_text("utf-8") for page in (site / "reference").glob("*.html"))
    shown = set(re.findall(r'<h2 id="fmab_jax\.(\w+)"', pages))
    assert shown == {name for name in fmab.__all__ if name != "__version__"}


def test_the_families_show_what_one_states(site):
    """Would catch hooks of a family that its page leaves out, since another class declares them."""
    page = (site / "reference/families.html").read_text("utf-8")
    shown = set(re.findall(r'<h3 id="fmab_jax\.[\w.]*\.(\w+\.\w+)"', page))
    hooks = ("pulls_per_arm", "radius", "eliminates", "worse", "precompute", "noise_scale")
    assert {f"Elimination.{hook}" for hook in hooks} < shown
    assert {f"IndexPolicy.{hook}" for hook in ("init", "choose", "update")} < shown


def test_the_first_command_is_wrapped(site):
    """Would catch a command outside of the blocks whose long lines the style wraps."""
    home = (site / "index.html").read_text("utf-8")
    (block,) = [part for part in home.split("<pre>") if "--spacing" in part]
    assert home.partition(f"<pre>{block}")[0].endswith('<div class="highlight">')
    assert "site/style.css" in home


def test_pages_ask_the_network_for_nothing(site):
    """Would catch a font, a script or a style that a page takes from somebody else's server."""
    asks = re.compile(r'(?:<script[^>]* src|<link[^>]* rel="stylesheet"[^>]* href)="(https?:)?//')
    for page in site.rglob("*.html"):
        assert not asks.search(page.read_text("utf-8")), page
    style = (site / "site/katex/katex.min.css").read_text("utf-8")
    fonts = set(re.findall(r"url\(([^)]*)\)", style))
    assert fonts and all((site / "site/katex" / font).is_file() for font in fonts)
