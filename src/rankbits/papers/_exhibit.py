"""What a table or figure of a paper is here: which runs it needs, and how it is shown.

An `Exhibit` is data and one function, `show`, from result files to what stands on a page. It never
runs anything itself. To add one, write an instance in the list of its paper.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbits.benchmark import Protocol, ResultCell, Results, protocol
from rankbits.papers._quick import quick_name
from rankbits.report import Section

QUICK_BITS = (8, 16)


@dataclass(frozen=True)
class Part:
    """Runs that an exhibit needs: methods and code lengths under one protocol.

    Attributes
    ----------
    protocol : its name
    methods : in the order of the paper
    bits : code lengths of the paper
    metrics : those that are shown
    title : what this part is called; "A in place of B" if the paper's data is another
    params : parameters of the methods beside those of the protocol
    is_optional : whether to go on without it where its data is missing
    is_quick : whether these are the small runs on embedded data
    """

    protocol: str
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    metrics: tuple[str, ...]
    title: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    is_optional: bool = False
    is_quick: bool = False

    @property
    def rules(self) -> Protocol:
        """The protocol itself."""
        return protocol(self.protocol)

    @property
    def is_stand_in(self) -> bool:
        """Whether its data stands for other data, whose published values are no yardstick."""
        return " in place of " in self.title

    def quick(self) -> "Part":
        """The same on embedded data: the same methods, two short lengths."""
        name = quick_name(self.protocol)
        bits = (self.bits[0],) if len(self.bits) == 1 else QUICK_BITS
        title = f"digits in place of {self.title.partition(' in place of ')[0]}"
        return Part(name, self.methods, bits, self.metrics, title, self.params, is_quick=True)

    def label(self, method: str) -> str:
        """What cells of a method of this part are called among results."""
        words = [f"{name}={json.dumps(value)}" for name, value in sorted(self.params.items())]
        return method + (f" ({', '.join(words)})" if words else "")

    def cells(self, results: Results) -> dict[str, dict[int, ResultCell]]:
        """The cells that there are, by method in the paper's order and by code length."""
        rows: dict[str, dict[int, ResultCell]] = {}
        for method in self.methods:
            row = {}
            for bits in self.lengths(results):
                cell = results.find(self.protocol, self.label(method), bits)
                if cell is not None:
                    row[bits] = cell
            if row:
                rows[method] = row
        return rows

    def lengths(self, results: Results) -> tuple[int, ...]:
        """The paper's code lengths; where none of them was run, those that were."""
        there = sorted({cell.bits for cell in results.of(self.protocol)})
        return tuple(bits for bits in self.bits if bits in there) or tuple(there)


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, run again.

    Attributes
    ----------
    id : what the command line calls it
    source : the paper
    place : where in the paper, "Table 1"
    title : what it shows
    parts : the runs it needs; none for exact numbers
    show : from its parts and result files to a section of a page, without provenance
    stand_in : what data stands here for what the paper used
    exact : computes the numbers of an exhibit without runs
    """

    id: str
    source: str
    place: str
    title: str
    show: Callable[["View"], Section]
    parts: tuple[Part, ...] = ()
    stand_in: str = ""
    exact: Callable[[], dict[str, Any]] | None = None

    def planned(self, quick: bool) -> Iterator[Part]:
        """Its parts, or their quick versions."""
        for part in self.parts:
            if not quick:
                yield part
            elif not part.is_optional:
                yield part.quick()


@dataclass(frozen=True, eq=False)
class View:
    """What an exhibit is drawn from: its parts that have results, and the results.

    Attributes
    ----------
    exhibit : the exhibit itself
    parts : those of its parts that have at least one cell
    results : of the folder
    values : numbers of an exhibit without runs
    """

    exhibit: Exhibit
    parts: tuple[Part, ...]
    results: Results
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_quick(self) -> bool:
        """Whether these are the small runs on embedded data."""
        return any(part.is_quick for part in self.parts)

    @property
    def name(self) -> str:
        """The id, which also names the parts of a figure within a page."""
        return self.exhibit.id + ("-quick" if self.is_quick else "")
