"""Distances between float vectors, block by block.

A matrix product gives every distance up to a bound on its rounding, which depends on how the work
was cut; where that leaves a pair's place open, a sum in a fixed order decides. So equal vectors
always have equal distances, and items at exactly the same distance are ties. Where a query has few
relevant items, few pairs are open even if the product is in single precision, at half the cost;
with AVX-512 the kernel's product in double precision costs no more than that.

Notation:
    q, x  vectors of a query and of an item     d  numbers in a vector
    u     2^-52, or 2^-24 in single precision, where it is the greatest error of one operation
"""

from typing import Any

import numpy as np

from rankbits import _check, _native
from rankbits.errors import InputError

VECTOR_METRICS = ("cosine", "ip", "l2")
_KERNEL_METRICS = ("l2", "ip", "cosine")  # in the order of the kernel's numbers
_KERNEL_DTYPES = ("float16", "float32", "float64", "int8", "uint8")
_SAFETY = 4.0  # of the bound on rounding: product, norms and the sum in a fixed order
_UNIT = np.finfo(np.float64).eps
_UNIT_SINGLE = 2.0**-24
_LONGEST, _SHORTEST = 1e200, 1e-200  # squares beyond which a norm overflows or vanishes
_LONGEST_SINGLE, _SHORTEST_SINGLE = 1e30, 1e-20  # the same in single precision, with room to spare
_BLOCK_ITEMS = 1 << 16
_WIDE_CELLS = 1 << 18  # numbers that are converted at a time: 2 MB, which stay in cache
_WHOLE_BITS = 53  # of a double: sums of whole numbers below 2^53 are exact in any order


