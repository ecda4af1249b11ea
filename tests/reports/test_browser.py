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
def page(grid, tmp_path_factory):
    """A browser that shows a report from a disk, and the report's address."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    address = fmab.write_report(grid, path, server_price=25).as_uri()
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.get("about:blank")
        driver.get_log("performance"), driver.get_log("browser")
        driver.get(address)
        yield driver, address
    finally:
        driver.quit()


def test_it_asks_for_nothing(page):
    """Would catch an error in the console, a blocked script, and a request to any network."""
    browser, address = page
    assert browser.get_log("browser") == []
    log = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [entry for entry in log if entry["method"] == "Network.requestWillBeSent"]
    urls = [entry["params"]["request"]["url"] for entry in requests]
    assert address in urls
    assert [url for url in urls if url != address and not url.startswith("data:image/")] == []
    pictures = browser.find_elements(By.CSS_SELECTOR, "figure img")
    assert len(pictures) == 2 and all(picture.size["height"] > 200 for picture in pictures)


def test_tables_sort_by_keyboard(page):
    """Would catch headings that only a mouse can use, and numbers sorted as texts."""
    browser, _ = page
    heads = browser.find_elements(By.CSS_SELECTOR, "#finals thead th")
    place = [head.text for head in heads].index("regret")
    heads[place].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert heads[place].get_attribute("aria-sort") == "ascending"
    cells = browser.find_elements(By.CSS_SELECTOR, f"#finals tbody tr td:nth-child({place + 1})")
    column = [float(cell.text.replace(",", "")) for cell in cells]
    assert column == sorted(column) and len(set(column)) == 6
    # A label that is no number comes last.
    heads[0].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    first = browser.find_elements(By.CSS_SELECTOR, "#finals tbody tr th:first-child")
    assert [cell.text for cell in first] == ["0.1", "0.1", "1", "1", "no noise", "no noise"]
