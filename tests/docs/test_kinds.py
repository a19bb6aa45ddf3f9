"""The documentation names every kind of index with its options, and every public method."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from rankbits.index import Collection, HammingIndex, TablesIndex, engines

DOCS = Path(__file__).parents[2] / "docs"
SEARCH = (DOCS / "search.md").read_text()


@pytest.mark.parametrize("name", ["auto", "scan", "mih", "ivf"])
def test_the_table_of_kinds_says_what_each_engine_says_of_itself(name):
    engine = engines.get(name)
    (row,) = re.findall(rf'^\| `"{name}"` \|(.*)\|$', SEARCH, re.MULTILINE)
    returns, how, options, _ = (cell.strip() for cell in row.split("|"))
    assert (returns == "everything") == engine.is_exact
    assert how == engine.summary
    assert re.findall(r"`(\w+)`", options) == [f.name for f in fields(engine.options_class)]
    assert f"`{name}`" in (DOCS / "cli.md").read_text()


@pytest.mark.parametrize("cls", [HammingIndex, Collection, TablesIndex])
def test_every_public_method_is_named(cls):
    names = [name for name in dir(cls) if not name.startswith("_") and name != "of_state"]
    missing = [name for name in names if not re.search(rf"\b{name}\b", SEARCH)]
    assert missing == []
