"""Several tables of codes as one: an item is as far away as the table that has it nearest.

Of T tables, d(q, i) is the smallest of the T Hamming distances between the codes of q and i. What
is found within a radius is the union of what each table finds there; an item comes once.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rankbits import _check
from rankbits.codes import MAX_BITS, BinaryCodes, hamming_distances, require_same_bits
from rankbits.errors import InputError

Tables = BinaryCodes | Sequence[BinaryCodes]
_BLOCK_CELLS = 1 << 22


class Lookup(NamedTuple):
    """Items found: those of query q are ids[offsets[q]:offsets[q + 1]], nearest first.

    Attributes
    ----------
    offsets : ndarray of int64, shape (queries + 1,)
    distances : ndarray of int32
        Smallest over the tables.
    ids : ndarray of int64
        Positions in the database, in order of (distance, id) for each query.
    """

    offsets: np.ndarray
    distances: np.ndarray
    ids: np.ndarray


def lookup_tables(
    queries: Tables, database: Tables, *, radius: int | None = None, k: int | None = None
) -> Lookup:
    """Search several tables in one call: all items within a radius, the k nearest, or both.

    The search compares every pair, so it is exact; memory is that of a block of queries.

    Parameters
    ----------
    queries, database : codes of each table in the same order, as `encode_tables` gives them
    radius : int or None, items at this distance or nearer in at least one table
    k : int or None, at most so many items a query, the nearest; of equal distance those of lower id

    >>> tables = [BinaryCodes.from_bits(bits) for bits in ([[0, 0], [1, 1]], [[0, 1], [0, 0]])]
    >>> found = lookup_tables([codes[:1] for codes in tables], tables, radius=1)
    >>> found.ids.tolist(), found.distances.tolist()
    ([0, 1], [0, 1])
    """
    mine, theirs = _paired(queries, database)
    n = len(theirs[0])
    if radius is None and k is None:
        raise InputError("radius or k must be given: how far to look, or how many items to find")
    reach = MAX_BITS if radius is None else _check.whole("radius", radius, 0)
    most = n if k is None else min(_check.whole("k", k, 1), n)
    counts, distances, ids = [np.zeros(1, np.int64)], list[np.ndarray](), list[np.ndarray]()
    for near in _smallest_blocks(mine, theirs):
        n_found, near_ids, near_distances = _nearest(near, reach, most)
        counts.append(n_found)
        ids.append(near_ids)
        distances.append(near_distances)
    offsets = np.cumsum(np.concatenate(counts))
    return Lookup(offsets, np.concatenate(distances), np.concatenate(ids))


def smallest_distances(
    queries: Sequence[BinaryCodes], database: Sequence[BinaryCodes]
) -> np.ndarray:
    """Distance of every pair in the table that has it nearest, uint16 of shape (queries, items)."""
    near = hamming_distances(queries[0], database[0])
    for mine, theirs in zip(queries[1:], database[1:], strict=True):
        np.minimum(near, hamming_distances(mine, theirs), out=near)
    return near


def _smallest_blocks(
    queries: Sequence[BinaryCodes], database: Sequence[BinaryCodes]
) -> Iterator[np.ndarray]:
    step = max(1, _BLOCK_CELLS // len(database[0]))
    for start in range(0, len(queries[0]), step):
        yield smallest_distances([codes[start : start + step] for codes in queries], database)


def _nearest(near: np.ndarray, reach: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number found for each query, then ids and distances of all of them, query after query."""
    n = near.shape[1]
    order = np.broadcast_to(np.arange(n), near.shape)
    if most < n:  # distance and id in one number, so that no two are equal
        keys = near.astype(np.int64) * n + order
        order = np.sort(np.argpartition(keys, most - 1, axis=1)[:, :most], axis=1)
        near = np.take_along_axis(near, order, axis=1)
    ranked = np.argsort(near, axis=1, kind="stable")
    near, order = (np.take_along_axis(part, ranked, axis=1) for part in (near, order))
    is_found = near <= reach
    found = near[is_found].astype(np.int32)
    return is_found.sum(axis=1), order[is_found].astype(np.int64), found


def _paired(
    queries: Tables, database: Tables
) -> tuple[Sequence[BinaryCodes], Sequence[BinaryCodes]]:
    """Both sides as lists of tables that fit."""
    mine, theirs = (
        [side] if isinstance(side, BinaryCodes) else side for side in (queries, database)
    )
    if not mine or len(mine) != len(theirs):
        raise InputError(
            "queries and database must have the same tables, at least one, got "
            f"{len(mine)} and {len(theirs)}"
        )
    for one, other in zip(mine, theirs, strict=True):
        require_same_bits(one, other)
    for name, tables in (("queries", mine), ("database", theirs)):
        sizes = {len(codes) for codes in tables}
        if len(sizes) > 1:
            raise InputError(
                f"{name} must have as many codes in every table, got {sorted(sizes)}; encode the "
                "same rows for all of them"
            )
    return mine, theirs
