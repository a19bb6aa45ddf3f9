"""The three figures of an audit: the range of each score, the deviations, and the ties behind them.

The range plot follows Figure 3 of K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as
Tie-Aware Learning to Rank", CVPR 2018: a bar from the pessimistic to the optimistic score, a dot at
the tie-aware one.
"""

from collections.abc import Sequence
from typing import Any

from rankbits._check import extra
from rankbits.evaluation import Audit, AuditedMetric, TieSizes
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain
from rankbits.report._words import LABELS, signed

MARKS = {  # the marker of what others print, wherever it is drawn
    "class": "s",
    "index": "v",
    "argsort": "D",
    "trec": "^",
    "sklearn": "P",
    "shuffled": "o",
}


def range_plot(audits: Sequence[Audit], *, narrow: bool = False, name: str = "range") -> str:
    """One bar of AP for each audit, from pessimistic to optimistic, with what others print.

    Parameters
    ----------
    audits : what `rankbits.evaluation.audit` returned for each set of codes
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    bars = [(plain(audit.name, 30), audit.ap) for audit in audits]
    names = [] if narrow else [label for label, _ in bars]
    words = "; ".join(
        f"{label}: from {metric.worst:.4f} to {metric.best:.4f}, exact {metric.expected:.4f}"
        for label, metric in bars
    )
    height = (0.85 if narrow else 0.62) * len(bars) + (1.5 if narrow else 1.1)

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for place, (label, metric) in enumerate(bars):
            _range_bar(axes, -place, metric)
            if narrow:
                at = {"transform": axes.get_yaxis_transform(), "fontweight": "bold"}
                axes.text(0, 0.42 - place, label, va="bottom", **at)
        axes.set_ylim(0.4 - len(bars), 0.7 if narrow else 0.5)
        axes.set_yticks([] if narrow else [-place for place in range(len(bars))], names)
        axes.tick_params(axis="y", length=0, labelcolor=COLOURS["ink"])
        axes.set_xlabel("average precision")
        low, high = min(bar.worst for _, bar in bars), max(bar.best for _, bar in bars)
        room = max((0.2 if narrow else 0.08) * (high - low), 1e-4)  # for the numbers at both ends
        axes.set_xlim(low - room, high + room)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        figure.legend(
            *_legend(axes),
            loc="outside lower center",
            ncols=2 if narrow else 4,
            frameon=False,
            fontsize=8,
            handletextpad=0.3,
            columnspacing=1.2,
        )

    size = (NARROW if narrow else WIDE, height)
    return draw(name, size, paint, f"Range of average precision. {words}.")


def _range_bar(axes: Any, y: float, metric: AuditedMetric) -> None:
    """A bar, its two ends in numbers, the exact score, and the printed ones in a lane below."""
    low, high = metric.worst, metric.best
    axes.barh(y, high - low, left=low, height=0.26, color=COLOURS["range"], label="possible range")
    _number(axes, f"{low:.3f}", (low, y), is_left=True)
    _number(axes, f"{high:.3f}", (high, y), is_left=False)
    axes.plot([metric.expected] * 2, [y, y - 0.36], color=COLOURS["ink"], linewidth=0.7)
    for row in metric.rows:
        if row.key in MARKS:
            style = {"color": COLOURS[row.key], "markersize": 4.5, "markerfacecolor": "none"}
            axes.plot(row.value, y - 0.27, MARKS[row.key], label=LABELS[row.key], **style)
    axes.plot(metric.expected, y, "o", color=COLOURS["ink"], markersize=6.5, label="exact (AP_T)")
    axes.annotate(
        f"{metric.expected:.3f}",
        (metric.expected, y + 0.13),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontweight="bold",
    )


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    """Handles and labels, each label once, the exact score and the range first."""
    handles, labels = axes.get_legend_handles_labels()
    handle_of = dict(zip(labels, handles, strict=True))
    first = ("exact (AP_T)", "possible range")
    once = {label: handle_of.pop(label) for label in first} | handle_of
    return list(once.values()), list(once)


def deviation_plot(
    metrics: Sequence[AuditedMetric], *, narrow: bool = False, name: str = "deviation"
) -> str:
    """How many points each way to treat ties adds to or takes from the exact score.

    Parameters
    ----------
    metrics : audited metrics, `audit.ap` and `audit.ndcg`
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    words = "; ".join(
        f"{metric.name}: "
        + ", ".join(f"{LABELS[row.key]} {row.points:+.2f}" for row in metric.rows)
        for metric in metrics
    )
    keys = [key for key in LABELS if any(row.key == key for m in metrics for row in m.rows)]

    def paint(figure: Any) -> None:
        shape = (len(metrics), 1) if narrow else (1, len(metrics))
        panels = figure.subplots(*shape, squeeze=False, sharey="row")
        for axes, metric in zip(panels.flat, metrics, strict=True):
            _deviations(axes, metric, keys)

    height = (0.27 * len(keys) + 0.75) * (len(metrics) if narrow else 1)
    size = (NARROW if narrow else WIDE, height)
    return draw(name, size, paint, f"Points from the exact score. {words}.")


