import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from rankbits import BinaryCodes, affinity
from rankbits.evaluation._audit import audit
from rankbits.report import _curves, _plots


@pytest.fixture(scope="session")
def small():
    """An audit of small codes with many ties."""
    rng = np.random.default_rng(3)
    queries, database = (rng.integers(0, 2, (n, 8)) for n in (9, 60))
    known = affinity.classes(rng.integers(0, 3, 9), rng.integers(0, 3, 60))
    codes = BinaryCodes.from_bits(queries), BinaryCodes.from_bits(database)
    return audit(*codes, known, name="small codes", ks=[5, 20])


@pytest.fixture(scope="session")
def scored(small):
    """An audit like `small` with a range of AP and some printed values of one's choice."""

    def build(name, worst, expected, best, **printed):
        rows = tuple(
            replace(row, value=value, points=100 * (value - expected))
            for row in small.ap.rows
            for value in [{"worst": worst, "best": best, **printed}.get(row.key, expected)]
        )
        ap = replace(small.ap, worst=worst, expected=expected, best=best, rows=rows)
        return replace(small, name=name, ap=ap)

    return build


@pytest.fixture
def check_svg():
    """A check of what holds for every plot, drawn by a function of narrow and name."""

    def check(plot, narrow):
        svg = plot(narrow=narrow, name="figure")
        assert svg == plot(narrow=narrow, name="figure")
        assert len(svg) < 40_000
        ids = re.findall(r'\bid="([^"]*)"', svg)
        assert ids
        assert all(identifier.startswith("figure-") for identifier in ids)
        bare = re.sub(r"var\(--[a-z]+, #[0-9a-f]{6}\)", "", svg)
        assert re.findall(r"#[0-9a-f]{6}\b", bare) == []

    return check


@pytest.fixture
def painted(monkeypatch):
    """The axes of a plot, to measure what was drawn instead of reading paths."""

    def paint(plot, *data, **options):
        kept = []
        for module in (_plots, _curves):
            monkeypatch.setattr(module, "draw", lambda name, size, paint, words: kept.append(paint))
        plot(*data, **options)
        figure = Figure()
        kept[0](figure)
        return figure.axes

    return paint
