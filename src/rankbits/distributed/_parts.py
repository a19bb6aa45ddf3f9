"""The plan of an encoding: which rows of which file become which part, and which parts a file.

Parts begin at multiples of the blocks that a method encodes at once, counted from the first row of
their file. So every row meets the same block as on one machine, and gets the same bits.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from rankbits._check import extra
from rankbits._files import unreadable_files_refused
from rankbits.datasets.blocks import RowFile

_PART_BYTES = 256 << 20  # of rows as float32: a second or so of work
_PARTS_PER_CPU = 4


@dataclass(frozen=True)
class InputPart:
    """Rows start..stop - 1 of one input."""

    input: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Its file in the work folder."""
        return f"{self.input:05d}-{self.start:012d}.npy"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


@dataclass(frozen=True)
class Target:
    """A file of codes, and the parts that it consists of, in order."""

    path: str
    parts: tuple[InputPart, ...]

    @property
    def n_rows(self) -> int:
        """Number of codes."""
        return sum(part.n_rows for part in self.parts)


def rows_per_part(inputs: Sequence[RowFile], step: int, n_workers: int) -> int:
    """Rows of a part: several parts for each worker, none of more bytes than is reasonable."""
    n_rows = sum(rows.n_rows for rows in inputs)
    most = _PART_BYTES // (4 * max(1, prod(inputs[0].row_shape)))
    share = -(-n_rows // (_PARTS_PER_CPU * n_workers))
    return step * max(1, min(most, share) // step)


def plan_targets(
    inputs: Sequence[RowFile], out: str, *, is_folder: bool, step: int, n_rows: int
) -> list[Target]:
    """The files to write: one for each input in a folder, or one for all inputs together."""
    parts = [
        tuple(InputPart(i, start, stop) for start, stop in _ranges(rows, step, n_rows))
        for i, rows in enumerate(inputs)
    ]
    if not is_folder:
        return [Target(out, tuple(part for of_input in parts for part in of_input))]
    return [
        Target(os.path.join(out, _output_name(i, rows.path)), of_input)
        for i, (rows, of_input) in enumerate(zip(inputs, parts, strict=True))
        if of_input
    ]


def _output_name(i: int, path: str) -> str:
    """The name of the codes of an input: its place, so that names differ, and its own name."""
    return f"{i:05d}-{os.path.splitext(os.path.basename(path))[0]}.npy"


def _ranges(rows: RowFile, step: int, n_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of about n_rows rows that begin at multiples of step, for Parquet at row groups."""
    start = 0
    for boundary in _boundaries(rows, n_rows):
        stop = min(-(-boundary // step) * step, rows.n_rows)
        if stop - start >= n_rows or stop == rows.n_rows > start:
            yield start, stop
            start = stop


def _boundaries(rows: RowFile, n_rows: int) -> Iterator[int]:
    """Where ranges may end, ascending, the last at the end of the file."""
    if not rows.path.endswith(".parquet"):
        yield from range(n_rows, rows.n_rows, n_rows)
        yield rows.n_rows
        return
    parquet = extra("pyarrow.parquet", "reading .parquet", "files")
    with unreadable_files_refused(rows.path, ".parquet"), parquet.ParquetFile(rows.path) as stored:
        groups = [stored.metadata.row_group(i).num_rows for i in range(stored.num_row_groups)]
    end = 0
    for group in groups:
        end += group
        yield end
