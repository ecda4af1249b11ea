"""The report in a real browser: it asks for nothing, its tables sort, and it can be read."""

import json
import shutil

import pytest

import fmab_jax as fmab

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="there is no Chromium with its chromedriver here"
)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1200,900"),
)


@pytest.fixture(scope="module")
def address(grid, tmp_path_factory):
    """A report of a grid, as a browser opens it from a disk."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    return fmab.write_report(grid, path, server_price=25).as_uri()


def started(folder):
    """Starts a browser with a new profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for each in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def browser(address, tmp_path_factory):
    """A browser that shows the report."""
    driver = started(tmp_path_factory.mktemp("profile"))
    try:
        opened(driver, address)
        yield driver
    finally:
        driver.quit()


def opened(driver, address):
    driver.get("about:blank")
    driver.get_log("performance"), driver.get_log("browser")
    driver.get(address)


def test_it_asks_for_nothing(browser, address):
    """Would catch an error in the console, a blocked script, and a request to any network."""
    opened(browser, address)
    assert browser.get_log("browser") == []
    told = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    told = [each for each in told if each["method"] == "Network.requestWillBeSent"]
    asked = [each["params"]["request"]["url"] for each in told]
    assert address in asked
    assert [url for url in asked if url != address and not url.startswith("data:image/")] == []
    pictures = browser.find_elements(By.CSS_SELECTOR, "figure img")
    assert len(pictures) == 2
    for each in pictures:
        assert each.is_displayed() and each.size["width"] > 300 and each.size["height"] > 200


def test_tables_sort_by_keyboard(browser, address):
    """Would catch headings that only a mouse can use, and numbers sorted as texts."""
    opened(browser, address)
    heads = browser.find_elements(By.CSS_SELECTOR, "#finals thead th")
    place = [each.text for each in heads].index("regret")
    heads[place].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert heads[place].get_attribute("aria-sort") == "ascending"
    cells = browser.find_elements(By.CSS_SELECTOR, f"#finals tbody tr td:nth-child({place + 1})")
    column = [float(each.text.replace(",", "")) for each in cells]
    assert column == sorted(column) and len(set(column)) == 6
    # What is no number comes last.
    heads[0].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    first = browser.find_elements(By.CSS_SELECTOR, "#finals tbody tr th:first-child")
    assert [each.text for each in first] == ["0.1", "0.1", "1", "1", "no noise", "no noise"]


@pytest.mark.parametrize("width, scheme", [(320, "dark"), (390, "light"), (1200, "dark")])
def test_it_fits_its_window_and_can_be_read(browser, address, width, scheme):
    """Would catch a page wider than a phone, and text that is too faint (WCAG AA, 4.5 to 1)."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    try:
        opened(browser, address)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        pairs = browser.execute_script(COLOURS)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(pairs) > 50
    for text, ink, paper in pairs:
        assert contrast(ink, paper) >= 4.5, (text, ink, paper)


COLOURS = """
const solid = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const own = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$/.test(own)) return own;
  }
};
const every = [...document.querySelectorAll("body *")];
const shown = every.filter((e) => !e.closest("svg, script, .plot")
  && e.offsetParent && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
const number = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
return shown.map((e) => [e.textContent.slice(0, 30), number(getComputedStyle(e).color),
  number(solid(e))]);
"""


def contrast(one, other):
    """Returns the contrast ratio of WCAG 2."""
    linear = lambda v: v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4  # noqa: E731
    weights = (0.2126, 0.7152, 0.0722)
    bright = sorted(
        sum(w * linear(v / 255) for w, v in zip(weights, colour, strict=True))
        for colour in (one, other)
    )
    return (bright[1] + 0.05) / (bright[0] + 0.05)
