"""The tie histogram as a value: it adds, stacks, saves and loads."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankbits import _check
from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits._unpacking import require_unpackable_npz
from rankbits.errors import FileFormatError, InputError

_FORMAT = 1
_MAX_ITEMS = 2**63 - 1  # of one query: more than an int64 counts
_LOW_HALF = np.uint64(2**32 - 1)


@dataclass(frozen=True, eq=False)
class TieHistogram:
    """Counts of database items by distance and affinity, one row per query.

    Attributes
    ----------
    counts : ndarray of int64, shape (queries, b + 1, V)
    levels : ndarray of int64, shape (V,)
        Affinity levels, ascending from 0; column v of counts has affinity levels[v].
    """

    counts: np.ndarray
    levels: np.ndarray

    def __post_init__(self) -> None:
        counts, levels = np.asarray(self.counts), np.asarray(self.levels)
        if counts.ndim != 3 or counts.shape[1] < 2 or counts.dtype.kind not in "iu":
            raise InputError(
                "counts must be integers of shape (queries, b + 1, V), "
                f"got {_check.describe(counts)}"
            )
        if levels.shape != counts.shape[2:] or levels.dtype.kind not in "iu":
            raise InputError(
                f"levels must be {counts.shape[2]} integers, one per column of counts, "
                f"got {_check.describe(levels)}"
            )
        _require_countable(counts)
        counts, levels = counts.astype(np.int64, copy=False), levels.astype(np.int64, copy=False)
        if levels.size == 0 or levels[0] != 0 or (np.diff(levels) <= 0).any():
            raise InputError(f"levels must ascend from 0, got {levels.tolist()}")
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "levels", levels)

    @property
    def n_bits(self) -> int:
        """Code length b."""
        return int(self.counts.shape[1]) - 1

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return int(self.counts.shape[0])

    @property
    def items(self) -> np.ndarray:
        """n[q, d]: items in each tie, (queries, b + 1)."""
        total: np.ndarray = self.counts.sum(axis=2)
        return total

    @property
    def positives(self) -> np.ndarray:
        """n+[q, d]: items of any level above 0 in each tie, (queries, b + 1)."""
        total: np.ndarray = self.counts[:, :, 1:].sum(axis=2)
        return total

    def __add__(self, other: "TieHistogram") -> "TieHistogram":
        """Merge a disjoint shard of the database, seen by the same queries.

        Levels that only one shard has are kept: an absent level is a count of 0.
        """
        if not isinstance(other, TieHistogram):
            return NotImplemented
        shape, other_shape = self.counts.shape[:2], other.counts.shape[:2]
        if shape != other_shape:
            raise InputError(
                f"shards must share (queries, b + 1), got {shape} and {other_shape}; "
                "count both with the same queries and code length"
            )
        totals = [hist.counts.sum(axis=(1, 2)) for hist in (self, other)]
        if (totals[0] > _MAX_ITEMS - totals[1]).any():
            query = int(np.argmax(totals[0] > _MAX_ITEMS - totals[1]))
            raise InputError(
                f"shards must have fewer than 2^63 items together, query {query} has "
                f"{totals[0][query]} and {totals[1][query]}"
            )
        levels = np.union1d(self.levels, other.levels)
        return TieHistogram(_spread(self, levels) + _spread(other, levels), levels)

    @staticmethod
    def stack(parts: Sequence["TieHistogram"]) -> "TieHistogram":
        """Rows of disjoint query sets, one after the other."""
        if not parts or len({part.n_bits for part in parts}) != 1:
            raise InputError("parts must be histograms of one code length, at least one of them")
        levels = np.unique(np.concatenate([part.levels for part in parts]))
        return TieHistogram(np.concatenate([_spread(part, levels) for part in parts]), levels)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file that `TieHistogram.load` and `numpy.load` read."""
        with write_atomically(path) as file:
            np.savez_compressed(
                file, rankbits_histogram=_FORMAT, counts=self.counts, levels=self.levels
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "TieHistogram":
        """Read a saved histogram; a damaged or foreign file is refused.

        Parameters
        ----------
        path : file that `save` wrote
        """
        if not os.path.isfile(path):
            raise InputError(f"path must name a saved histogram, there is no {path}")
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                names = ("rankbits_histogram", "counts", "levels")
                require_unpackable_npz(path, stored.zip, names)
                version = int(stored["rankbits_histogram"])
                counts, levels = stored["counts"], stored["levels"]
        except InputError:
            raise
        except READ_ERRORS as error:
            raise FileFormatError(
                f"{path} is not a whole saved histogram: {one_line(error)}"
            ) from None
        if version != _FORMAT:
            raise FileFormatError(f"{path} has format {version}; this rankbits reads {_FORMAT}")
        try:
            return cls(counts, levels)
        except InputError as error:
            raise FileFormatError(f"{path} does not hold a tie histogram: {error}") from None


def _require_countable(counts: np.ndarray) -> None:
    """Refuse negative counts, and queries whose items an int64 cannot count."""
    if counts.size == 0:
        return
    if counts.min() < 0:
        raise InputError("counts must not be negative")
    if int(counts.max()) <= _MAX_ITEMS // math.prod(counts.shape[1:]):
        return
    wide = counts.astype(np.uint64)
    halves = [part.sum(axis=(1, 2)).tolist() for part in (wide >> np.uint64(32), wide & _LOW_HALF)]
    for query, (high, low) in enumerate(zip(*halves, strict=True)):
        total = (high << 32) + low
        if total > _MAX_ITEMS:
            raise InputError(
                f"counts must be fewer than 2^63 items for each query, query {query} has {total}"
            )


def _spread(hist: TieHistogram, levels: np.ndarray) -> np.ndarray:
    """Counts of hist with a column for each of the given levels, a superset of its own."""
    if np.array_equal(hist.levels, levels):
        return hist.counts
    counts = np.zeros((*hist.counts.shape[:2], len(levels)), np.int64)
    counts[:, :, np.searchsorted(levels, hist.levels)] = hist.counts
    return counts
