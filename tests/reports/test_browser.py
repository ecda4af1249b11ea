"""The report in a real browser: it draws, answers to hover and switches, and asks for nothing."""

import base64
import json
import shutil

import pytest

import fmab_jax as fmab

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

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


def started(folder, *, scripts=True):
    """Starts a browser with a new profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for each in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(each)
    if not scripts:
        rule = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", rule)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def browser(address, tmp_path_factory):
    """A browser that shows the report, drawn."""
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
    drawn = "return document.documentElement.dataset.drawn === 'yes'"
    WebDriverWait(driver, 60).until(lambda each: each.execute_script(drawn))


def field(driver, form, name):
    return driver.find_element(By.CSS_SELECTOR, f"#{form} [name='{name}']")


def plot(driver, name, ask):
    """Asks something of a figure's state."""
    return driver.execute_script(f"const g = document.getElementById('plot-{name}'); return {ask};")


def lines(driver, name):
    """Returns the curves of a figure that are no bands: their last values."""
    return plot(driver, name, "g.data.filter(t => t.fill !== 'toself').map(t => t.y.at(-1))")


def test_it_draws_and_asks_for_nothing(browser, address):
    """Would catch an error in the console, a blocked script, and a request to any network."""
    opened(browser, address)
    assert browser.get_log("browser") == []
    told = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    told = [each for each in told if each["method"] == "Network.requestWillBeSent"]
    asked = [each["params"]["request"]["url"] for each in told]
    assert address in asked
    assert [url for url in asked if url != address and not url.startswith("data:image/")] == []
    assert browser.find_element(By.ID, "status").text == ""
    for name in ("regret", "links", "finals"):
        box = browser.find_element(By.ID, f"plot-{name}")
        assert box.size["height"] > 200 and box.size["width"] > 600
        assert len(box.get_attribute("aria-label")) > 40
        assert not any(
            word in button.get_attribute("data-title").lower()
            for button in box.find_elements(By.CSS_SELECTOR, ".modebar-btn")
            for word in ("share", "cloud", "edit")
        )
    # Static pictures are there, and not shown twice.
    stills = browser.find_elements(By.CSS_SELECTOR, ".still")
    assert stills and not any(each.is_displayed() for each in stills)


def test_hovering_tells_the_values(browser, address):
    """Would catch a hover without the interval, or of another curve."""
    opened(browser, address)
    box = browser.find_element(By.ID, "plot-regret")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    ActionChains(browser).move_to_element(box).move_by_offset(40, 0).perform()
    shown = "#plot-regret .hoverlayer text"
    WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, shown))
    texts = [each.text for each in browser.find_elements(By.CSS_SELECTOR, shown)]
    entries = plot(browser, "regret", "g.data.filter(t => t.fill !== 'toself').map(t => t.text)")
    values = {text for own in entries for text in own}
    said = [each for each in texts if ": " in each]
    assert len(said) == 6 and all(each.partition(": ")[2] in values for each in said)


def test_switches_change_what_is_drawn(browser, address):
    """Would catch a control that does nothing, or changes another figure."""
    opened(browser, address)
    assert len(lines(browser, "regret")) == 6
    Select(field(browser, "curve-controls", "along")).select_by_value("epsilon")
    assert len(lines(browser, "regret")) == 3
    for form, name, axis, figure in (
        ("curve-controls", "logx", "xaxis", "regret"),
        ("curve-controls", "logy", "yaxis", "regret"),
        ("link-controls", "loglinks", "yaxis", "links"),
        ("final-controls", "finals-logy", "yaxis", "finals"),
    ):
        assert plot(browser, figure, f"g._fullLayout.{axis}.type") == "linear"
        field(browser, form, name).click()
        assert plot(browser, figure, f"g._fullLayout.{axis}.type") == "log"
        field(browser, form, name).click()
    field(browser, "curve-controls", "band").click()
    assert plot(browser, "regret", "g.data.length") == 3
    # A curve less, in both figures.
    box = browser.find_element(By.CSS_SELECTOR, "#curve-controls fieldset input")
    before = lines(browser, "regret")
    box.click()
    assert lines(browser, "regret") == before[1:] and len(lines(browser, "links")) == 2
    assert "2 of 6 configurations are shown" in browser.find_element(By.ID, "curves-told").text
    box = browser.find_element(By.CSS_SELECTOR, "#curve-controls fieldset input")
    box.click()
    # Another budget, then curves that differ in the budget, then all.
    Select(field(browser, "curve-controls", "rounds")).select_by_visible_text("R = 2")
    assert lines(browser, "regret") != before
    Select(field(browser, "curve-controls", "along")).select_by_value("rounds")
    labels = [
        x.text for x in browser.find_elements(By.CSS_SELECTOR, "#curve-controls fieldset label")
    ]
    assert labels == ["R = 2", "no round budget"]
    Select(field(browser, "curve-controls", "along")).select_by_value("everything")
    assert len(lines(browser, "regret")) == 6


def test_the_meter_can_be_chosen(browser, address):
    """Would catch a meter that is not drawn: a link costs 25 here."""
    opened(browser, address)
    meter = Select(field(browser, "link-controls", "meter"))
    assert [each.text for each in meter.options] == [
        "agent-server links (meter server)",
        "communication cost (25 per server link, 1 per peer link)",
    ]
    links = lines(browser, "links")
    meter.select_by_index(1)
    assert lines(browser, "links") == pytest.approx([25 * each for each in links], rel=1e-4)
    metric = Select(field(browser, "final-controls", "metric"))
    regret = lines(browser, "finals")
    metric.select_by_value("rounds_made")
    assert lines(browser, "finals") != regret


def test_tables_sort_by_keyboard(browser, address):
    """Would catch headings that only a mouse can use, and numbers sorted as texts."""
    opened(browser, address)
    heads = browser.find_elements(By.CSS_SELECTOR, "table.sortable:first-of-type thead th")
    place = [each.text for each in heads].index("regret")
    heads[place].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert heads[place].get_attribute("aria-sort") == "ascending"
    column = browser.execute_script(
        "return [...document.querySelector('table.sortable').tBodies[0].rows]"
        f".map(row => Number(row.cells[{place}].dataset.v))"
    )
    assert column == sorted(column) and len(set(column)) == 6


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


def test_without_scripts_pictures_and_tables_are_there(address, tmp_path):
    """Would catch a page that is empty without scripts, and controls that do nothing."""
    driver = started(tmp_path / "profile", scripts=False)
    try:
        driver.get(address)
        stills = driver.find_elements(By.CSS_SELECTOR, ".still img")
        assert len(stills) == 2
        for each in stills:
            assert each.is_displayed() and each.size["width"] > 300 and each.size["height"] > 200
        assert not any(e.is_displayed() for e in driver.find_elements(By.CSS_SELECTOR, ".live"))
        rows = driver.find_elements(By.CSS_SELECTOR, "#finals tbody tr")
        assert len(rows) == 6 and all(row.is_displayed() for row in rows)
    finally:
        driver.quit()


def test_on_paper_it_is_light_and_static(browser, address):
    """Would catch dark paper, controls on paper, and figures that are lost there."""
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    try:
        opened(browser, address)
        assert all(e.is_displayed() for e in browser.find_elements(By.CSS_SELECTOR, ".still img"))
        assert not any(e.is_displayed() for e in browser.find_elements(By.CSS_SELECTOR, ".live"))
        paper = "return getComputedStyle(document.documentElement).backgroundColor"
        assert browser.execute_script(paper) == "rgb(255, 255, 255)"
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        assert base64.b64decode(printed["data"]).startswith(b"%PDF-")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
