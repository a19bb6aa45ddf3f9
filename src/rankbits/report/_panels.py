"""Curves in panels: one line a method, one point a setting, with the spread over seeds.

Lines differ in color, marker and dashes at once, so that people with any color vision and readers
of a print in gray tell them apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankbits._check import extra
from rankbits.errors import InputError
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain

Point = tuple[float, float, float]  # x, mean, and standard deviation
LINES = (  # colour, marker and dashes, in the order in which lines are drawn
    ("relevant", "o", "-"),
    ("irrelevant", "s", "-"),
    ("trec", "^", "-"),
    ("sklearn", "D", "-"),
    ("argsort", "v", "--"),
    ("ink", "*", "--"),
    ("worst", "X", "--"),
    ("shuffled", "h", ":"),
    ("class", "<", ":"),
    ("index", "P", ":"),
)
_DENSE_RATIO = 100  # of the largest to the smallest value


@dataclass(frozen=True)
class CurvePanel:
    """One panel of curves.

    Attributes
    ----------
    title : above the panel
    x_label, y_label : of the axes
    lines : points (x, mean, standard deviation) by the name of the line
    is_log : whether the vertical axis is logarithmic
    ticks : where the horizontal axis has numbers; none leaves it to the drawing
    """

    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, Sequence[Point]]
    is_log: bool = False
    ticks: tuple[float, ...] = field(default=())


def curves_plot(panels: Sequence[CurvePanel], *, narrow: bool = False, name: str = "curves") -> str:
    """Panels of curves with one legend.

    Parameters
    ----------
    panels : what each panel shows; a name that stands in several panels is one line in all of them
    narrow : whether the figure is for a narrow screen: panels stand one below the other
    name : what the parts of the figure are called within a page
    """
    names = list(dict.fromkeys(label for panel in panels for label in panel.lines))
    if not names or len(names) > len(LINES):
        raise InputError(f"panels must have 1 to {len(LINES)} lines in all, got {len(names)}")

    def paint(figure: Any) -> None:
        shape = (len(panels), 1) if narrow else (-(-len(panels) // 2), min(2, len(panels)))
        all_axes = list(figure.subplots(*shape, squeeze=False).flat)
        for axes, panel in zip(all_axes, panels, strict=False):
            _paint_panel(axes, panel, names)
        for axes in all_axes[len(panels) :]:
            axes.set_visible(False)
        handles = _handles(figure, names)
        options = {"frameon": False, "fontsize": 8, "ncols": 3 if narrow else 5}
        figure.legend(handles, names, loc="outside lower center", **options)

    rows = len(panels) if narrow else -(-len(panels) // 2)
    n_legend_rows = -(-len(names) // (3 if narrow else 5))
    height = (2.3 if narrow else 2.7) * rows + 0.2 * n_legend_rows + 0.2
    return draw(name, (NARROW if narrow else WIDE, height), paint, _words(panels))


def _paint_panel(axes: Any, panel: CurvePanel, names: list[str]) -> None:
    for label, points in panel.lines.items():
        token, mark, dashes = LINES[names.index(label)]
        x, means, spreads = zip(*points, strict=True)
        style = {"color": COLOURS[token], "linewidth": 1.3, "markersize": 4.5}
        axes.plot(x, means, mark + dashes, label=plain(label, 30), **style)
        if any(spreads):
            axes.errorbar(x, means, spreads, fmt="none", ecolor=COLOURS[token], elinewidth=0.8)
    axes.set_title(plain(panel.title, 60), fontsize=9, loc="left")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.is_log:
        _make_logarithmic(axes, panel)
    if panel.ticks:
        axes.set_xticks(list(panel.ticks), [f"{tick:g}" for tick in panel.ticks])
    else:
        axes.xaxis.get_major_locator().set_params(nbins=5)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.grid()
    axes.set_axisbelow(True)


def _make_logarithmic(axes: Any, panel: CurvePanel) -> None:
    """Numbers at 1, 2 and 5 of each power of ten, unless that would be too many of them."""
    ticker = extra("matplotlib.ticker", "a plot", "report")
    means = [mean for points in panel.lines.values() for _, mean, _ in points]
    digits = (1, 2, 5) if max(means) < _DENSE_RATIO * min(means) else (1,)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=digits))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def _handles(figure: Any, names: list[str]) -> list[Any]:
    """A handle for each name, from the first panel that has it."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return [found[plain(label, 30)] for label in names]


def _words(panels: Sequence[CurvePanel]) -> str:
    """All numbers of the figure, for those who cannot see it."""
    return ". ".join(
        f"{plain(panel.title, 60)}, {panel.y_label} against {panel.x_label}: "
        + "; ".join(
            f"{plain(label, 30)} " + ", ".join(f"{mean:.4g} at {x:g}" for x, mean, _ in points)
            for label, points in panel.lines.items()
        )
        for panel in panels
    )
