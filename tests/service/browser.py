"""A real Chromium for tests of the page, and what the page shows there."""

import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = "/usr/bin/chromium"
FIGURES = Path(__file__).parents[2] / "docs" / "figures"
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@contextmanager
def chromium(*arguments):
    """A browser; without one the test is skipped, with a sentence."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not os.path.exists(CHROMIUM):
        pytest.skip(f"{CHROMIUM} is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", *arguments]
        )
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page of the server, and everything it asked for or complained about."""

    def __init__(self, browser, url, path="/", size="desktop", scheme="light"):
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=size == "phone",
        )
        self.page, self.url = self.context.new_page(), url
        self.page.set_default_timeout(10_000)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.open(path)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
        if not any(error):
            hosts = {re.match(r"(blob:|data:)?(\w+://[^/]+)?", url)[2] for url in self.requests}
            assert hosts <= {self.url, None}, hosts
            # A refused request is a line in the console of Chromium; all others are bugs.
            assert [line for line in self.complaints if "status of 4" not in line] == []

    def open(self, path):
        self.page.goto(self.url + path)
        self.settle()

    def settle(self):
        """Wait until the last search is shown."""
        self.page.wait_for_function(
            """() => {
                const find = (selector) => document.querySelector(selector);
                const isDone = find('#status')?.textContent || !find('#problem')?.hidden;
                return isDone && !find('#results[aria-busy]');
            }"""
        )
        self.page.wait_for_timeout(170)  # a slider waits before it searches
        self.page.wait_for_function("() => !document.querySelector('#results[aria-busy]')")

    def click(self, selector):
        self.page.locator(selector).first.click()
        self.settle()

    def choose(self, way):
        """Choose how to search."""
        self.page.locator(".ways label", has_text=way).click()

    def slide(self, selector, value):
        """Move a slider as a script of the browser would, with its events."""
        self.page.locator(selector).evaluate(
            "(slider, value) => { slider.value = value; "
            "slider.dispatchEvent(new Event('input', { bubbles: true })); }",
            value,
        )
        self.settle()

    def ids(self, which=0):
        """Items of a list of results, in order."""
        links = self.page.locator(".list").nth(which).locator("a[data-item]")
        return [int(one) for one in links.evaluate_all("all => all.map(a => a.dataset.item)")]

    def headings(self):
        """What is written above each group of ties."""
        return self.page.locator("h4").all_inner_texts()

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def screenshot(self, name, at="body"):
        """Kept in the documentation where RANKBITS_SCREENSHOTS is set, else taken and dropped."""
        # Pictures below the fold are loaded when they are scrolled to.
        self.page.locator("img.thumb").evaluate_all("all => all.forEach(i => i.loading = 'eager')")
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('img.thumb')].every(i => i.complete)"
        )
        self.page.locator(at).evaluate("place => place.scrollIntoView({ block: 'start' })")
        data = self.page.screenshot()
        if os.environ.get("RANKBITS_SCREENSHOTS"):
            (FIGURES / f"{name}.png").write_bytes(data)
        assert len(data) > 10_000


def accessibility_violations(page):
    """What axe finds against WCAG 2.2 A and AA and best practice, as sentences."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]
