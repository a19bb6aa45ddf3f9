"""The page of a folder of results: one HTML file, and the same tables as Markdown or LaTeX.

The page depends on the result files alone: same files, same bytes.
"""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from rankbits.benchmark import Results
from rankbits.report._page import _render
from rankbits.report._sections import ScoreRow, ScoreTable, Section

_ESCAPED = "&%_#{}$"  # LaTeX reads these as commands
_CSV_SETTINGS = ("method", "bits", "split_seed", "seed", "version")
_CSV_USE = ("n_distinct", "share_of_space", "collision_rate", "entropy_bits")


def results_page(sections: Sequence[Section], *, title: str, intro: str = "") -> str:
    """The page of these sections.

    Parameters
    ----------
    sections : in the order in which they stand
    title, intro : heading and first paragraph of the page
    """
    return _render("results.html.j2", sections=sections, title=title, intro=intro)


def markdown_tables(sections: Sequence[Section]) -> str:
    """The tables and sentences of these sections as Markdown.

    Parameters
    ----------
    sections : in the order in which they stand
    """
    lines: list[str] = []
    for section in sections:
        lines += [f"## {section.heading}", ""]
        for paragraph in (section.kicker, " ".join(section.sentences)):
            lines += [paragraph, ""] if paragraph else []
        for table in section.tables:
            lines += [f"**{table.title}**", ""]
            lines += [table.sentence, ""] if table.sentence else []
            lines += [*_markdown_rows(table), ""]
            lines += [table.note, ""] if table.note else []
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_rows(table: ScoreTable) -> list[str]:
    header = "| " + " | ".join(("", *table.columns)) + " |"
    rows = [header, "|---" * (len(table.columns) + 1) + "|"]
    for row in table.rows:
        cells = [_cell(table, row, column, "**{}**", " ± ") for column in range(len(table.columns))]
        label = row.label.replace("|", r"\|") + (" (paper)" if row.is_published else "")
        rows.append("| " + " | ".join((label, *cells)) + " |")
    return rows


def _cell(table: ScoreTable, row: ScoreRow, column: int, bold: str, plus_minus: str) -> str:
    value, spread = table.shown(row, column)
    if value and table.is_best(row, column):
        value = bold.format(value)
    paper = table.paper(row, column)
    beside = f" (paper {paper})" if paper else ""
    return value + (plus_minus + spread if spread else "") + beside


def latex_tables(sections: Sequence[Section]) -> str:
    """The tables of these sections as LaTeX, for a document that uses booktabs.

    Parameters
    ----------
    sections : in the order in which they stand
    """
    tables = [
        _latex_table(section, table, number)
        for section in sections
        for number, table in enumerate(section.tables, start=1)
    ]
    return "% needs \\usepackage{booktabs}\n" + "\n".join(tables)


def _latex_table(section: Section, table: ScoreTable, number: int) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(f'{section.heading}: {table.title}')}}}",
        rf"\label{{tab:{section.id}-{number}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(["", *map(_latex, table.columns)]) + r" \\",
        r"\midrule",
    ]
    was_published = False
    for row in table.rows:
        if row.is_published and not was_published:
            lines.append(r"\midrule")
        was_published = row.is_published
        cells = [
            _cell(table, row, column, r"\textbf{{{}}}", r" $\pm$ ")
            for column in range(len(table.columns))
        ]
        label = _latex(row.label) + (" (paper)" if row.is_published else "")
        lines.append(" & ".join((label, *cells)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _latex(text: str) -> str:
    r"""Text with the characters that LaTeX reads as commands escaped.

    >>> print(_latex("a_b & 5%"))
    a\_b \& 5\%
    """
    clean = "".join(f"\\{c}" if c in _ESCAPED else c for c in text.replace("\\", "/"))
    return clean.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}")


def cells_csv(results: Results) -> str:
    """All runs as CSV: one row each, one column per setting, metric, number of code use and time.

    Parameters
    ----------
    results : of a folder
    """
    metrics = sorted({name for run in results.runs for name in run.result["metrics"]})
    times = sorted({name for run in results.runs for name in run.result["seconds"]})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [*metrics, *_CSV_USE, *(f"{name}_seconds" for name in times)]
    writer.writerow(["file", "protocol", "label", *_CSV_SETTINGS, "params", "split_hash", *columns])
    for cell in results.cells:
        for run in cell.runs:
            writer.writerow([run.file, cell.protocol, cell.label, *_csv_row(run, metrics, times)])
    return text.getvalue()


def _csv_row(run: Any, metrics: Sequence[str], times: Sequence[str]) -> list[Any]:
    result, settings = run.result, run.settings
    use = result.get("code_use", {})
    return [
        *(settings[key] for key in _CSV_SETTINGS),
        json.dumps(settings["params"], sort_keys=True),
        result["split"]["hash"],
        *(result["metrics"].get(name, {}).get("mean", "") for name in metrics),
        *(use.get(name, "") for name in _CSV_USE),
        *(result["seconds"].get(name, "") for name in times),
    ]
