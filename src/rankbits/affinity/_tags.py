"""Tag affinity of multi-hot labels: a shared tag, or the number of shared tags."""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity._base import Affinity
from rankbits.errors import InputError

_BLOCK_CELLS = 1 << 20


class Tags(Affinity):
    """Shared tags, counted or not. Build it with `rankbits.affinity.tags`.

    Parameters
    ----------
    query_tags : ndarray of shape (n_queries, L)
        Multi-hot tags of the queries: 1 where a query has the tag of a column, else 0.
    database_tags : ndarray of shape (n_items, L)
        Multi-hot tags of the items, with the same tags in the same columns. It may be
        memory-mapped.
    graded : bool
        If True, the level of a pair is the number of tags that it shares. If False, the level is
        1 for every pair that shares a tag.
    """

    def __init__(self, query_tags: np.ndarray, database_tags: np.ndarray, graded: bool) -> None:
        self.query_tags = query_tags != 0
        self.database_tags = database_tags
        self.graded = graded
        self.shape = (len(query_tags), len(database_tags))
        top = min(_most_tags(query_tags), _most_tags(database_tags)) if graded else 1
        self.levels = np.arange(max(top, 1) + 1)

    def database_rows(self, items: slice | np.ndarray) -> np.ndarray:
        """Tags of a block of items, as contiguous uint8 of 0 and 1."""
        rows = self.database_tags[items]
        if rows.dtype not in (np.bool_, np.uint8, np.int8):
            rows = rows != 0
        return np.ascontiguousarray(rows).view(np.uint8)

    def indices(self, queries: slice, items: slice) -> np.ndarray:
        return self._positions(queries, items)

    def block(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        return self._positions(query_rows, item_rows)

    def _positions(self, queries: slice | np.ndarray, items: slice | np.ndarray) -> np.ndarray:
        query_side = self.query_tags[queries].astype(np.float32)
        shared: np.ndarray = query_side @ self.database_rows(items).astype(np.float32).T
        np.minimum(shared, self.levels[-1], out=shared)
        return shared.astype(self.index_dtype)


def tags(query_tags: Any, database_tags: Any, graded: bool = False) -> Tags:
    """Affinity from multi-hot labels: 1 where a tag is shared; graded, the number of shared tags.

    Parameters
    ----------
    query_tags, database_tags : array-like of 0 and 1, shape (n, L)
        The tags of each query and of each item, with the same tags in the same columns.
    graded : bool, default=False
        Whether the level is the number of shared tags.

    >>> tags([[1, 1, 0]], [[1, 1, 1], [0, 0, 1]], graded=True).indices(slice(None), slice(None))
    array([[2, 0]], dtype=uint8)
    """
    query_side = _multi_hot("query_tags", query_tags)
    database_side = _multi_hot("database_tags", database_tags)
    if query_side.shape[1] != database_side.shape[1]:
        raise InputError(
            f"query_tags have {query_side.shape[1]} columns and database_tags have "
            f"{database_side.shape[1]}; "
            "both must describe the same tags in the same order"
        )
    return Tags(query_side, database_side, bool(graded))


def _multi_hot(name: str, values: Any) -> np.ndarray:
    """A 2-D array of 0 and 1, checked in blocks so that a mapped file stays on disk."""
    array = _check.array_2d(name, values, columns="tags")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be 0 and 1, got {_check.describe(array)}")
    for block in _blocks(array):
        if not ((block == 0) | (block == 1)).all():
            value = block[(block != 0) & (block != 1)][0]
            raise InputError(f"{name} must be 0 and 1, got the value {value}")
    return array


def _most_tags(array: np.ndarray) -> int:
    return max(int(np.count_nonzero(block, axis=1).max()) for block in _blocks(array))


def _blocks(array: np.ndarray) -> list[np.ndarray]:
    rows = max(1, _BLOCK_CELLS // array.shape[1])
    return [array[start : start + rows] for start in range(0, len(array), rows)]
