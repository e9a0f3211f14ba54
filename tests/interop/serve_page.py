"""Chromium shows the page of `capstan serve` and a test uses it: at 1280 and 400 pixels, light and dark, by keyboard too.

    python tests/interop/serve_page.py [FOLDER]      (leaves pictures in the folder)

Needs the Python package selenium, chromium and chromium-driver of Debian, and a built program with the server; says so
and skips otherwise.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

from browser import VIEWS, check_logs, check_view, picture, started_browser, view
from sample_run import PROGRAM, SampleRun, serving
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

CLASSES = {"money": ["bank", "bond", "market", "stock"], "sport": ["ball", "coach", "goal", "match"]}


def sample_runs():
    """A language model that is slow enough to be stopped, without a limit of positions, and a linear classifier."""
    run = SampleRun()
    run.train("model.layers=[{mixer: aft-simple, feed_forward: {type: gelu, expansion: 2}}]", "model.positions=none",
              "model.width=768")
    rows = [f"{label}\tthe {words[i % 4]} of day {i % 31} and the {words[i // 4 % 4]}\n"
            for i in range(100) for label, words in CLASSES.items()]
    (run.place / "train.tsv").write_text("".join(rows))
    recipe = pathlib.Path(__file__).resolve().parents[2] / "configs" / "classify.yaml"
    subprocess.run([str(PROGRAM), "train", "--config", str(recipe), "--set", "name=topics", "data.train=[train.tsv]", "data.test=[]"],
                   cwd=run.place, check=True)
    return run


class Page:
    """The page in a browser, and what every view of it must hold."""

    def __init__(self, browser, address, run, pictures):
        self.browser, self.address, self.run, self.pictures = browser, address, run, pictures

    def open(self, width, scheme):
        self.view = f"{width}-{scheme}"
        view(self.browser, width, scheme)
        self.begin()

    def begin(self):
        """Opens the page anew; it lists the models when it has the token."""
        self.browser.get(self.address)
        self.until(lambda: "Authorization: Bearer" in self.text("error"))
        self.press(Keys.TAB, Keys.TAB, "secret", Keys.TAB)
        self.until(lambda: "topics" in self.text("model") and self.text("error") == "")

    def at(self, name):
        return self.browser.find_element(By.ID, name)

    def text(self, name):
        return self.at(name).get_attribute("textContent")

    def until(self, condition):
        for _ in range(200):
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.view}: waited in vain; error: {self.text('error')!r}, note: {self.text('note')!r}")

    def finished(self):
        return self.at("go").is_enabled()

    def write(self, name, value):
        self.at(name).clear()
        self.at(name).send_keys(value)

    def choose(self, model):
        Select(self.at("model")).select_by_visible_text(model)

    def go(self):
        self.at("go").click()
        self.until(self.finished)

    def press(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)

    def focused(self):
        return self.browser.switch_to.active_element.get_attribute("id")

    def check(self, name):
        check_view(self.browser, (self.view, name))
        if self.pictures:
            picture(self.browser, self.pictures / f"{name}-{self.view}.png")


def writes_and_stops(page):
    page.choose("sample")
    page.write("prompt", "the tape")
    page.write("max_tokens", "40")
    page.write("seed", "3")
    page.go()
    written = page.text("text")
    command = [str(PROGRAM), "generate", str(page.run), "--prompt", "the tape", "-n", "40", "--seed", "3", "--temperature", "0.8",
               "--min-p", "0.05"]
    assert written + "\n" == subprocess.run(command, capture_output=True, text=True, check=True).stdout, written
    assert page.text("note").startswith("40 tokens, ") and "seed 3, ended by length" in page.text("note"), page.text("note")
    span = page.browser.find_elements(By.CSS_SELECTOR, "#text span")[5]
    webdriver.ActionChains(page.browser).move_to_element(span).perform()
    assert page.text("scores").startswith(json.dumps(span.text) + " had ") and page.text("scores").count("%") == 6, page.text("scores")
    page.check("text")
    page.write("max_tokens", "20000")
    page.at("go").click()
    page.until(lambda: len(page.text("text")) > 30)
    assert not page.at("go").is_enabled(), (page.text("error"), page.text("note"), len(page.text("text")))
    page.at("stop").click()
    page.until(page.finished)
    assert page.text("note").endswith(", stopped") and 8 < len(page.text("text")) < 20000, page.text("note")


def classifies(page):
    page.choose("topics")
    assert not page.at("knobs").is_displayed()
    page.write("prompt", "the coach of day 3 and the bond")
    page.go()
    assert page.text("note") in CLASSES and not page.at("text").is_displayed(), page.text("note")
    bars = [bar.text.split("\n") for bar in page.browser.find_elements(By.CSS_SELECTOR, ".bar")]
    assert sum(float(text.rstrip(" %")) for _, text in bars[:2]) > 99.9, bars
    assert {name for name, _ in bars[:2]} == set(CLASSES) and {"the coach", "bond"} < {name for name, _ in bars[2:]}, bars
    assert {text[0] for _, text in bars[2:]} == {"+", "\u2212"}, bars
    page.check("labels")


def shows_errors(page):
    page.choose("sample")
    page.write("max_tokens", "1000000")
    page.go()
    assert page.text("error").startswith("max_tokens: expected a whole number from 0 to 20000, got 1000000"), page.text("error")
    page.check("error")
    page.write("max_tokens", "5")
    page.write("temperature", "-1")  # the browser itself refuses it, and shows why
    page.at("go").click()
    assert not page.browser.execute_script("return arguments[0].checkValidity()", page.at("temperature"))
    page.write("temperature", "1")
    page.go()
    assert page.text("error") == "" and page.text("note").startswith("5 tokens"), page.text("error")


def works_by_keyboard(page):
    page.begin()
    page.press(Keys.SHIFT, Keys.TAB, Keys.TAB, Keys.NULL)
    order = ["model"]
    assert page.focused() == "model"
    for _ in range(8):
        page.press(Keys.TAB)
        order.append(page.focused())
        assert page.browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid", order
    assert order == ["model", "token", "prompt", "max_tokens", "temperature", "top_p", "min_p", "seed", "go"], order
    page.press(Keys.SHIFT, *[Keys.TAB] * 6, Keys.NULL)
    page.press("the tape", Keys.CONTROL, Keys.ENTER, Keys.NULL)
    page.until(lambda: page.finished() and "ended by" in page.text("note"))
    before = page.text("note")
    page.press(*[Keys.TAB] * 6, Keys.ENTER)  # the button
    page.until(lambda: page.finished() and "ended by" in page.text("note") and page.text("note") != before)  # another seed
    page.press(Keys.TAB)
    assert page.focused() == "text", page.focused()
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    first = page.browser.find_elements(By.CSS_SELECTOR, "#text span")[1].get_attribute("textContent")
    assert page.text("scores").startswith(json.dumps(first) + " had "), page.text("scores")
    page.check("keyboard")
    page.browser.find_element(By.ID, "model").send_keys("t")  # chooses by the first letter
    assert page.at("model").get_attribute("value") == "topics"


def faults_are_found(page):
    """A fault of each kind, planted, does not pass."""
    for fault in ("document.body.style.minWidth = '2000px'", "document.body.style.color = '#999'",
                  "document.body.append(document.createElement('button'))",
                  "document.body.innerHTML += '<svg><text y=20>one</text><text x=9 y=20>two</text></svg>'"):
        page.open(400, "light")
        page.browser.execute_script(fault)
        try:
            page.check("fault")
        except AssertionError:
            continue
        raise SystemExit(f"a fault was not found: {fault}")


def main():
    run = sample_runs()
    pictures = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    browser = started_browser(run.place / "profile")
    os.environ["CAPSTAN_TOKEN"] = "secret"
    process, address = serving(run.place / "runs" / "sample", run.place / "runs" / "topics", "--max-tokens", "20000")
    try:
        page = Page(browser, address, run.folder, pictures)
        for width, scheme in VIEWS:
            page.open(width, scheme)
            for step in (writes_and_stops, classifies, shows_errors, works_by_keyboard):
                step(page)
        check_logs(browser, address, "status of 40")  # for requests without a token, and a wrong one
        faults_are_found(page)
        print("the page works at 1280 and 400 pixels, light and dark")
    finally:
        browser.quit()
        process.terminate()
        assert process.wait(timeout=40) == 0


if __name__ == "__main__":
    main()