def _deviations(axes: Any, metric: AuditedMetric, keys: Sequence[str]) -> None:
    """A lollipop a row, with its points in numbers; a whisker over the shuffles."""
    axes.axvline(0, color=COLOURS["ink"], linewidth=1)
    for row in metric.rows:
        y, colour = keys.index(row.key), COLOURS[row.key]
        axes.plot([0, row.points], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
        axes.plot(row.points, y, MARKS.get(row.key, "|"), color=colour, markersize=5)
        if row.low is not None and row.high is not None:
            ends = [100 * (end - metric.expected) for end in (row.low, row.high)]
            axes.plot(ends, [y, y], color=colour, linewidth=4, alpha=0.35)
        _number(axes, signed(row.points), (row.points, y), is_left=row.points < 0)
    axes.set_ylim(len(keys) - 0.4, -0.6)
    axes.set_yticks(range(len(keys)), [LABELS[key] for key in keys])
    axes.tick_params(axis="y", length=0, labelcolor=COLOURS["ink"])
    title = f"{metric.name}: points from the exact {metric.expected:.3f}"
    axes.set_title(title, fontsize=9, loc="left")
    axes.margins(x=0.24)
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def _number(axes: Any, text: str, at: tuple[float, float], is_left: bool) -> None:
    """A small number beside a point, to the left or to the right of it."""
    axes.annotate(
        text,
        at,
        xytext=(-6 if is_left else 6, 0),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="center",
        color=COLOURS["muted"],
        fontsize=8,
    )


def tie_plot(ties: TieSizes, *, narrow: bool = False, name: str = "ties") -> str:
    """Items at each distance from a query: every bar is one tie.

    Parameters
    ----------
    ties : `audit.ties`
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    seen = [d for d, n in enumerate(ties.items) if n > 0]
    first, last = seen[0], seen[-1]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for values, token, label in (
            (ties.items, "range", "all items"),
            (ties.relevant, "relevant", "relevant items"),
        ):
            patch = _bars(range(first, last + 1), values[first : last + 1])
            axes.add_patch(patch(color=COLOURS[token], linewidth=0, label=label))
        axes.set_xlim(first - 1, last + 1)
        axes.set_ylim(0, 1.08 * max(ties.items))
        axes.set_xlabel("Hamming distance from the query")
        axes.set_ylabel("items a tie, mean")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8, loc="upper left")

    size = (NARROW, 2.3) if narrow else (WIDE, 2.5)
    words = f"from distance {first} to {last}, at most {max(ties.items):.1f} items in one"
    return draw(name, size, paint, f"Mean number of items in each tie, {words}.")


def _bars(places: Sequence[int], heights: Sequence[float]) -> Any:
    """All bars as one path, which keeps the file small at any code length."""
    path, patches = (
        extra(f"matplotlib.{part}", "a plot", "report") for part in ("path", "patches")
    )
    corners = [
        path.Path(
            [(x - 0.42, 0), (x - 0.42, h), (x + 0.42, h), (x + 0.42, 0), (x - 0.42, 0)], closed=True
        )
        for x, h in zip(places, heights, strict=True)
    ]
    outline = path.Path.make_compound_path(*corners)
    return lambda **style: patches.PathPatch(outline, **style)
