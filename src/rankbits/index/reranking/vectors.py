"""Re-ranking by original vectors, in memory or in a mapped .npy file.

Only the rows of candidates are read: all queries' together and in ascending order, so that a file
on a disk is gone through once and forwards. Sums are in float64, in one order whatever the threads.
"""

import os
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankbits import _check, _native
from rankbits._files import READ_ERRORS, one_line
from rankbits._mapped import map_npy, unchanged
from rankbits.codes import Queries
from rankbits.errors import FileFormatError, InputError
from rankbits.index import inputs
from rankbits.index.reranking.base import Candidates
from rankbits.index.results import Ragged

SIMILARITIES = ("l2", "ip", "cosine")
_DTYPES = ("float16", "float32", "float64", "int8", "uint8")
_BLOCK_CELLS = 1 << 18  # numbers at a time, of arrays that the kernel cannot read in place


class vectors:  # noqa: N801 - reads as a function: search(..., rerank=vectors(x))
    """Distance of candidates by their original vectors.

    Parameters
    ----------
    source : array (n, d) of float16, float32, float64, int8 or uint8, or path of a .npy with one
        A path is mapped, never read as a whole.
    queries : array (Q, d), finite, or None
        None takes the vectors of the queries of the search.
    similarity : "cosine", "ip" or "l2"
        "cosine": 1 minus the cosine, which counts as 0 where a vector is zero. "ip": minus the
        inner product. "l2": Euclidean distance.
    ids : ids of the rows of source, each once; without them row i is of id i

    >>> from rankbits import BinaryCodes
    >>> from rankbits.index import HammingIndex
    >>> x = np.array([[3.0, 4.0], [1.0, 1.0]])
    >>> index = HammingIndex(2, kind="scan")
    >>> _ = index.add(BinaryCodes.from_logits(x))
    >>> query = np.array([[0.0, 0.0]])
    >>> matches = index.search(BinaryCodes.from_logits(query), 2, rerank=vectors(x, query, "l2"))
    >>> matches.distances.round(3).tolist(), matches.ids.tolist()
    ([[1.4140000343322754, 5.0]], [[1, 0]])
    """

    reads_codes: ClassVar[bool] = False

    def __init__(
        self, source: Any, queries: Any = None, similarity: str = "cosine", ids: Any = None
    ) -> None:
        self._similarity = _check.choice("similarity", similarity, SIMILARITIES)
        self._source = _opened(source)
        self._queries = None if queries is None else self._prepared(queries)
        self._order: np.ndarray | None = None  # rows in ascending order of id
        if ids is not None:
            its_ids = _row_ids(ids, len(self._source))
            self._order = np.argsort(its_ids)
            self._ids = its_ids[self._order]

    def _prepared(self, queries: Any) -> np.ndarray:
        rows = _queries_of(queries, self._source.shape[1])
        return _unit(rows) if self._similarity == "cosine" else rows

    def _vectors_of(self, queries: Queries) -> np.ndarray:
        """The vectors that were given, or those of the queries."""
        if self._queries is not None:
            return self._queries
        if queries.vectors is None:
            raise InputError("queries must have vectors for vectors(source); give it their vectors")
        return self._prepared(queries.vectors)

    def require(self, queries: Queries, n_bits: int) -> None:
        """Refuse queries that are not as many as those of the search."""
        n_vectors = len(self._vectors_of(queries))
        if n_vectors != len(queries):
            raise InputError(
                f"queries of vectors must be as many as codes, got {n_vectors} for "
                f"{len(queries)} codes"
            )

    def distances(self, candidates: Candidates) -> np.ndarray:
        """Distance of each candidate."""
        return self.listed(candidates.queries, candidates.nearest, candidates.n_threads)

    def listed(self, queries: Queries, nearest: Ragged, n_threads: int = 1) -> np.ndarray:
        """Distance of each item of a list, whose codes need not be known.

        Parameters
        ----------
        queries : Queries with vectors
        nearest : items of each query
        n_threads : int, default=1
        """
        vectors = self._vectors_of(queries)
        with unchanged(self._source):
            rows, queries_of_rows = self._rows_of(nearest.ids), nearest.queries()
            order = np.argsort(rows, kind="stable")
            rows, asking, in_order = rows[order], queries_of_rows[order], np.empty(len(rows))
            if _is_readable(self._source):
                pairs = _Pairs(rows, asking, rows, in_order)
                self._compare(np.asarray(self._source), pairs, vectors, n_threads)
            else:
                step = max(1, _BLOCK_CELLS // max(1, self._source.shape[1]))
                for start in range(0, len(rows), step):
                    part = slice(start, start + step)
                    different, which = np.unique(rows[part], return_inverse=True)
                    block = np.asarray(self._source[different])
                    block = np.ascontiguousarray(block, block.dtype.newbyteorder("="))
                    pairs = _Pairs(which, asking[part], rows[part], in_order[part])
                    self._compare(block, pairs, vectors, n_threads)
            distances = np.empty(len(rows))
            distances[order] = in_order
            return distances

    def _compare(
        self, source: np.ndarray, pairs: "_Pairs", vectors: np.ndarray, n_threads: int
    ) -> None:
        bad_row = _native.score_vectors(
            source.view(np.uint16) if source.dtype == np.float16 else source,
            pairs.rows,
            pairs.queries,
            vectors,
            SIMILARITIES.index(self._similarity),
            pairs.distances,
            n_threads,
        )
        if bad_row >= 0:
            name = int(pairs.names[np.searchsorted(pairs.rows, bad_row)])
            raise InputError(f"source must be finite, row {name} has NaN or infinity")

    def _rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Rows of source that hold these ids."""
        n = len(self._source)
        if self._order is None:
            rows, is_there = ids, ids < n
        else:
            places = np.minimum(np.searchsorted(self._ids, ids), max(n - 1, 0))
            is_there = self._ids[places] == ids if n else np.zeros(len(ids), bool)
            rows = self._order[places] if n else places
        if not is_there.all():
            raise InputError(
                f"source must have a row for every candidate, {int(ids[~is_there][0])} has none "
                f"among {n} rows"
            )
        return rows


class _Pairs(NamedTuple):
    """Rows of a block, ascending, and the queries that they are compared with.

    Attributes
    ----------
    rows, queries : of each pair
    names : what the rows are called in the whole source
    distances : where the results go
    """

    rows: np.ndarray
    queries: np.ndarray
    names: np.ndarray
    distances: np.ndarray


def _is_readable(source: np.ndarray) -> bool:
    """Whether the kernel can read the array where it is, in memory or in a mapped file."""
    is_plain = type(source) in (np.ndarray, np.memmap)
    return is_plain and source.flags.c_contiguous and source.flags.aligned and source.dtype.isnative


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1, or 0 where they are zero; scaled first, so that no square overflows."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1.0))


def _opened(source: Any) -> np.ndarray:
    """The vectors as an array; a path is mapped."""
    if isinstance(source, str | os.PathLike):
        array = _mapped(source)
    else:
        array = _check.array("source", source)
    if array.ndim != 2 or array.dtype.name not in _DTYPES:
        raise InputError(
            f"source must be an array (n, d) of {', '.join(_DTYPES)}, got "
            f"{array.dtype} of shape {array.shape}"
        )
    return array


def _mapped(path: str | os.PathLike[str]) -> np.ndarray:
    if not os.path.isfile(path):
        raise InputError(f"source must be an array or name a .npy file, there is no {path}")
    try:
        return map_npy(path)
    except READ_ERRORS as error:
        raise FileFormatError(f"{path} is not a readable .npy file: {one_line(error)}") from None


def _queries_of(queries: Any, width: int) -> np.ndarray:
    array = _check.array("queries", queries)
    if array.dtype.kind not in "biuf" or array.ndim != 2 or array.shape[1] != width:
        raise InputError(
            f"queries must be numbers of shape (n, {width}) as source has, got "
            f"{_check.describe(array)}"
        )
    _check.finite("queries", array)
    return array.astype(np.float64)


def _row_ids(ids: Any, n_rows: int) -> np.ndarray:
    array = inputs.ids_of(ids)
    if len(array) != n_rows:
        raise InputError(
            f"ids must be as many as rows of source, got {len(array)} ids for {n_rows} rows"
        )
    return array
