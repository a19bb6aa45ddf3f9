"""What is generated is up to date, and says what the code does."""

import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import rankbits
from docs_generator import cards, pages, tables
from docs_generator.architecture import architecture_figure, layers
from docs_generator.commands import command_paths
from docs_generator.docstrings import as_markdown
from rankbits import methods

ROOT = Path(__file__).parents[2]


def test_every_generated_page_and_table_is_up_to_date():
    pytest.importorskip("torch")
    places = [str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-m", "docs_generator", "--check"]  # other tests register things
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_what_lies_between_the_markers_is_replaced(monkeypatch):
    monkeypatch.setitem(pages.BLOCKS, "kinds", lambda: "| new |\n|---|")
    monkeypatch.setitem(pages.BLOCKS, "method names", lambda: "`new`")
    text = "a <!-- generated: kinds -->\nold\n<!-- end --> b"
    line = "| c | <!-- generated: method names -->old<!-- end --> |"
    assert pages.fill_blocks(f"{text}\n{line}\n") == (
        "a <!-- generated: kinds -->\n\n| new |\n|---|\n\n<!-- end --> b\n"
        "| c | <!-- generated: method names -->`new`<!-- end --> |\n"
    )


@pytest.mark.parametrize(
    ("page", "block"),
    [
        ("docs/evaluate.md", "metrics"),
        ("docs/benchmark.md", "protocols"),
    ],
)
def test_the_tables_are_where_readers_look_for_them(page, block):
    assert f"<!-- generated: {block} -->" in (ROOT / page).read_text()


def test_every_method_has_one_card():
    blocks = re.findall(
        "<!-- generated: cards (.*?) -->", (ROOT / "docs" / "methods.md").read_text()
    )
    assert sorted(" ".join(blocks).split()) == sorted(methods.names())


def test_a_card_lists_the_parameters_of_the_method_alone():
    pytest.importorskip("torch")
    assert cards.own_parameters(methods.get("dpn")) == ["margin=0.5", "center_seed=0"]
    assert cards.own_parameters(methods.get("sklsh")) == ["gamma=None"]


@pytest.mark.parametrize("name", methods.names())
def test_a_method_that_learns_from_x_alone_does_not_look_at_y(name):
    hasher = methods.get(name, n_bits=4)
    if tables.trains_by_gradient(hasher):
        pytest.skip("a fit takes too long; its tags are tested with the methods")
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=0)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 8)), rng.integers(0, 3, 60)
    first, second = (hasher.fit(x, labels).transform(x) for labels in (y, np.roll(y, 1)))
    assert (first == second).all() == (tables.learns_from(hasher) == "X")


def test_the_page_of_the_command_line_explains_every_command():
    text = (ROOT / "docs" / "cli.md").read_text()
    headings = set(re.findall(r"^## (.*)$", text, re.MULTILINE))
    assert {" ".join(path.split()[:2]) for path in command_paths()} <= headings


def test_the_picture_of_the_packages_has_each_of_them_once():
    packages = sorted(
        module.name
        for module in pkgutil.iter_modules(rankbits.__path__)
        if not module.name.startswith("_")
    )
    assert sorted(name for row in layers() for name in row if name[0] != "_") == packages
    assert all(f">{name}</text>" in architecture_figure() for name in set(packages) - {"errors"})


def test_docstrings_become_markdown():
    text = "Adds one [1]_.\n\n>>> add(1)\n2\n\n.. [1] Peano.\n\nNotation:\n    n  a number"
    assert as_markdown(text) == (
        "Adds one [1].\n\nExamples\n--------\n>>> add(1)\n2\n\n"
        "References\n----------\n[1] Peano.\n\nNotation:\n\n    n  a number"
    )


def test_what_stands_in_place_of_a_type_becomes_the_description():
    text = "Find.\n\nParameters\n----------\na, b : what to find\nk : int\n    How many.\n\nc : d"
    assert as_markdown(text) == text.replace("a, b : what", "a, b\n    what").replace(
        "c : d", "c\n    d"
    )
    assert as_markdown("a : b") == "a : b"


def test_sentences_after_the_parameters_become_notes():
    entry = "Find.\n\nParameters\n----------\na : int\n    A."
    text = f"{entry}\n\nIt is fast.\n\nReturns\n-------\nc : int"
    assert as_markdown(text) == text.replace("It is fast", "Notes\n-----\nIt is fast")


def test_the_readme_names_every_extra_that_users_install():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"dev", "docs", "test"}
    table = (ROOT / "README.md").read_text().split("| Extra |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == extras


def test_the_readme_is_read_in_five_minutes():
    assert len((ROOT / "README.md").read_text().split()) <= 5 * 220
