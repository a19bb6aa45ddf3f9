"""Files of docs/measurements are tables that somebody can measure again."""

import re
from pathlib import Path

import pytest

import measurements
from docs_generator.tables import measurement_table

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {path.name: path.read_text() for path in DOCS.glob("*.md")}


@pytest.mark.parametrize("name", measurements.names())
def test_a_file_says_by_which_command_and_at_which_commit_it_was_measured(name):
    content = measurements.load(name)
    assert re.match(r"(make|python|rankbits) \w", content["command"])
    commits = content["recorded"] if "recorded" in content else [content["commit"]]
    assert len(commits) in (1, len(content["rows"]))
    assert all(re.fullmatch(r"[0-9a-f]{7,40}\+?", commit) for commit in commits)


@pytest.mark.parametrize("name", measurements.names())
def test_every_row_of_a_file_has_every_column(name):
    content = measurements.load(name)
    assert content["rows"]
    assert {len(row) for row in content["rows"]} == {len(content["columns"])}


@pytest.mark.parametrize("name", measurements.names())
def test_every_file_is_shown_or_linked(name):
    block, link = f"<!-- generated: measurement {name} -->", f"measurements/{name}.json"
    assert any(block in text or link in text for text in PAGES.values())


@pytest.mark.parametrize("page", ["results.md", "speed.md"])
def test_every_table_of_figures_comes_from_a_file(page):
    text = re.sub(r"<!-- generated: .*?<!-- end -->", "", PAGES[page], flags=re.DOTALL)
    assert "|---" not in text


def test_a_table_names_its_commits_once(tmp_path, monkeypatch):
    monkeypatch.setattr(measurements, "FOLDER", tmp_path)
    monkeypatch.setattr(measurements, "commit", lambda: "0123abc")
    monkeypatch.setattr(measurements, "machine", lambda: "2 cores")
    measurements.save(tmp_path / "speed.json", "make bench", ["Bits", "ms"], [[8, 1.5]], "Idle.")
    assert measurement_table("speed") == (
        "| Bits | ms |\n|---|---|\n| 8 | 1.5 |\n\nIdle. `make bench` at commit 0123abc; 2 cores."
    )
