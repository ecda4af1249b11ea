"""What a release says of itself: one version everywhere, and types for those who build on it."""

import re
import tomllib
from importlib import resources
from pathlib import Path

import fmab_jax as fmab

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_version_is_the_same_everywhere():
    """Would catch a release that one of its files calls by another number or day."""
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    headings = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    cited = re.search(r"^version: (\S+)$", citation, re.M)
    day = re.search(r'^date-released: "(\S+)"$', citation, re.M)
    assert cited and day
    assert fmab.__version__ == PROJECT["version"] == cited[1] == headings[0][0]
    assert day[1] == headings[0][1]


def test_type_checkers_may_read_the_annotations():
    """Would catch a package without its marker of PEP 561, whose types are then ignored."""
    assert resources.files("fmab_jax").joinpath("py.typed").is_file()
