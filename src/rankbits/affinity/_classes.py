"""Class affinity: 1 where the labels are equal, else 0."""

from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity._base import Affinity
from rankbits.errors import InputError

_KINDS = {"b": "integers", "i": "integers", "u": "integers", "U": "strings", "S": "bytes"}
_WIDE = {"i": np.int64, "u": np.uint64}
_TABLE_SPAN = 1 << 20


class Classes(Affinity):
    """Same class: 1, other class: 0. Build it with `rankbits.affinity.classes`.

    Parameters
    ----------
    query_labels : ndarray of shape (n_queries,)
        The class of each query, as integers, strings or bytes. At least one query is needed.
    database_labels : ndarray of shape (n_items,)
        The class of each item, of the same kind as `query_labels`. It may be memory-mapped.
    """

    def __init__(self, query_labels: np.ndarray, database_labels: np.ndarray) -> None:
        names, query_ids = np.unique(query_labels, return_inverse=True)
        self.names = names.astype(_WIDE.get(names.dtype.kind, names.dtype))
        self.query_ids = query_ids.astype(np.int32)
        self.database_labels = database_labels
        self.levels = np.array([0, 1])
        self.shape = (len(query_labels), len(database_labels))
        self._table = _lookup_table(self.names)

    def database_ids(self, items: slice | np.ndarray) -> np.ndarray:
        """Class numbers of a block of items, int32; -1 for a class that no query has."""
        labels = self.database_labels[items]
        if self._table is not None:
            low, table = self._table
            if len(labels) and labels.min() >= low and labels.max() < low + len(table):
                ids: np.ndarray = table[labels.astype(np.uint64) - np.uint64(low % 2**64)]
                return ids
            known = (labels >= low) & (labels < low + len(table))
            offsets = labels.astype(np.uint64) - np.uint64(low % 2**64)  # exact where known
            return np.where(known, table[np.where(known, offsets, np.uint64(0))], np.int32(-1))
        # A label that its own width or sign keeps from being cast exactly is unequal to its spot.
        sought = labels.astype(self.names.dtype) if labels.dtype.kind in _WIDE else labels
        spots = np.minimum(np.searchsorted(self.names, sought), len(self.names) - 1)
        return np.where(self.names[spots] == labels, spots, -1).astype(np.int32)

    def indices(self, queries: slice, items: slice) -> np.ndarray:
        equal: np.ndarray = self.query_ids[queries, None] == self.database_ids(items)[None]
        return equal.astype(np.uint8)

    def block(self, query_rows: np.ndarray, item_rows: np.ndarray) -> np.ndarray:
        equal: np.ndarray = self.query_ids[query_rows, None] == self.database_ids(item_rows)[None]
        return equal.astype(np.uint8)

    def pairs(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        equal: np.ndarray = self.query_ids[queries] == self.database_ids(items)
        return (equal & (items >= 0)).astype(np.int64)


def _lookup_table(names: np.ndarray) -> tuple[int, np.ndarray] | None:
    """Class number by label, for integer labels of small range: much faster than a search."""
    if names.dtype.kind not in "iu" or int(names[-1]) - int(names[0]) >= _TABLE_SPAN:
        return None
    low = int(names[0])
    table = np.full(int(names[-1]) - low + 1, -1, np.int32)
    table[names - names[0]] = np.arange(len(names), dtype=np.int32)
    return low, table


def classes(query_labels: Any, database_labels: Any) -> Classes:
    """Affinity 1 where the labels are equal, else 0.

    Parameters
    ----------
    query_labels, database_labels : array-like of shape (n,)
        The class of each query and of each item, both as integers or both as strings.

    >>> classes(["cat", "dog"], ["dog", "cow", "cat"]).indices(slice(None), slice(None)).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    query_side = _labels("query_labels", query_labels)
    database_side = _labels("database_labels", database_labels)
    kinds = _KINDS[query_side.dtype.kind], _KINDS[database_side.dtype.kind]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"query_labels are {kinds[0]} and database_labels are {kinds[1]}; "
            "no label of one could equal a label of the other"
        )
    return Classes(query_side, database_side)


def _labels(name: str, values: Any) -> np.ndarray:
    """A 1-D array of integers or strings."""
    labels = _check.array(name, values)
    if labels.dtype == object and all(isinstance(label, str) for label in labels.ravel()):
        labels = labels.astype(np.str_)
    if labels.ndim != 1 or labels.dtype.kind not in _KINDS:
        hint = "; multi-hot labels go to affinity.tags()" if labels.ndim == 2 else ""
        raise InputError(
            f"{name} must be integers or strings of shape (n,), got {_check.describe(labels)}{hint}"
        )
    if len(labels) == 0:
        raise InputError(f"{name} must not be empty")
    return labels.astype(np.int8) if labels.dtype.kind == "b" else labels
