"""Reports of folders of results: which exhibits a folder has runs of, and the rest by protocol."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankbits._inventory import require_own, write_own
from rankbits.benchmark import ResultCell, Results, Score, find_protocol, load_results
from rankbits.errors import FileFormatError, InputError
from rankbits.papers import _words
from rankbits.papers._catalogue import exhibits
from rankbits.papers._exhibit import Exhibit, View
from rankbits.papers._run import FORMAT, exact_file
from rankbits.papers._sections import provenance
from rankbits.report import (
    ScoreRow,
    ScoreTable,
    Section,
    cells_csv,
    latex_tables,
    markdown_tables,
    results_page,
)

FORMATS = {
    "html": "index.html",
    "markdown": "tables.md",
    "latex": "tables.tex",
    "csv": "cells.csv",
    "svg": "figures",
}
_INTRO = (
    "Every number is the mean over the runs of the files in this folder, with the standard "
    "deviation over seeds beside it; the best of each column is bold. AP_T and NDCG_T are exact "
    "expectations over all orders of tied items. Rows marked as a paper's are copied from it."
)


def write_report(
    folder: str | os.PathLike[str], formats: tuple[str, ...] = ("html",)
) -> dict[str, str]:
    """Write reports of a folder of results into it; returns the paths by format.

    Parameters
    ----------
    folder : str or path-like
        A folder of results, as `rankbits bench --out` and `rankbits papers` leave it.
    formats : tuple of {"html", "markdown", "latex", "csv", "svg"}, default=("html",)
        Which: one self-contained page index.html, tables.md, tables.tex, cells.csv, or a folder
        figures with a file for each figure.
    """
    path = Path(folder)
    results = load_folder(path)
    names = {name: FORMATS[name] for name in formats}
    require_own(path, [file for name, file in names.items() if name != "svg"])
    shown = sections(path, results)
    for name, file in names.items():
        if name == "svg":
            _write_figures(path / file, shown)
        else:
            write_own(path, {file: _written(name, shown, results).encode()})
    return {name: str(path / file) for name, file in names.items()}


def _write_figures(folder: Path, shown: list[Section]) -> None:
    """Write the wide version of each figure under the id of its section."""
    folder.mkdir(exist_ok=True)
    figures = {
        f"{section.id}.svg": figure.wide.encode() + b"\n"
        for section in shown
        for figure in section.figures
    }
    write_own(folder, figures)


def _written(name: str, shown: list[Section], results: Results) -> str:
    if name == "html":
        return results_page(shown, title="Results, and what the papers report", intro=_INTRO)
    if name == "csv":
        return cells_csv(results)
    return markdown_tables(shown) if name == "markdown" else latex_tables(shown)


def load_folder(folder: Path) -> Results:
    """The results of a folder; labels know the quick protocols too."""
    for exhibit in exhibits():
        for part in exhibit.planned(quick=True):
            assert part.rules  # noqa: S101 - asking registers it
    return load_results(folder)


def sections(folder: str | os.PathLike[str], results: Results | None = None) -> list[Section]:
    """What a page of this folder shows: exhibits in the order of the papers, then other runs.

    Parameters
    ----------
    folder : str or path-like
        A folder of results.
    results : Results or None, default=None
        What it holds, if it was read already.
    """
    path = Path(folder)
    results = load_folder(path) if results is None else results
    views = [view for exhibit in exhibits() for view in _views(exhibit, path, results)]
    shown = [view.exhibit.show(view) for view in views]
    shown += _other_sections(results, views)
    if not shown:
        raise InputError(
            f"folder must hold results, {path} has none; rankbits bench --out and rankbits papers "
            "write them"
        )
    return shown


def _views(exhibit: Exhibit, folder: Path, results: Results) -> Iterator[View]:
    """The exhibit by full runs and by quick ones, each if there is anything to show."""
    if exhibit.exact is not None:
        file = exact_file(folder, exhibit.id)
        if file.is_file():
            yield View(exhibit, (), results, _read_exact(file, exhibit.id))
        return
    for quick in (False, True):
        parts = tuple(part for part in exhibit.planned(quick) if part.cells(results))
        if parts:
            yield View(exhibit, parts, results)


def _read_exact(file: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        content = None
    is_whole = isinstance(content, dict) and isinstance(content.get("values"), dict)
    if not is_whole or (content["rankbits_papers"], content["id"]) != (FORMAT, name):
        raise FileFormatError(f"{file} does not hold the numbers of {name}; run it again")
    values: dict[str, Any] = content["values"]
    return values


def _other_sections(results: Results, views: list[View]) -> list[Section]:
    """A section for each protocol with cells that no exhibit shows."""
    shown = {
        id(cell)
        for view in views
        for part in view.parts
        for row in part.cells(results).values()
        for cell in row.values()
    }
    names = [
        name
        for name in results.protocols
        if any(id(cell) not in shown for cell in results.of(name))
    ]
    return [_protocol_section(name, results.of(name)) for name in names]


def _protocol_section(name: str, cells: tuple[ResultCell, ...]) -> Section:
    """All cells of a protocol: a table for each metric."""
    known = find_protocol(name)
    metrics = list(dict.fromkeys(m for c in cells for run in c.runs for m in run.result["metrics"]))
    by_label: dict[str, dict[int, ResultCell]] = {}
    for cell in cells:
        by_label.setdefault(cell.label, {})[cell.bits] = cell
    leader = _words.leader(_words.means(by_label, metrics[0]), metrics[0])
    return Section(
        f"protocol-{name}",
        f"{name}: all runs",
        known.title if known else "",
        (leader,) if leader else (),
        tables=tuple(_metric_table(metric, by_label) for metric in metrics),
        notes={"Note": known.note} if known and known.note else {},
        provenance={name: provenance(cells)},
    )


def _metric_table(metric: str, by_label: dict[str, dict[int, ResultCell]]) -> ScoreTable:
    lengths = sorted({bits for row in by_label.values() for bits in row})
    rows = tuple(
        ScoreRow(label, tuple(_at(row, bits, metric) for bits in lengths))
        for label, row in by_label.items()
    )
    return ScoreTable(metric, tuple(f"{bits} bits" for bits in lengths), rows)


def _at(row: dict[int, ResultCell], bits: int, metric: str) -> Score | None:
    return row[bits].score(metric) if bits in row else None
