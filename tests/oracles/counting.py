"""Twins of the lower rooms, written from the definitions: slow and plain.

`counts_by_pairs` visits every pair in Python; `counts_by_query` does one query at a time in NumPy
and is itself checked against the former. A `Case` is an affinity beside the levels it must give.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankbits import BinaryCodes, affinity
from rankbits.affinity import Affinity

BIT_LENGTHS = (1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 255, 256, 257, 4096)


def random_codes(rng, n, n_bits, n_distinct=None):
    """Codes of n items; with n_distinct they fall on that many codes at most."""
    if n_distinct is None:
        return BinaryCodes.from_bits(rng.integers(0, 2, (n, n_bits), np.uint8))
    pool = random_codes(rng, n_distinct, n_bits)
    return pool[rng.integers(0, n_distinct, n)]


def code_numbers(codes):
    """Each code as one Python integer; spare bits are zero, so they never add to a distance."""
    return [int.from_bytes(bytes(row), "big") for row in codes.packed]


def distances_by_pairs(queries, database):
    """Hamming distances, pair by pair."""
    theirs = code_numbers(database)
    return np.array([[bin(a ^ b).count("1") for b in theirs] for a in code_numbers(queries)])


def counts_by_pairs(queries, database, matrix, levels, own=None):
    """n[q, d, v] by a double loop; own[q] is the item that query q does not see, -1 for none."""
    column = {level: v for v, level in enumerate(levels.tolist())}
    counts = np.zeros((len(queries), queries.n_bits + 1, len(levels)), np.int64)
    for q, row in enumerate(distances_by_pairs(queries, database).tolist()):
        for i, distance in enumerate(row):
            if own is None or own[q] != i:
                counts[q, distance, column[int(matrix[q][i])]] += 1
    return counts


def counts_by_query(queries, database, level_rows, n_levels):
    """The same, one query at a time: level_rows yields the column of each item, query by query."""
    shape = (queries.n_bits + 1, n_levels)
    counts = np.empty((len(queries), *shape), np.int64)
    for q, (code, columns) in enumerate(zip(queries.packed, level_rows, strict=True)):
        distance = np.bitwise_count(database.packed ^ code).sum(axis=1, dtype=np.int64)
        cells = np.bincount(distance * n_levels + columns, minlength=shape[0] * shape[1])
        counts[q] = cells.reshape(shape)
    return counts


def class_levels(query_labels, database_labels):
    """1 where Python calls two labels equal, whatever the dtypes they are stored in."""
    theirs = np.asarray(database_labels).tolist()
    return np.array([[int(a == b) for b in theirs] for a in np.asarray(query_labels).tolist()])


def tag_levels(query_tags, database_tags, graded):
    """Size of the intersection of two tag sets, or whether it is not empty."""
    mine, theirs = (
        [set(np.flatnonzero(row)) for row in tags] for tags in (query_tags, database_tags)
    )
    shared = np.array([[len(a & b) for b in theirs] for a in mine])
    return shared if graded else np.minimum(shared, 1)


def neighbour_levels(query_x, database_x, distances, levels):
    """The level of the smallest threshold that a pair does not exceed."""
    cuts = sorted(zip(distances, levels, strict=True))
    matrix = np.zeros((len(query_x), len(database_x)), np.int64)
    for q, a in enumerate(np.asarray(query_x, float).tolist()):
        for i, b in enumerate(np.asarray(database_x, float).tolist()):
            distance = sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5
            matrix[q, i] = next((level for cut, level in cuts if distance <= cut), 0)
    return matrix


def judged_levels(rows, n_queries, n_database):
    """A zero matrix with the judged pairs filled in."""
    matrix = np.zeros((n_queries, n_database), np.int64)
    for query, item, level in np.asarray(rows).tolist():
        matrix[query, item] = level
    return matrix


@dataclass(frozen=True)
class Case:
    """What an affinity must be: `over(items)` builds it for some of the items, in that order."""

    matrix: np.ndarray  # levels of all pairs, (queries, items)
    over: Callable[[np.ndarray], Affinity]

    @property
    def whole(self):
        return self.over(np.arange(self.matrix.shape[1]))


def _classes(rng, n_queries, n_items):
    mine, theirs = rng.integers(0, 5, n_queries), rng.integers(-1, 4, n_items)
    return Case(class_levels(mine, theirs), lambda items: affinity.classes(mine, theirs[items]))


def _names(rng, n_queries, n_items):
    words = np.array(["cat", "dog", "a long name", "", "köter"])
    mine, theirs = words[rng.integers(0, 4, n_queries)], words[rng.integers(1, 5, n_items)]
    return Case(class_levels(mine, theirs), lambda items: affinity.classes(mine, theirs[items]))


def _tags(rng, n_queries, n_items, graded=False):
    mine, theirs = rng.random((n_queries, 11)) < 0.3, rng.random((n_items, 11)) < 0.2
    theirs[rng.integers(n_items)] = True  # one shard holds the level that no other has
    matrix = tag_levels(mine, theirs, graded)
    return Case(matrix, lambda items: affinity.tags(mine, theirs[items], graded=graded))


def _graded_tags(rng, n_queries, n_items):
    return _tags(rng, n_queries, n_items, graded=True)


def _levels(rng, n_queries, n_items):
    matrix = rng.choice([0, 0, 1, 4, 2**62], (n_queries, n_items))
    return Case(matrix, lambda items: affinity.levels(matrix[:, items]))


def _many_levels(rng, n_queries, n_items):
    matrix = rng.integers(0, 700, (n_queries, n_items)) * 3
    matrix.flat[: min(matrix.size, 300)] = np.arange(min(matrix.size, 300)) * 3
    return Case(matrix, lambda items: affinity.levels(matrix[:, items]))


def _neighbours(rng, n_queries, n_items):
    mine, theirs = rng.normal(size=(n_queries, 3)), rng.normal(size=(n_items, 3))
    cuts = (2.0, 0.5, 1.0), (1, 9, 2)
    matrix = neighbour_levels(mine, theirs, *cuts)
    return Case(matrix, lambda items: affinity.neighbours(mine, theirs[items], *cuts))


def _judgements(rng, n_queries, n_items):
    judged = rng.random((n_queries, n_items)) < 0.3
    pairs = np.argwhere(judged)
    rows = np.column_stack([pairs, rng.choice([0, 1, 2, 7], len(pairs))])
    matrix = judged_levels(rows, n_queries, n_items)

    def over(items):
        place = {int(item): spot for spot, item in enumerate(items)}
        kept = [(q, place[i], level) for q, i, level in rows.tolist() if i in place]
        return affinity.judgements(np.array(kept, np.int64).reshape(-1, 3), n_queries, len(items))

    return Case(matrix, over)


KINDS = {
    "classes": _classes,
    "names": _names,
    "tags": _tags,
    "graded tags": _graded_tags,
    "levels": _levels,
    "many levels": _many_levels,
    "neighbours": _neighbours,
    "judgements": _judgements,
}
