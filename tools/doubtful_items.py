"""Draws docs/figures/doubtful_items.svg: why a cosine ranks doubtful items first.

A query is 60 % of class A and 40 % of class B, by the posterior of a classifier. Three items are
ranked for it, by the cosine of the posteriors and by their inner product, which is the chance that
query and item are of one class, if each class is drawn from its posterior. No data are needed.

    python tools/doubtful_items.py [--out docs/figures/doubtful_items.svg]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankbits.report._svg import COLOURS, WIDE, draw

QUERY = (0.6, 0.4)  # the posterior: shares of class A and of class B
ITEMS = {"item sure of A": (1.0, 0.0), "item sure of B": (0.0, 1.0), "doubtful item": (0.6, 0.4)}
CLASSES = {"A": COLOURS["relevant"], "B": COLOURS["sklearn"]}
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "doubtful_items.svg"


def cosines() -> np.ndarray:
    """The cosine of the query's posterior with that of each item."""
    items = np.array(list(ITEMS.values()))
    return chances() / (np.linalg.norm(items, axis=1) * np.linalg.norm(QUERY))


def chances() -> np.ndarray:
    """How likely the query and each item are of one class: the inner product of the posteriors."""
    return np.array(list(ITEMS.values())) @ np.array(QUERY)


def doubtful_items_plot() -> str:
    """The figure as SVG: what the query and the items are, and their scores in two panels."""
    scores = {"cosine": cosines(), "chance of being relevant": chances()}
    formulas = (
        "query · item, divided\nby the lengths of both",
        "query · item; of the first item\n0.6 × 1 + 0.4 × 0 = 0.6",
    )
    words = "; ".join(
        f"{title}: "
        + ", ".join(f"{name} {value:.2f}" for name, value in zip(ITEMS, values, strict=True))
        for title, values in scores.items()
    )

    def paint(figure: Any) -> None:
        panels = figure.subplots(1, 3, sharey=True, width_ratios=(1.2, 1, 1))
        figure.get_layout_engine().set(wspace=0.06)
        paint_posteriors(panels[0])
        for axes, (title, values), formula in zip(
            panels[1:], scores.items(), formulas, strict=True
        ):
            paint_scores(axes, f"score: {title}", values)
            axes.text(0, -1.4, formula, va="center", color=COLOURS["muted"])

    description = f"Three items ranked for a query that is 60 % class A and 40 % class B. {words}."
    return draw("doubtful", (WIDE, 2.5), paint, description)


def paint_posteriors(axes: Any) -> None:
    """A bar for the query and one for each item, cut into the shares of the two classes."""
    rows = {"query": QUERY, **ITEMS}
    places = [-1.4, *range(len(ITEMS))]
    for place, shares in zip(places, rows.values(), strict=True):
        left = 0.0
        for (name, colour), share in zip(CLASSES.items(), shares, strict=True):
            axes.barh(place, share, left=left, height=0.62, color=colour, edgecolor="white")
            if share:
                text = f"{name} {100 * share:.0f} %"
                axes.text(left + share / 2, place, text, ha="center", va="center", color="white")
            left += share
    axes.axhline(-0.7, color=COLOURS["muted"], linewidth=0.7)
    axes.set_yticks(places, rows)
    axes.tick_params(axis="y", length=0, labelcolor=COLOURS["ink"])
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.set_title("classes, as the classifier sees them", fontsize=9, loc="left")
    axes.set_ylim(len(ITEMS) - 0.5, -1.8)


def paint_scores(axes: Any, title: str, values: Sequence[float]) -> None:
    """A bar for each item, with its score and its rank; the first is dark."""
    ranks = np.argsort(np.argsort(-np.asarray(values)))
    for place, (value, rank) in enumerate(zip(values, ranks, strict=True)):
        is_first = rank == 0
        colour = COLOURS["ink"] if is_first else COLOURS["range"]
        axes.barh(place, value, height=0.62, color=colour)
        text = f"{value:.2f}, first" if is_first else f"{value:.2f}"
        weight = "bold" if is_first else "normal"
        axes.text(value + 0.03, place, text, va="center", fontweight=weight)
    axes.set_xlim(0, 1.55)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.axvline(0, ymax=0.78, color=COLOURS["muted"], linewidth=0.7)
    axes.set_title(title, fontsize=9, loc="left")


def main() -> None:
    """Write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FIGURE)
    parser.parse_args().out.write_text(doubtful_items_plot() + "\n")


if __name__ == "__main__":
    main()
