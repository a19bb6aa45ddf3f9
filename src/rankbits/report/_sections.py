"""What a page of results is made of: sections with sentences, tables and figures, as plain data.

A section is drawn by templates for HTML, and written as text for Markdown and LaTeX (`_tables.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rankbits.benchmark import Score

_WHOLE = 100.0  # from here on numbers are written without decimals


@dataclass(frozen=True)
class ScoreRow:
    """A row of a table.

    Attributes
    ----------
    label : what the row is of
    scores : one for each column, None where there is none
    is_published : whether the numbers are a paper's, not ours
    papers : values of the paper for the same method, one for each column, or none at all
    """

    label: str
    scores: tuple[Score | None, ...]
    is_published: bool = False
    papers: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class ScoreTable:
    """Scores with the best of each column marked, ours and the paper's apart.

    Attributes
    ----------
    title : what it shows
    columns : heads of the columns, without that of the labels
    rows : ours first, then published ones
    digits : decimals of a score; published scores have three or as many as the paper prints
    has_best : whether a larger score is better, so that the best is marked
    note : what a reader must know
    sentence : what the numbers say
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[ScoreRow, ...]
    digits: int = 4
    has_best: bool = True
    note: str = ""
    sentence: str = ""

    def is_best(self, row: ScoreRow, column: int) -> bool:
        """Whether no score of the same column and origin is larger; a single row is not best.

        Scores are compared in the digits that are shown, so that equal ones are marked alike.
        """
        score = row.scores[column]
        rivals = [
            rival.mean
            for other in self.rows
            if other.is_published == row.is_published
            and (rival := other.scores[column]) is not None
        ]
        if score is None or not self.has_best or len(rivals) < 2:
            return False
        return round(score.mean, self.digits) == round(max(rivals), self.digits)

    def shown(self, row: ScoreRow, column: int) -> tuple[str, str]:
        """A score and its spread in digits; both empty where there is no score."""
        score = row.scores[column]
        if score is None:
            return "", ""
        if row.is_published:
            return _as_printed(score.mean), ""
        digits = self.digits if score.mean < _WHOLE else 0
        spread = "" if score.sd is None else f"{score.sd:,.{digits}f}"
        return f"{score.mean:,.{digits}f}", spread

    def paper(self, row: ScoreRow, column: int) -> str:
        """The paper's value beside ours; empty where there is none."""
        value = row.papers[column] if row.papers else None
        return "" if value is None else _as_printed(value)


def _as_printed(value: float) -> str:
    """A paper's value with the three or four digits that the paper prints.

    >>> _as_printed(0.361), _as_printed(0.5059)
    ('0.361', '0.5059')
    """
    return f"{value:.3f}" if round(value, 3) == value else f"{value:.4f}"


@dataclass(frozen=True)
class Figure:
    """A figure of a page.

    Attributes
    ----------
    wide, narrow : SVG for wide and for narrow screens
    caption : what stands below it
    """

    wide: str
    narrow: str
    caption: str


@dataclass(frozen=True)
class Provenance:
    """Where numbers come from.

    Attributes
    ----------
    facts : short texts by what they are
    table : seconds of every cell, with numbers of runs
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    table: ScoreTable | None = None


@dataclass(frozen=True)
class Section:
    """One table or figure of a paper, or all runs of a protocol.

    Attributes
    ----------
    id : its anchor on the page
    heading : what it shows
    kicker : a line above the heading: the paper and the place in it
    sentences : what the numbers say
    figures, tables : in the order in which they stand
    notes : what to know, by a word or two
    provenance : of each part
    """

    id: str
    heading: str
    kicker: str = ""
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[ScoreTable, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