class VectorDistances:
    """Distances of queries to the rows of a database; smaller is nearer.

    Parameters
    ----------
    queries : array-like of shape (queries, d)
        Finite real numbers.
    database : array-like of shape (items, d)
        Finite real numbers of any type; float16, float32, float64, int8 and uint8 are read in
        place. It may be memory-mapped.
    metric : {"cosine", "ip", "l2"}
        Minus the cosine times a number of the query's own, which is 0 where a vector is zero;
        minus the inner product; or the square of the Euclidean distance.
    """

    def __init__(self, queries: Any, database: Any, metric: str = "cosine") -> None:
        self.metric = _check.choice("metric", metric, VECTOR_METRICS)
        vectors = _vectors("queries", queries)
        _check.finite("queries", vectors)
        self.database = _vectors("database", database)
        if vectors.shape[1] != self.database.shape[1]:
            raise InputError(
                f"queries must have as many numbers as items, got {vectors.shape[1]} and "
                f"{self.database.shape[1]}; make both with the same model"
            )
        self.queries = vectors.astype(np.float64)
        if metric == "cosine":
            self.queries = _scaled(self.queries)
        with np.errstate(over="ignore"):
            self.squares = np.einsum("ij,ij->i", self.queries, self.queries)
        if not (self.squares <= _LONGEST).all():
            raise InputError("queries must have squares that add up to less than 1e200; scale them")
        self.is_whole = metric != "cosine" and _are_whole(vectors, self.database)
        self.shape = (len(vectors), len(self.database))
        self.most_items = _BLOCK_ITEMS
        if not _is_readable(self.database):  # a block is a copy
            self.most_items = max(1, _WIDE_CELLS // vectors.shape[1])
        self.what = "vectors"

    def open_block(self, items: slice, n_threads: int | None) -> "_VectorBlock":
        """The vectors of a slice of items."""
        return _VectorBlock(self, items, _native.threads(n_threads))


class _VectorBlock:
    def __init__(self, source: VectorDistances, items: slice, n_threads: int) -> None:
        self._source, self._first, self._n_threads = source, items.start, n_threads
        rows = np.asarray(source.database[items])
        self._rows = rows if _is_readable(rows) else np.ascontiguousarray(rows, np.float64)

    def exact(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        rows = self._rows.view(np.uint16) if self._rows.dtype == np.float16 else self._rows
        metric = self._source.metric
        distances = np.empty(len(queries))
        bad_row = _native.score_vectors(
            rows,
            items,
            queries,
            self._source.queries,
            _KERNEL_METRICS.index(metric),
            distances,
            self._n_threads,
        )
        if bad_row >= 0 or not np.isfinite(distances).all():
            at = bad_row if bad_row >= 0 else items[~np.isfinite(distances)][0]
            raise InputError(_not_finite(self._first + int(at)))
        if metric == "l2":
            return np.square(distances)
        return distances - 1.0 if metric == "cosine" else distances

    def rough(
        self, queries: slice | np.ndarray, *, is_quick: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        is_quick = is_quick and not _has_wide_products()
        quick = self._rough_in_single(queries) if is_quick else None
        return self._rough_in_double(queries) if quick is None else quick

    def _rough_in_single(self, queries: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """None where single precision could overflow or vanish, or where double is exact.

        A product is off by at most d u |q| |x|, whatever the order of its sum, and so is a square
        by d u |x|^2; a few roundings of single numbers come on top.
        """
        source = self._source
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is seen below
            rows = self._rows.astype(np.float32, copy=False)
            squares = np.einsum("ij,ij->i", rows, rows)
        extremes = np.concatenate([squares, source.squares[queries]])
        is_safe = (extremes < _LONGEST_SINGLE) & (extremes > _SHORTEST_SINGLE)
        if source.is_whole or not is_safe.all():
            return None
        distances = source.queries[queries].astype(np.float32) @ rows.T
        norms, longest = np.sqrt(source.squares[queries]), np.sqrt(float(squares.max()))
        rounding = 1.01 * _UNIT_SINGLE * (rows.shape[1] + 8)
        if source.metric == "cosine":
            distances *= -1.0 / np.sqrt(squares)
            return distances, 1.5 * rounding * norms
        if source.metric == "ip":
            return np.negative(distances, out=distances), rounding * norms * longest
        distances *= -2.0
        distances += squares
        distances += source.squares[queries, None].astype(np.float32)
        return distances, 2.0 * rounding * (norms + longest) ** 2

    def _rough_in_double(self, queries: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        products, squares = self._products(self._source.queries[queries])
        if not (squares <= _LONGEST).all():
            raise InputError(_not_finite(self._first + int(np.argmin(squares <= _LONGEST))))
        query_squares = self._source.squares[queries]
        norms, longest = np.sqrt(query_squares), np.sqrt(squares.max())
        rounding = _SAFETY * _UNIT * (self._rows.shape[1] + 8)
        if self._source.metric == "cosine":
            slack = rounding * np.maximum(norms, 0.5)  # also of a query that is zero
            return np.multiply(products, _minus_lengths(squares), out=products), slack
        if self._source.metric == "ip":
            distances, slack = np.negative(products, out=products), rounding * norms * longest
        else:
            distances = _squared_distances(products, query_squares, squares)
            slack = rounding * (norms + longest) ** 2
        if self._source.is_whole:
            is_l2 = self._source.metric == "l2"  # the kernel takes a root and `exact` its square
            return np.square(np.sqrt(distances)) if is_l2 else distances, np.zeros(len(slack))
        return distances, slack

    def _products(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inner products (queries, items) and squares of the items."""
        if self._rows.dtype in (np.float32, np.float64) and _native.dispatch() != "portable":
            return self._multiply(queries, self._rows)
        n_items, width = self._rows.shape
        products, squares = np.empty((len(queries), n_items)), np.empty(n_items)
        step = max(1, _WIDE_CELLS // width)
        for start in range(0, n_items, step):
            part = slice(start, start + step)
            products[:, part], squares[part] = self._multiply(queries, self._rows[part])
        return products, squares

    def _multiply(self, queries: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if _native.dispatch() == "portable":  # whose loops are far slower than NumPy's product
            wide = rows.astype(np.float64, copy=False)
            return queries @ wide.T, np.einsum("ij,ij->i", wide, wide)
        if rows.dtype not in (np.float32, np.float64):  # float16 and bytes: float32 holds them
            rows = rows.astype(np.float32)
        products, squares = np.empty((len(queries), len(rows))), np.empty(len(rows))
        _native.multiply_rows(rows, queries, products, squares, self._n_threads)
        return products, squares


def _has_wide_products() -> bool:
    """Whether a product in double precision takes no longer than NumPy's in single precision."""
    return _native.dispatch() == "avx512"


def _minus_lengths(squares: np.ndarray) -> np.ndarray:
    """What turns products into minus the cosines; NaN, which leaves pairs open, for tiny rows."""
    lengths = np.sqrt(np.maximum(squares, _SHORTEST))
    return np.where(squares > _SHORTEST, -1.0 / lengths, np.where(squares == 0.0, 0.0, np.nan))


def _squared_distances(
    products: np.ndarray, query_squares: np.ndarray, squares: np.ndarray
) -> np.ndarray:
    """In the memory of the products."""
    products *= -2.0
    products += squares
    products += query_squares[:, None]
    np.maximum(products, 0.0, out=products)
    return products


def _vectors(name: str, values: Any) -> np.ndarray:
    array = _check.array_2d(name, values, columns="d")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be real numbers, got {_check.describe(array)}")
    return array


def _is_readable(array: np.ndarray) -> bool:
    """Whether the kernel can read the array where it is, in memory or in a mapped file."""
    is_known = array.dtype.name in _KERNEL_DTYPES and array.dtype.isnative
    return is_known and array.flags.c_contiguous and array.flags.aligned


def _scaled(rows: np.ndarray) -> np.ndarray:
    """Rows times powers of two, so that their largest number is about 1: nothing is rounded.

    Rows of length 1 would have rounded products, of which equal ones could differ; the products of
    whole numbers, which quantized vectors have, stay exact.
    """
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    return np.asarray(np.ldexp(rows, -exponents))


def _are_whole(queries: np.ndarray, database: np.ndarray) -> bool:
    """Whether all products and their sums are whole numbers that a double holds."""
    wide = queries.astype(np.float64)
    if database.dtype.kind not in "biu" or (np.floor(wide) != wide).any():
        return False
    item_bits, query_bits = 8 * database.dtype.itemsize, int(np.abs(wide).max()).bit_length()
    sum_bits = 2 * (max(item_bits, query_bits) + 1) + int(wide.shape[1]).bit_length()
    return sum_bits < _WHOLE_BITS


def _not_finite(row: int) -> str:
    return f"database must be finite and its squares below 1e200, row {row} is not"
