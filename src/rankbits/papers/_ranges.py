"""The section of tie-breaking: how far apart the scores of one ranking can be made to be."""

from itertools import pairwise

import numpy as np

from rankbits.benchmark import ResultCell, Score
from rankbits.papers import _words
from rankbits.papers._exhibit import View
from rankbits.papers._names import title_of
from rankbits.papers._sections import build_section, published_values, score_table
from rankbits.papers._shows import both
from rankbits.report import ScoreRow, ScoreTable, Section, TieRange, tie_range_plot


def show_ranges(view: View) -> Section:
    """Bars from the worst to the best AP that an order of ties could print, dots at AP_T."""
    part = view.parts[0]
    cells, published = part.cells(view.results), published_values(part, "AP")
    panels = {}
    for bits in part.lengths(view.results):
        ranges = [
            _range(method, row[bits], published.get(method, {}).get(bits))
            for method, row in cells.items()
            if bits in row and row[bits].score("AP.worst") is not None
        ]
        if ranges:
            panels[f"{bits} bits"] = ranges
    if not panels:
        return build_section(view, ["The files have no bounds of AP; run them again."])
    figure = both(tie_range_plot, panels, view.name, _RANGE_CAPTION)
    tables = [
        score_table(part, cells, metric, title=title) for metric, title in _RANGE_TABLES.items()
    ]
    tables += _ranges_beside_paper(cells)
    return build_section(view, _range_words(panels), [figure], tables)


def _ranges_beside_paper(cells: _words.Cells) -> list[ScoreTable]:
    """The ranges at the one length that the paper prints in numbers."""
    metrics = ("AP.worst", "AP", "AP.best")
    rows = tuple(
        ScoreRow(
            title_of(method),
            tuple(row[_PRINTED_BITS].score(metric) for metric in metrics),
            papers=_PRINTED_RANGES.get(method, ()),
        )
        for method, row in cells.items()
        if _PRINTED_BITS in row and row[_PRINTED_BITS].score("AP.worst") is not None
    )
    columns = ("worst order", "AP_T", "best order")
    title = f"Ranges at {_PRINTED_BITS} bits, beside those that the paper prints (arXiv: Figure 2)"
    return [ScoreTable(title, columns, rows, has_best=False)] if rows else []


_PRINTED_BITS = 32
_PRINTED_RANGES = {  # pessimistic AP, AP_T, optimistic AP
    "bre": (0.465, 0.502, 0.543),
    "structhash": (0.660, 0.691, 0.727),
    "machash": (0.690, 0.726, 0.755),
    "fasthash": (0.710, 0.742, 0.770),
    "talr-ap": (0.762, 0.800, 0.827),
}


_RANGE_CAPTION = (
    "Each bar is all that mean AP can be made to be by breaking ties, from the worst order of the "
    "tied items to the best; the dot is the expectation over all orders, AP_T. Where bars overlap, "
    "tie-breaking decides which method looks better."
)
_RANGE_TABLES = {
    "AP": "AP_T, the expectation over all orders of tied items",
    "AP.worst": "AP of the worst order",
    "AP.best": "AP of the best order",
}


def _range(method: str, cell: ResultCell, published: float | None) -> TieRange:
    worst, exact, best = (_mean(cell.score(name)) for name in ("AP.worst", "AP", "AP.best"))
    is_marked = method.startswith("talr")
    return TieRange(title_of(cell.label), worst, exact, best, published, is_marked)


def _mean(score: Score | None) -> float:
    assert score is not None  # noqa: S101
    return score.mean


def _range_words(panels: dict[str, list[TieRange]]) -> list[str]:
    """How wide the ranges are, and how many pairs of methods a tie-breaker could turn round."""
    sentences = []
    for title, ranges in panels.items():
        pairs = [(a, b) for i, a in enumerate(ranges) for b in ranges[i + 1 :]]
        overlapping = sum(a.worst < b.best and b.worst < a.best for a, b in pairs)
        width = float(np.mean([one.best - one.worst for one in ranges]))
        sentences.append(
            f"At {title} a range is {width:.4f} wide in the mean, and {overlapping} of "
            f"{len(pairs)} pairs of methods overlap."
        )
    widths = [np.mean([one.best - one.worst for one in ranges]) for ranges in panels.values()]
    shrinking = [later < earlier for earlier, later in pairwise(widths)]
    text = "ranges shrink as codes grow"
    return [*sentences, _words.claim(text, shrinking, "steps of the length")]
