"""Functions from result files to sections: tables, curves, ranges of tie-breaking, use of codes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rankbits.benchmark import ResultCell, Score
from rankbits.papers import _words
from rankbits.papers._exhibit import Part, View
from rankbits.papers._names import title_of
from rankbits.papers._sections import build_section, published_values, score_table
from rankbits.report import (
    CurvePanel,
    Figure,
    ScoreRow,
    ScoreTable,
    Section,
    code_use_plot,
    curves_plot,
)

Claims = Callable[[View], Sequence[str]]
_METRIC_WORDS = {
    "AP": "AP_T",
    "nDCG": "NDCG_T",
    "nDCG(rsh)": "NDCG in RSH's form",
    "ACG@r3": "ACG within radius 3",
    "P@r2": "precision within radius 2",
    "LGAP@r2": "mLGAP@2",
}
_TIME_WORDS = "Milliseconds to encode queries and database"


def words_of(metric: str) -> str:
    """What a metric is called in a sentence."""
    return _METRIC_WORDS.get(metric, metric)


def show_tables(view: View) -> Section:
    """A table for each part and metric, with the paper's values and how the orders compare."""
    tables = []
    for part in view.parts:
        cells = part.cells(view.results)
        for metric in part.metrics:
            values, published = _words.means(cells, metric), published_values(part, metric)
            if any(values.values()):
                texts = [
                    _words.leader(values, words_of(metric)),
                    _words.order(values, published),
                    "" if part.is_stand_in else _words.compared(values, published),
                ]
                table = score_table(part, cells, metric, title=_table_title(part, metric))
                tables.append(replace(table, sentence=" ".join(filter(None, texts))))
    return build_section(view, tables=tables)


def _table_title(part: Part, metric: str) -> str:
    return f"{words_of(metric)}, {part.title or part.rules.title}"


def show_curves(claims: Claims) -> Callable[[View], Section]:
    """Metrics against the number of bits, a panel each, and their tables."""

    def show(view: View) -> Section:
        panels, tables, sentences = [], [], list(claims(view))
        for part in view.parts:
            cells = part.cells(view.results)
            for metric in part.metrics:
                values = _words.means(cells, metric)
                if any(values.values()):
                    sentences.append(_words.leader(values, words_of(metric)))
                    panels.append(bits_panel(part, cells, metric))
                    tables.append(
                        score_table(part, cells, metric, title=_table_title(part, metric))
                    )
        figures = [both(curves_plot, panels, view.name, spread_caption(view))] if panels else []
        return build_section(view, sentences, figures, tables)

    return show


def spread_caption(view: View) -> str:
    n_runs = max(len(cell.runs) for part in view.parts for cell in view.results.of(part.protocol))
    spread = f"mean of {n_runs} seeds, bars one standard deviation" if n_runs > 1 else "one seed"
    title = view.exhibit.title
    return f"{title[0].upper()}{title[1:]}; {spread}."


def bits_panel(part: Part, cells: _words.Cells, metric: str) -> CurvePanel:
    lines = {}
    for method, row in cells.items():
        scores = {bits: cell.score(metric) for bits, cell in row.items()}
        points = [(float(n), s.mean, s.sd or 0.0) for n, s in scores.items() if s is not None]
        if points:
            lines[title_of(part.label(method))] = points
    ticks = tuple(float(bits) for bits in sorted({n for row in cells.values() for n in row}))
    return CurvePanel(words_of(metric), "bits", words_of(metric), lines, ticks=ticks)


def show_times(claims: Claims) -> Callable[[View], Section]:
    """Milliseconds to make the codes against the number of bits, a panel for each part."""

    def show(view: View) -> Section:
        panels, tables = [], []
        for part in view.parts:
            cells = part.cells(view.results)
            lines = {
                title_of(method): [
                    (float(n), 1000 * seconds, 0.0)
                    for n, cell in row.items()
                    if (seconds := cell.fastest("encode")) is not None
                ]
                for method, row in cells.items()
            }
            ticks = tuple(sorted({x for line in lines.values() for x, _, _ in line}))
            title = part.title or part.rules.title
            panels.append(
                CurvePanel(title, "bits", "milliseconds", lines, is_log=True, ticks=ticks)
            )
            tables.append(_time_table(part, cells))
        caption = f"{_TIME_WORDS}, the fastest of the seeds."
        figure = both(curves_plot, panels, view.name, caption)
        return build_section(view, claims(view), [figure], tables)

    return show


def _time_table(part: Part, cells: _words.Cells) -> ScoreTable:
    lengths = sorted({bits for row in cells.values() for bits in row})
    rows = tuple(
        ScoreRow(
            title_of(method),
            tuple(_fastest(row.get(n)) for n in lengths),
        )
        for method, row in cells.items()
    )
    title = f"{_TIME_WORDS}, {part.title or part.rules.title}"
    columns = tuple(f"{n} bits" for n in lengths)
    return ScoreTable(title, columns, rows, digits=1, has_best=False)


def _fastest(cell: ResultCell | None) -> Score | None:
    seconds = None if cell is None else cell.fastest("encode")
    return None if seconds is None else Score(1000 * seconds, None, 1)


def show_use(claims: Claims) -> Callable[[View], Section]:
    """How many items share each code, the most used code first, a panel for each method."""

    def show(view: View) -> Section:
        part = view.parts[0]
        bits = part.lengths(view.results)[0]
        cells = {
            title_of(part.label(method)): row[bits]
            for method, row in part.cells(view.results).items()
            if bits in row and "code_use" in row[bits].runs[0].result
        }
        if not cells:
            return build_section(view, ["The files do not say how codes are used; run them again."])
        used = {label: items_on_codes(cell) for label, cell in cells.items()}
        plot = both(code_use_plot, used, view.name, _use_caption(bits), columns=min(4, len(used)))
        return build_section(view, claims(view), [plot], [_use_table(cells, bits)])

    return show


def items_on_codes(cell: ResultCell) -> np.ndarray:
    """Items on each used code in the first run of a cell, the most used first."""
    items, codes = np.array(cell.runs[0].result["code_use"]["occupancy"]).T
    return np.repeat(items[::-1], codes[::-1])


def _use_caption(bits: int) -> str:
    return f"Items on each code of {bits} bits, from the most used to the least; the first seed."


def _use_table(cells: dict[str, ResultCell], bits: int) -> ScoreTable:
    names = ("n_distinct", "share_of_space", "collision_rate", "entropy_bits")
    columns = ("codes used", f"share of 2^{bits}", "items that share a code", "entropy, bits")
    rows = tuple(
        ScoreRow(label, tuple(cell.code_use(name) for name in names))
        for label, cell in cells.items()
    )
    return ScoreTable(f"Use of the codes of {bits} bits", columns, rows, digits=3, has_best=False)


def both(
    plot: Callable[..., str], data: object, name: str, caption: str, **options: object
) -> Figure:
    """A figure for wide and for narrow screens."""
    wide = plot(data, name=name, **options)
    return Figure(wide, plot(data, narrow=True, name=f"{name}-narrow", **options), caption)
