"""Figures of the documentation that are drawn from exact numbers say these numbers."""

import re

import pytest

import doubtful_items


def label_of(svg):
    return re.search(r'aria-label="([^"]*)"', svg)[1]


def test_the_doubtful_item_wins_by_cosine_and_the_sure_one_by_chance():
    """Worked by hand: q = (.6, .4), |q|² = .52; items (1, 0), (0, 1) and q itself."""
    length = 0.52**0.5
    assert doubtful_items.cosines().tolist() == pytest.approx([0.6 / length, 0.4 / length, 1])
    assert doubtful_items.chances().tolist() == pytest.approx([0.6, 0.4, 0.52])


def test_the_figure_of_doubtful_items_is_what_is_drawn_today():
    drawn = doubtful_items.doubtful_items_plot()
    assert label_of(doubtful_items.FIGURE.read_text()) == label_of(drawn)
    assert "cosine: item sure of A 0.83, item sure of B 0.55, doubtful item 1.00" in drawn
    assert "relevant: item sure of A 0.60, item sure of B 0.40, doubtful item 0.52" in drawn
