"""The figure of approximate search: how much is found against how fast.

One line an index, one point a setting of it; up and to the right is better.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rankbits.errors import InputError
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain

Setting = tuple[float, float, str]  # recall, queries a second, and what was set
LINES = (
    ("relevant", "o"),
    ("irrelevant", "s"),
    ("sklearn", "D"),
    ("trec", "^"),
    ("argsort", "v"),
    ("shuffled", "P"),
    ("worst", "X"),
    ("ink", "*"),
)


def recall_plot(
    indexes: Mapping[str, Sequence[Setting]], *, narrow: bool = False, name: str = "recall"
) -> str:
    """Recall against queries a second, on a logarithmic axis; points in order of recall.

    Parameters
    ----------
    indexes : settings (recall, queries a second, text) by the name of the index
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    _require_lines(indexes)
    lines = {plain(label, 30): sorted(settings) for label, settings in indexes.items()}
    words = "; ".join(
        f"{label}: "
        + ", ".join(f"{plain(text, 20)} {recall:.3f} at {rate:,.0f}" for recall, rate, text in line)
        for label, line in lines.items()
    )

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for (token, mark), (label, line) in zip(LINES, lines.items(), strict=False):
            recall, rate, _ = zip(*line, strict=True)
            style = {"color": COLOURS[token], "linewidth": 1.4, "markersize": 4.5}
            axes.plot(recall, rate, mark + "-", label=label, **style)
        axes.set_yscale("log")
        axes.set_xlabel("recall")
        axes.set_ylabel("queries a second")
        axes.yaxis.set_major_formatter(lambda rate, _: f"{rate:,.0f}")  # no mathematics in text
        axes.tick_params(axis="y", which="minor", length=0, labelleft=False)
        axes.grid(which="both")
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8)

    size = (NARROW, 3.4) if narrow else (WIDE, 4.0)
    return draw(name, size, paint, f"Recall and queries a second. {words}.")


def _require_lines(indexes: Mapping[str, Sequence[Setting]]) -> None:
    if not indexes or not all(indexes.values()) or len(indexes) > len(LINES):
        counts = {label: len(settings) for label, settings in indexes.items()}
        raise InputError(
            f"indexes must have 1 to {len(LINES)} names, each with at least one setting, got "
            f"{counts}"
        )
    for label, settings in indexes.items():
        for recall, rate, _ in settings:
            if not (0 <= recall <= 1 and rate > 0):
                raise InputError(
                    f"indexes must have a recall from 0 to 1 and more than 0 queries a second, "
                    f"got {recall} and {rate} for {label!r}"
                )
