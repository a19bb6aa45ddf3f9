"""The ranges of tie-breaking: the figure that says why ties matter.

After Figure 3 of K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as Tie-Aware Learning to
Rank", CVPR 2018: for each code length and method a bar from the mean AP that the worst order of all
ties would print to that of the best, and a dot at the expectation over all orders, AP_T. Where bars
of two methods overlap, tie-breaking can decide which looks better; the dots cannot be argued with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbits.errors import InputError
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain


@dataclass(frozen=True)
class TieRange:
    """AP of one method at one length.

    Attributes
    ----------
    label : the method
    worst, exact, best : mean AP of the worst order of ties, over all orders, of the best order
    published : AP_T of the paper, or None
    is_marked : whether the figure is about this method, which is drawn in full colour
    """

    label: str
    worst: float
    exact: float
    best: float
    published: float | None = None
    is_marked: bool = False


def tie_range_plot(
    panels: Mapping[str, Sequence[TieRange]], *, narrow: bool = False, name: str = "ties"
) -> str:
    """A panel for each code length, a bar for each method, all on one axis of AP.

    Parameters
    ----------
    panels : ranges by the title of the panel, methods in the order in which they stand
    narrow : whether the figure is for a narrow screen: panels stand one below the other
    name : what the parts of the figure are called within a page
    """
    if not panels or not all(panels.values()):
        raise InputError("panels must have at least one title, each with at least one range")
    values = [end for ranges in panels.values() for one in ranges for end in _ends(one)]
    room = 0.04 * (max(values) - min(values)) + 1e-3
    limits = min(values) - room, max(values) + room
    most = max(len(ranges) for ranges in panels.values())

    def paint(figure: Any) -> None:
        shape = (len(panels), 1) if narrow else (1, len(panels))
        all_axes = list(figure.subplots(*shape, squeeze=False, sharex=True).flat)
        for place, (axes, (title, ranges)) in enumerate(zip(all_axes, panels.items(), strict=True)):
            _paint_panel(axes, title, ranges)
            axes.set_xlim(*limits)
            if place and not narrow:
                axes.set_yticklabels([])
        for axes in all_axes[-1:] if narrow else all_axes:
            axes.set_xlabel("mean AP")
        handles = _handles(all_axes[0])
        options = {"frameon": False, "fontsize": 8, "ncols": 1 if narrow else 3}
        figure.legend(handles.values(), handles, loc="outside lower center", **options)

    size = (
        (NARROW, (0.26 * most + 0.5) * len(panels) + 1.1) if narrow else (WIDE, 0.31 * most + 1.3)
    )
    return draw(name, size, paint, _words(panels))


def _ends(one: TieRange) -> list[float]:
    return [one.worst, one.best] + ([] if one.published is None else [one.published])


def _paint_panel(axes: Any, title: str, ranges: Sequence[TieRange]) -> None:
    """Bars of one length; a stripe behind every other method leads the eye to its name."""
    for place, one in enumerate(ranges):
        if place % 2:
            axes.axhspan(place - 0.5, place + 0.5, color=COLOURS["grid"], alpha=0.35, linewidth=0)
        token = "relevant" if one.is_marked else "range"
        bar = {"height": 0.46, "color": COLOURS[token], "linewidth": 0}
        label = None if one.is_marked else "range over all orders of tied items"
        axes.barh(place, one.best - one.worst, left=one.worst, label=label, **bar)
        for end in (one.worst, one.best):
            axes.plot([end] * 2, [place - 0.23, place + 0.23], color=COLOURS["relevant"], lw=1.1)
        dot = {"markersize": 5.2, "color": COLOURS["ink"], "zorder": 4}
        axes.plot(one.exact, place, "o", label="AP_T, the expectation", **dot)
        if one.published is not None:
            diamond = {"markersize": 5, "color": COLOURS["irrelevant"], "markerfacecolor": "none"}
            axes.plot(one.published, place, "D", label="AP_T of the paper", zorder=3, **diamond)
    axes.set_ylim(len(ranges) - 0.5, -0.5)
    axes.set_yticks(range(len(ranges)), [plain(one.label, 24) for one in ranges])
    axes.tick_params(axis="y", length=0, labelcolor=COLOURS["ink"])
    axes.set_title(plain(title, 30), fontsize=9, loc="left", fontweight="bold")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.1f}")
    axes.xaxis.get_major_locator().set_params(nbins=5, steps=[1, 2, 5, 10])
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def _handles(axes: Any) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        handles.setdefault(label, handle)
    return handles


def _words(panels: Mapping[str, Sequence[TieRange]]) -> str:
    """All numbers of the figure, for those who cannot see it."""
    return "Range of mean average precision over the orders of tied items. " + ". ".join(
        f"{plain(title, 30)}: "
        + "; ".join(
            f"{plain(one.label, 24)} from {one.worst:.3f} to {one.best:.3f}, exact {one.exact:.3f}"
            for one in ranges
        )
        for title, ranges in panels.items()
    )
