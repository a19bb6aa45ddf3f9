"""A page of results on paper, in a real Chromium."""

import pytest

from made_results import write_part
from rankbits import papers
from service.browser import chromium

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.slow  # it starts a browser


def test_paper_shows_where_numbers_come_from_and_keeps_tables_whole(tmp_path):
    for part in papers.exhibit("talr-table2").parts:
        write_part(tmp_path, part)
    (page_file,) = papers.write_report(tmp_path, ("html",)).values()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"file://{page_file}")
        origin = page.locator("details dl").first
        assert not origin.is_visible()  # closed, on a screen
        page.emulate_media(media="print")
        assert origin.is_visible()
        assert "Split hashes" in origin.inner_text()
        rule = "element => getComputedStyle(element).breakInside"
        assert page.locator(".scroll").first.evaluate(rule) == "avoid"
