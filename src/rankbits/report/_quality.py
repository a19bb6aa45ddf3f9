"""The figure of quality against cost: how well items are ranked, for how many bytes or how long.

One panel a set of data, one line a method, one point a setting; up and to the left is better.
"""

from collections.abc import Collection, Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

from rankbits._check import extra
from rankbits.errors import InputError
from rankbits.report._search import LINES
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain

Cost = tuple[float, float, float]  # cost, mean quality, and its standard deviation
Panel = Mapping[str, Sequence[Cost]]
_LINES = (*LINES, ("class", "<"), ("index", "h"))
_WHOLE = 100.0  # from here on costs are written without decimals
_FEW_TICKS = 4  # costs that are written below the axis as they are
_CROWDED = 30.0  # largest cost over smallest, where three numbers a power of ten are too many


def quality_plot(
    panels: Mapping[str, Panel],
    cost: str,
    *,
    dashed: Collection[str] = (),
    references: Mapping[str, float] | None = None,
    narrow: bool = False,
    name: str = "quality",
) -> str:
    """Quality against cost, on a logarithmic axis of cost; a bar is a standard deviation each way.

    Parameters
    ----------
    panels : mapping of str to mapping of str to points
        The title of each panel, which says what quality is there, and its lines: points (cost,
        mean, standard deviation) by the name of the method.
    cost : str
        What the horizontal axis shows, with its unit.
    dashed : collection of str, default=()
        Names of methods whose lines are dashed, to tell two groups of methods apart.
    references : mapping of str to float, or None, default=None
        A quality for some of the panels that is drawn as a level line, named "float vectors".
    narrow : bool, default=False
        Whether the figure is for a narrow screen: panels stand one below the other.
    name : str, default="quality"
        What the parts of the figure are called within a page.
    """
    names = list(dict.fromkeys(label for lines in panels.values() for label in lines))
    _require_panels(panels, names)
    references = references or {}

    def paint(figure: Any) -> None:
        shape = (len(panels), 1) if narrow else (1, len(panels))
        all_axes = figure.subplots(*shape, squeeze=False, sharex=True).flat
        for axes, (title, lines) in zip(all_axes, panels.items(), strict=True):
            if title in references:
                _paint_reference(axes, references[title])
            for label, points in lines.items():
                _paint_line(axes, names.index(label), label, points, is_dashed=label in dashed)
            axes.set_title(plain(title, 40), fontsize=9, loc="left")
            axes.grid()
            axes.set_axisbelow(True)
        _paint_costs(all_axes[0], panels)
        all_axes[-1 if narrow else len(panels) // 2].set_xlabel(cost)
        handles = _handles(figure)
        options = {"frameon": False, "fontsize": 8, "ncols": 2 if narrow else 5}
        figure.legend(handles.values(), handles, loc="outside lower center", **options)

    rows = len(panels) if narrow else 1
    size = (NARROW if narrow else WIDE, 2.3 * rows + (1.2 if narrow else 1.0))
    return draw(name, size, paint, f"Quality against {cost}. {_words(panels)}.")


def _paint_reference(axes: Any, quality: float) -> None:
    style = {"color": COLOURS["muted"], "linewidth": 1.0, "linestyle": ":"}
    axes.axhline(quality, label="float vectors", **style)


def _paint_line(
    axes: Any, number: int, label: str, points: Sequence[Cost], *, is_dashed: bool
) -> None:
    """A line through the points in the order given, with bars where the spread is known."""
    token, mark = _LINES[number]
    costs, means, spreads = zip(*points, strict=True)
    style = {"color": COLOURS[token], "linewidth": 1.4, "markersize": 4.5}
    dashes = "--" if is_dashed else "-"
    axes.plot(costs, means, mark + dashes, label=plain(label, 30), **style)
    if any(spreads):
        axes.errorbar(costs, means, spreads, fmt="none", ecolor=COLOURS[token], elinewidth=0.8)


def _paint_costs(axes: Any, panels: Mapping[str, Panel]) -> None:
    """A logarithmic axis with plain numbers, which all panels share: the costs where they are few.

    Numbers are 1, 2 and 5 times powers of ten, or 1 and 3 times where these would be crowded.
    """
    axes.set_xscale("log")
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    costs = sorted({point[0] for point in points})
    ticks = costs
    if len(costs) > _FEW_TICKS:
        factors = (1, 2, 5) if costs[-1] < _CROWDED * costs[0] else (1, 3)
        powers = [10.0**power for power in range(_decade(costs[0]), _decade(costs[-1]) + 1)]
        ticks = [factor * power for power in powers for factor in factors]
    axes.set_xlim(costs[0] / 1.25, costs[-1] * 1.25)
    axes.set_xticks([tick for tick in ticks if costs[0] / 1.25 <= tick <= costs[-1] * 1.25])
    axes.xaxis.set_major_formatter(lambda number, _: _number(number))
    axes.xaxis.set_minor_locator(extra("matplotlib.ticker", "a plot", "report").NullLocator())


def _number(cost: float) -> str:
    """A cost in plain digits, which `g` alone would write as a power of ten from 10,000 on."""
    return f"{cost:,.0f}" if cost >= _WHOLE else f"{cost:.3g}"


def _decade(cost: float) -> int:
    return floor(log10(cost))


def _handles(figure: Any) -> dict[str, Any]:
    """What the legend shows, each label once, the reference last."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if "float vectors" in handles:
        handles["float vectors"] = handles.pop("float vectors")
    return handles


def _words(panels: Mapping[str, Panel]) -> str:
    """All numbers of the figure, for those who cannot see it."""
    return "; ".join(
        f"{plain(title, 40)}, {plain(label, 30)}: "
        + ", ".join(f"{mean:.3f} at {_number(cost)}" for cost, mean, _ in points)
        for title, lines in panels.items()
        for label, points in lines.items()
    )


def _require_panels(panels: Mapping[str, Panel], names: Sequence[str]) -> None:
    """Refuse what cannot be drawn."""
    is_full = all(lines and all(lines.values()) for lines in panels.values())
    if not panels or not is_full or len(names) > len(_LINES):
        raise InputError(
            "panels must have at least one panel, each with lines of at least one point, and at "
            f"most {len(_LINES)} names in all, got "
            f"{ {title: list(lines) for title, lines in panels.items()} }"
        )
    for title, lines in panels.items():
        for label, points in lines.items():
            for point in points:
                if not (all(isfinite(number) for number in point) and point[0] > 0):
                    raise InputError(
                        "panels must have finite numbers, and costs above 0, got "
                        f"{point} for {label!r} of {title!r}"
                    )
