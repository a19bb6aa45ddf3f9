"""Sections of a page: what every exhibit has beside its table or figure, and tables of scores."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankbits.benchmark import Published, ResultCell, Score, protocol
from rankbits.papers._exhibit import Part, View
from rankbits.papers._names import TITLES, title_of
from rankbits.papers._words import Cells, listed
from rankbits.report import Figure, Provenance, ScoreRow, ScoreTable, Section

QUICK_NOTE = (
    "This is the quick profile, on scikit-learn's digits with training cut short: it shows that "
    "everything runs, and nothing about the paper."
)


def build_section(
    view: View,
    sentences: Iterable[str] = (),
    figures: Iterable[Figure] = (),
    tables: Iterable[ScoreTable] = (),
) -> Section:
    """The section of an exhibit, with its notes and provenance."""
    exhibit = view.exhibit
    first = (QUICK_NOTE,) if view.is_quick else ()
    return Section(
        view.name,
        f"{view.name}: {exhibit.title}",
        f"{exhibit.source}, {exhibit.place}",
        (*first, *(text for text in sentences if text)),
        tuple(figures),
        tuple(tables),
        _notes(view),
        {part.protocol: provenance(cells_of(view, part)) for part in view.parts},
    )


def _notes(view: View) -> dict[str, str]:
    notes = {}
    if view.exhibit.stand_in and not view.is_quick:
        notes["What stands in for what"] = view.exhibit.stand_in
    missing = [part for part in view.exhibit.parts if _is_missing(view, part)]
    if missing and not view.is_quick:
        names = dict.fromkeys(part.protocol for part in missing)
        notes["Not run"] = ", ".join(names) + ": the folder has no results of it"
    for part in view.parts:
        if part.rules.note and not part.is_quick:
            notes[part.protocol] = part.rules.note
    return notes


def _is_missing(view: View, part: Part) -> bool:
    return all(shown.protocol != part.protocol for shown in view.parts)


def cells_of(view: View, part: Part) -> list[ResultCell]:
    """The cells of a part, in one list."""
    return [cell for row in part.cells(view.results).values() for cell in row.values()]


def provenance(cells: Sequence[ResultCell]) -> Provenance:
    """Split hashes, settings, versions and seconds of some cells."""
    runs = [run for cell in cells for run in cell.runs]
    splits = {run.settings["split_seed"]: run.result["split"] for run in runs}
    one = next(iter(splits.values()))
    facts = {
        "Rows": f"{one['queries']:,} queries, {one['database']:,} items, {one['training']:,} "
        "training rows",
        "Split hashes": ", ".join(
            f"{seed}: {s['hash'][:12]}" for seed, s in sorted(splits.items())
        ),
        "Data, SHA-256": str(runs[0].settings["data"])[:16],
        "Rules": json.dumps(runs[0].settings["protocol"], sort_keys=True),
        "Parameters": _parameters(cells),
        "Versions": "; ".join(dict.fromkeys(_versions(run.result) for run in runs)),
        "Runs": f"{len(runs)}, {sum(sum(r.result['seconds'].values()) for r in runs):,.0f} s",
    }
    rows = tuple(
        ScoreRow(
            f"{cell.label}, {cell.bits} bits",
            tuple(cell.seconds(name) for name in ("fit", "encode", "evaluate")),
        )
        for cell in cells
    )
    table = ScoreTable("Seconds", ("fit", "encode", "evaluate"), rows, digits=2, has_best=False)
    return Provenance({name: text for name, text in facts.items() if text}, table)


def _parameters(cells: Sequence[ResultCell]) -> str:
    of_method = {cell.label: cell.runs[0].settings["params"] for cell in cells}
    return "; ".join(
        f"{label}: {json.dumps(params, sort_keys=True)}"
        for label, params in of_method.items()
        if params
    )


def _versions(result: Mapping[str, Any]) -> str:
    environment = result.get("environment", {})
    shown = {name: value for name, value in environment.items() if value is not None}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def score_table(
    part: Part, cells: Cells, metric: str, *, title: str = "", digits: int = 4
) -> ScoreTable:
    """Methods against code lengths: ours, then the paper's."""
    lengths = sorted({bits for row in cells.values() for bits in row})
    published = published_values(part, metric)
    ours = tuple(
        ScoreRow(
            title_of(part.label(method)),
            tuple(_score_at(row, n, metric) for n in lengths),
            papers=() if part.is_stand_in else _beside(published.get(method, {}), lengths),
        )
        for method, row in cells.items()
    )
    columns = tuple(f"{bits} bits" for bits in lengths)
    shown: set[str] = set() if part.is_stand_in else {title_of(method) for method in cells}
    papers = tuple(
        row
        for paper in papers_of(part, metric)
        for row in _paper_rows(paper, lengths)
        if row.label not in shown
    )
    notes = dict.fromkeys(
        [seeds_note(ours), *(f"Paper: {p.data}, {p.note}." for p in papers_of(part, metric))]
    )
    table_title = title or f"{metric}, {part.title or part.rules.title}"
    return ScoreTable(table_title, columns, (*ours, *papers), digits, note=" ".join(notes))


def seeds_note(rows: Sequence[ScoreRow]) -> str:
    """How many seeds the scores of a table are means of, and which rows have fewer.

    >>> rows = [ScoreRow("BRE", (Score(0.5, 0.1, 3),)), ScoreRow("RSH", (Score(0.5, None, 1),))]
    >>> seeds_note(rows), seeds_note(rows[1:])
    ('Seeds: 3, but RSH 1.', 'Seeds: 1.')
    >>> seeds_note([ScoreRow("BRE", (Score(0.5, 0.1, 3), Score(0.5, None, 1)))])
    'Seeds: 1 to 3.'
    """
    counts = {row.label: [score.n_runs for score in row.scores if score] for row in rows}
    words = {label: _span(of_row) for label, of_row in counts.items() if of_row}
    if len(set(words.values())) == 1:
        return f"Seeds: {next(iter(words.values()))}."
    most = str(max((n for of_row in counts.values() for n in of_row), default=0))
    fewer = [f"{label} {span}" for label, span in words.items() if span != most]
    return f"Seeds: {most}" + (f", but {listed(fewer)}." if fewer else ".")


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _beside(values: Mapping[int, float], lengths: Sequence[int]) -> tuple[float | None, ...]:
    return tuple(values.get(bits) for bits in lengths)


def _score_at(row: Mapping[int, ResultCell], bits: int, metric: str) -> Score | None:
    return row[bits].score(metric) if bits in row else None


def papers_of(part: Part, metric: str) -> tuple[Published, ...]:
    """Published tables of a metric that the protocol of a part has, without other papers'."""
    return tuple(paper for paper in protocol(part.protocol).published if paper.metric == metric)


def _paper_rows(paper: Published, lengths: Sequence[int]) -> list[ScoreRow]:
    rows = []
    for method, values in paper.values.items():
        if any(bits in values for bits in lengths):
            scores = (Score(values[n], None, 1) if n in values else None for n in lengths)
            rows.append(ScoreRow(method, tuple(scores), is_published=True))
    return rows


def published_values(part: Part, metric: str) -> dict[str, dict[int, float]]:
    """The paper's values by our name of the method."""
    values: dict[str, dict[int, float]] = {}
    for paper in papers_of(part, metric):
        for method, name in TITLES.items():
            if name in paper.values:
                values[method] = dict(paper.values[name])
    return values
