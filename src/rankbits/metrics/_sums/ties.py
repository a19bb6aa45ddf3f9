"""A tie histogram read as ties: sizes, positives, and what lies before each tie.

Notation, here and wherever this module is imported:
    n, p  items and positives in a tie       N, P  the same, in all nearer ties
    m     places of a tie inside a cutoff    k     the cutoff, a rank from 1
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.histogram import TieHistogram


@dataclass(frozen=True, eq=False)
class Ties:
    """Counts as doubles, exact below 2^53: (queries, b + 1) arrays, and totals (queries,)."""

    n: np.ndarray
    p: np.ndarray
    N: np.ndarray
    P: np.ndarray
    n_items: np.ndarray
    n_positives: np.ndarray

    def places(self, k: int | None) -> np.ndarray:
        """m: how many places of each tie lie within the first k ranks; all if k is None."""
        return self.n if k is None else np.clip(k - self.N, 0.0, self.n)


@dataclass(frozen=True, eq=False)
class CutTie:
    """The tie that a cutoff splits, one per query; m = 0 where the cutoff splits none.

    P counts every positive ranked before that tie: all those certainly within the cutoff.
    """

    n: np.ndarray
    p: np.ndarray
    N: np.ndarray
    P: np.ndarray
    m: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> "CutTie":
        return CutTie(self.n[rows], self.p[rows], self.N[rows], self.P[rows], self.m[rows])

    def fewest(self) -> np.ndarray:
        """The least number of positives that the m places can hold."""
        fewest: np.ndarray = np.maximum(self.m - (self.n - self.p), 0.0)
        return fewest

    def most(self) -> np.ndarray:
        """The greatest number of positives that the m places can hold."""
        most: np.ndarray = np.minimum(self.m, self.p)
        return most


def ties_of(h: TieHistogram) -> Ties:
    """Sizes, positives and running counts of every tie."""
    return _ties(histogram(h).counts)


def blocks_of_ties(h: TieHistogram) -> Iterator[Ties]:
    """The same for blocks of queries, one after the other."""
    for rows in row_blocks(histogram(h)):
        yield _ties(h.counts[rows])


def _ties(counts: np.ndarray) -> Ties:
    p = sum_levels(counts[:, :, 1:])
    n = counts[:, :, 0] + p
    n_to, p_to = n.cumsum(axis=1), p.cumsum(axis=1)
    before = [(to - own).astype(np.float64) for to, own in ((n_to, n), (p_to, p))]
    totals = [to[:, -1].astype(np.float64) for to in (n_to, p_to)]
    return Ties(n.astype(np.float64), p.astype(np.float64), *before, *totals)


def cut_tie(ties: Ties, k: int) -> CutTie:
    """The tie with places on both sides of rank k, of each query."""
    n_inside = (ties.N + ties.n <= k).sum(axis=1)  # ties wholly within the cutoff
    is_split = n_inside < ties.n.shape[1]
    at = (np.arange(len(n_inside)), np.where(is_split, n_inside, 0))
    n, p = np.where(is_split, ties.n[at], 1.0), np.where(is_split, ties.p[at], 0.0)
    N = np.where(is_split, ties.N[at], ties.n_items)
    P = np.where(is_split, ties.P[at], ties.n_positives)
    return CutTie(n, p, N, P, np.where(is_split, k - N, 0.0))


def sum_levels(counts: np.ndarray) -> np.ndarray:
    """Sum over the last axis; adding whole slices is far faster than numpy on a short axis."""
    n_levels = counts.shape[2]
    if not 1 <= n_levels <= 16:
        total: np.ndarray = counts.sum(axis=2)
        return total
    return reduce(np.add, (counts[:, :, v] for v in range(n_levels)))


def row_blocks(h: TieHistogram) -> Iterator[slice]:
    """Slices of queries whose temporaries of 256 KB stay in cache and cost few fresh pages."""
    step = max(1, (1 << 15) // (h.n_bits + 1))
    for start in range(0, h.n_queries, step):
        yield slice(start, start + step)


def divide(part: np.ndarray, total: np.ndarray, empty: float) -> np.ndarray:
    """The quotient part / total, and `empty` where the total is 0."""
    return np.where(total > 0, part / np.where(total > 0, total, 1.0), empty)


def histogram(h: TieHistogram) -> TieHistogram:
    """Refuse anything but a histogram, codes or an array of counts above all."""
    if not isinstance(h, TieHistogram):
        raise InputError(
            f"h must be a TieHistogram, got {_check.describe(h)}; count_ties() returns one"
        )
    return h


def cutoff(k: int | None) -> int | None:
    """A rank from 1, or None for the whole ranking."""
    return None if k is None else _check.whole("k", k, 1)
