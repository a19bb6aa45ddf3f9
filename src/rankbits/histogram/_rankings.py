"""A ranking as a sequence of ties, written as a tie histogram.

A bucket of such a histogram is a tie, in order, instead of a distance. Ties whose items are all of
one level look the same in any order, so neighbors of the same level are joined: what is left is as
short as every metric allows.

Notation:
    T  ties of a ranking        V  levels of the affinity
"""

import numpy as np

from rankbits.histogram._table import TieHistogram


def compress_ties(counts: np.ndarray, depth: int | None = None) -> np.ndarray:
    """The same ranking in as few ties as every metric allows.

    Parameters
    ----------
    counts : ndarray of int64, shape (V, T)
        Items of each level in each tie, ties in order.
    depth : int or None, default=None
        Ties that begin at this rank or beyond, counted from 0, come as one. None joins none.

    >>> compress_ties(np.array([[0, 0, 3, 1, 2], [1, 2, 0, 1, 0]])).tolist()
    [[0, 3, 1, 2], [3, 0, 1, 0]]
    >>> compress_ties(np.array([[0, 1, 0, 1], [1, 0, 1, 0]]), depth=1).tolist()
    [[0, 2], [1, 1]]
    """
    sizes = counts.sum(axis=0)
    counts, sizes = counts[:, sizes > 0], sizes[sizes > 0]
    if not sizes.size:
        return counts
    level = np.where(counts.max(axis=0) == sizes, counts.argmax(axis=0), -1)
    starts_tie = np.ones(len(sizes), bool)
    starts_tie[1:] = (level[1:] != level[:-1]) | (level[1:] < 0)
    if depth is not None:
        is_beyond = np.cumsum(sizes) - sizes >= depth
        starts_tie[1:][is_beyond[1:]] = ~is_beyond[:-1][is_beyond[1:]]
    return np.add.reduceat(counts, np.flatnonzero(starts_tie), axis=1)


def stack_ties(tables: list[np.ndarray], levels: np.ndarray) -> TieHistogram:
    """One histogram of several rankings; shorter ones end in empty ties.

    Parameters
    ----------
    tables : list of ndarray of int64, each of shape (V, T)
        The ties of each ranking, in order; T may differ.
    levels : ndarray of int64, shape (V,)
        Affinity level of each row.
    """
    n_ties = max(2, *(table.shape[1] for table in tables))
    counts = np.zeros((len(tables), n_ties, len(levels)), np.int64)
    for ranking, table in zip(counts, tables, strict=True):
        ranking[: table.shape[1]] = table.T
    return TieHistogram(counts, levels)
