"""Chromium for the scripts beside this one: how it is started, and what every page must hold."""

import base64
import json
import shutil

from sample_run import require, skip

require("selenium")
from selenium import webdriver

VIEWS = [(width, scheme) for width in (1280, 400) for scheme in ("light", "dark")]
SWITCHES = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
            "--disable-component-update --disable-sync").split()

# Texts with less contrast than the 4.5 of WCAG to what is behind them, placeholders too. What is disabled is exempt.
FAINT = r"""
const channels = colour => colour.match(/[\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
const ground = e => {
  const [r, g, b, opacity = 1] = e ? channels(getComputedStyle(e).backgroundColor) : [255, 255, 255];
  return opacity === 1 ? [r, g, b] : ground(e.parentElement).map((under, i) => under * (1 - opacity) + [r, g, b][i] * opacity);
};
const contrast = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
const found = [];
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.value;
  if (!own || !e.getClientRects().length || e.disabled || /SCRIPT|OPTION/.test(e.tagName)) continue;
  const colour = getComputedStyle(e)[e instanceof SVGElement ? "fill" : "color"];
  const value = contrast(light(channels(colour)), light(ground(e)));
  if (!(value >= 4.5)) found.push([e.outerHTML.slice(0, 80), value]);
  if (e.placeholder && contrast(light(channels(getComputedStyle(e, "::placeholder").color)), light(ground(e))) < 4.5)
    found.push([e.outerHTML.slice(0, 80), "placeholder"]);
}
return found;
"""
# What is wider than the page, and does not scroll in a frame of its own.
OVERFLOWING = """
const width = document.documentElement.clientWidth, free = e => !e || getComputedStyle(e).overflowX !== "auto" && free(e.parentElement);
if (document.documentElement.scrollWidth > width) return ["the page"];
return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > width + .5 && free(e.parentElement))
  .map(e => e.outerHTML.slice(0, 80));
"""
# Words of a picture that cover each other.
OVERLAPPING = """
const found = [], apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
for (const picture of document.querySelectorAll("svg")) {
  const words = [...picture.querySelectorAll("text")].filter(e => e.getClientRects().length);
  const places = words.map(e => e.getBoundingClientRect());
  places.forEach((a, i) => places.slice(0, i).forEach((b, j) => apart(a, b) || found.push(words[i].textContent + " | " + words[j].textContent)));
}
return found;
"""


def started_browser(profile):
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            skip(f"{program} is not there: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    browser.get("about:blank")
    browser.get_log("performance")  # of the page that a browser begins with
    return browser


def view(browser, width, scheme):
    """What is shown from here on: a window of this width, light or dark."""
    device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def check_view(browser, name):
    """Of what is shown now: nothing is wider than the page, all can be read, all that takes the keyboard has a name."""
    for audit in (OVERFLOWING, OVERLAPPING, FAINT):
        found = browser.execute_script(audit)
        assert found == [], (name, found)
    for node in browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]:
        properties = {entry["name"]: entry["value"].get("value") for entry in node.get("properties", [])}
        if not node["ignored"] and properties.get("focusable"):
            assert node["name"]["value"], (name, node)


def picture(browser, file):
    """Leaves the whole page in a file, as it is shown now."""
    size = browser.execute_script("return [window.innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    file.write_bytes(base64.b64decode(shot["data"]))


def check_logs(browser, address, expected):
    """The browser has reported no more than what holds the expected text, and has asked nobody else for anything."""
    messages = [entry["message"] for entry in browser.get_log("browser") if expected not in entry["message"]]
    assert messages == [], messages
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    assert address in asked and all(url.startswith((address, "data:")) for url in asked), asked
