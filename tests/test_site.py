"""The site is built without a warning, holds what it is to hold, and asks nobody for anything."""

import os
import re
import shutil
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


def test_pages_ask_the_network_for_nothing(site):
    """Would catch a font, a script or a style that a page takes from somebody else's server."""
    asks = re.compile(r'(?:<script[^>]* src|<link[^>]* rel="stylesheet"[^>]* href)="(https?:)?//')
    for page in site.rglob("*.html"):
        assert not asks.search(page.read_text("utf-8")), page
    style = (site / "site/katex/katex.min.css").read_text("utf-8")
    fonts = set(re.findall(r"url\(([^)]*)\)", style))
    assert fonts and all((site / "site/katex" / font).is_file() for font in fonts)


@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")), reason="there is no Chromium"
)
def test_the_search_finds_pages_from_a_folder(site, tmp_path):
    """Would catch an index that only a server hands out, and a worker that no folder may start."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"):
        options.add_argument(each)
    options.add_argument(f"--user-data-dir={tmp_path}")
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.get((site / "reference" / "running.html").as_uri())
        driver.execute_script("document.querySelector('#__search').click()")
        driver.find_element(By.CSS_SELECTOR, "input.md-search__input").send_keys("hockey-stick")
        found = (By.CSS_SELECTOR, ".md-search-result__item a")
        WebDriverWait(driver, 60).until(lambda each: each.find_elements(*found))
        links = [each.get_attribute("href") for each in driver.find_elements(*found)]
    finally:
        driver.quit()
    pages = {link.partition("?")[0].partition("#")[0] for link in links}
    assert (site / "privacy.html").as_uri() in pages or (
        site / "privacy_audit.html"
    ).as_uri() in pages
    assert all(page.startswith(site.as_uri()) for page in pages)
