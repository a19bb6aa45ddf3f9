"""The figures of dispersion: how items share codes, and what spreading them costs.

The first follows Figure 8 of P. L. K. Ding, Y. Li and B. Li, "Mean local group average precision
(mLGAP): a new performance metric for hashing-based retrieval", 2018, with the codes in order of
use, so that any code length fits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.histogram import distinct_codes
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain

Point = tuple[float, float, str]  # x, y, and what to write beside it
_STEPS = 120  # of a panel, which keeps the file small
_LINES = (("relevant", "o"), ("irrelevant", "s"), ("sklearn", "D"), ("trec", "^"))


def items_by_code(codes: BinaryCodes) -> np.ndarray:
    """Items on each code that is used, the most used first.

    >>> items_by_code(BinaryCodes.from_bits([[0, 1], [1, 1], [0, 1]])).tolist()
    [2, 1]
    """
    return np.sort(distinct_codes(codes)[1])[::-1]


def code_use_plot(
    databases: Mapping[str, BinaryCodes | np.ndarray],
    *,
    columns: int | None = None,
    narrow: bool = False,
    name: str = "use",
) -> str:
    """One panel for each database: items on its codes, from the most to the least used.

    Parameters
    ----------
    databases : codes by the name that the panel shows; or the items on each used code, the most
        used first
    columns : panels in a row; None puts all of them in one
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    if not databases:
        raise InputError("databases must have at least one name with its codes, it is empty")
    used = {
        plain(label, 30): items_by_code(codes) if isinstance(codes, BinaryCodes) else codes
        for label, codes in databases.items()
    }
    columns = (2 if columns else 1) if narrow else columns or len(used)
    rows = -(-len(used) // columns)
    words = "; ".join(
        f"{label}: {len(items):,} codes, {items[0]:,} items on the most used one"
        for label, items in used.items()
    )

    def paint(figure: Any) -> None:
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes, (label, items) in zip(panels.flat, used.items(), strict=False):
            _use(axes, label, items)
        panels.flat[0].set_ylim(0.5, 1.4 * max(items[0] for items in used.values()))  # shared
        for axes in list(panels.flat)[len(used) :]:
            axes.set_visible(False)
        for axes in panels[:, 0]:
            axes.set_ylabel("items on the code")
        for axes in panels[-1]:
            axes.set_xlabel("codes, the most used first")

    size = (NARROW, 1.8 * rows + 0.4) if narrow else (WIDE, 2.2 * rows + 0.4)
    return draw(name, size, paint, f"Items on each code. {words}.")


def _use(axes: Any, label: str, items: np.ndarray) -> None:
    """A stepped area on logarithmic axes; steps are thinned where they would not be told apart."""
    ranks = np.unique(np.geomspace(1, len(items), _STEPS).round().astype(np.int64))
    edges = np.append(ranks, len(items) + 1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda number, _: f"{number:,.0f}")  # no mathematics in text
    colour = COLOURS["relevant"]
    axes.stairs(items[ranks - 1], edges, baseline=0.5, fill=True, color=COLOURS["range"])
    axes.stairs(items[ranks - 1], edges, baseline=0.5, color=colour, linewidth=1.3)
    axes.set_title(f"{label}: {len(items):,} codes", fontsize=9, loc="left")
    axes.tick_params(axis="both", which="minor", length=0)
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def trade_plot(
    lines: Mapping[str, Sequence[Point]],
    labels: tuple[str, str],
    *,
    narrow: bool = False,
    name: str = "trade",
) -> str:
    """What one score costs in another: a line of points for each name, in the order given.

    Parameters
    ----------
    lines : points (x, y, text) by the name of the line
    labels : of the two axes
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    if not lines or not all(lines.values()) or len(lines) > len(_LINES):
        raise InputError(
            f"lines must have 1 to {len(_LINES)} names, each with at least one point, got "
            f"{ {label: len(points) for label, points in lines.items()} }"
        )
    words = "; ".join(
        f"{plain(label, 30)}: " + ", ".join(f"{text} ({x:.3f}, {y:.3f})" for x, y, text in points)
        for label, points in lines.items()
    )

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for (token, mark), (label, points) in zip(_LINES, lines.items(), strict=False):
            x, y, texts = zip(*points, strict=True)
            style = {"color": COLOURS[token], "linewidth": 1.4, "markersize": 4.5}
            axes.plot(x, y, mark + "-", label=plain(label, 30), **style)
            for place, text in zip(zip(x, y, strict=True), texts, strict=True):
                _beside(axes, plain(text, 12), place)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.margins(0.08)
        axes.grid()
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8)

    size = (NARROW, 3.0) if narrow else (WIDE, 3.6)
    return draw(name, size, paint, f"{labels[0]} against {labels[1]}. {words}.")


def _beside(axes: Any, text: str, at: tuple[float, float]) -> None:
    style = {"color": COLOURS["muted"], "fontsize": 8, "va": "bottom"}
    axes.annotate(text, at, xytext=(4, 3), textcoords="offset points", **style)
