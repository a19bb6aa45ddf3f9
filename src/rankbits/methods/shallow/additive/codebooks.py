"""Codebooks learned in turns with the codes of rows, and the error that both are chosen by.

A code stands for the sum s of the vectors that its entries name (`codes.sums`). The codebooks and
the codes of the training rows lower the same error in turns:

    E = |x - s|² + η (x's - x'x)²

Given the codes, E is a quadratic function of the vectors, and conjugate gradients lower it from
the vectors of the turn before. Given the vectors, the search of `codes.sums` finds codes from those
of the turn before. A row's error along itself counts more, since the queries that should find it
point its way [1]. Codes that are sums are additive quantization [2]; restarts of the search from
changed codes are those of local search quantization [3].

[1] R. Guo et al., "Accelerating large-scale inference with anisotropic vector quantization", ICML
    2020.
[2] A. Babenko, V. Lempitsky, "Additive quantization for extreme vector compression", CVPR 2014.
[3] J. Martinez, S. Zakhmi, H. Hoos, J. Little, "LSQ++: lower running time and higher recall in
    multi-codebook quantization", ECCV 2018.

Notation:
    x  rows (n, d) of length 1    m  codebooks    C  their vectors (16 m, d)
    B  (n, 16 m), 1 where a row's code names a vector
"""

import numpy as np
from scipy.sparse import csr_matrix

from rankbits.codes.sums import N_ENTRIES, SumSearch, usable_entries
from rankbits.methods.shallow.shared.conjugate_gradients import conjugate_gradients
from rankbits.methods.shallow.shared.descent import ALONG

N_RESTARTS = 32  # of a row that is encoded
_TURNS, _TURN_RESTARTS = 25, 8
_CG_STEPS = 4  # of a turn; five times as many of the first
_RIDGE = 1.0
_BLOCK_ROWS = 4096


def learn_codebooks(
    units: np.ndarray,
    entries: np.ndarray,
    n_bits: int,
    n_turns: int = _TURNS,
    along: float = ALONG,
) -> np.ndarray:
    """Vectors (16 m, d) that are best for their own codes, in turns from first entries (n, m).

    `along` is η.
    """
    rows = units.astype(np.float32)
    vectors = np.zeros((N_ENTRIES * entries.shape[1], units.shape[1]), np.float32)
    for turn in range(n_turns):
        n_steps = 5 * _CG_STEPS if turn == 0 else _CG_STEPS
        vectors = fit_vectors(rows, entries, vectors, n_steps, along)
        search = SumSearch.of_vectors(vectors.astype(np.float64), n_bits, along, _TURN_RESTARTS)
        entries = find_entries(rows, vectors, search, entries)
    vectors = fit_vectors(rows, entries, vectors, _CG_STEPS, along)
    vectors[~usable_entries(n_bits)] = 0
    return vectors.astype(np.float64)


def find_entries(
    units: np.ndarray, vectors: np.ndarray, search: SumSearch, start: np.ndarray
) -> np.ndarray:
    """The entries (n, m) that the search finds for rows from start, in blocks of rows."""
    entries = np.empty_like(start)
    for first in range(0, len(units), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        squares = (units[rows] ** 2).sum(axis=1)
        entries[rows] = search.improve(units[rows] @ vectors.T, squares, start[rows])
    return entries


def fit_vectors(
    units: np.ndarray,
    entries: np.ndarray,
    start: np.ndarray,
    n_steps: int,
    along: float = ALONG,
) -> np.ndarray:
    """Vectors with a smaller sum of E for given codes, after so many steps from the start.

    The gradient of the sum is 2 B'(BC - x + η x (x'(BC - x))). A small ridge keeps vectors that no
    row names, or that are named together in all rows, from large entries. Every unknown is divided
    by the square root of how often its vector is named, which makes them alike for the steps.
    """
    named = mark_entries(entries).astype(units.dtype)
    by_vector = named.T.tocsr()
    scale = 1 / np.sqrt(np.asarray(by_vector.sum(axis=1)) + _RIDGE)  # (16 m, 1)

    def weigh(sums: np.ndarray) -> np.ndarray:
        products = (units * sums).sum(axis=1, keepdims=True)
        result: np.ndarray = by_vector @ (sums + along * products * units)
        return result

    def apply(scaled: np.ndarray) -> np.ndarray:
        result: np.ndarray = scale * (weigh(named @ (scale * scaled)) + _RIDGE * scale * scaled)
        return result

    solution = conjugate_gradients(apply, scale * weigh(units), start / scale, n_steps)
    vectors: np.ndarray = scale * solution
    return vectors


def mark_entries(entries: np.ndarray) -> csr_matrix:
    """B: the vectors that each code names, as a sparse matrix of ones."""
    n, n_books = entries.shape
    columns = N_ENTRIES * np.arange(n_books) + entries
    starts = n_books * np.arange(n + 1)
    shape = (n, N_ENTRIES * n_books)
    return csr_matrix((np.ones(n * n_books), columns.ravel(), starts), shape=shape)


def measure_margins(
    search: SumSearch, shares: np.ndarray, squares: np.ndarray, entries: np.ndarray
) -> np.ndarray:
    """By how much each bit lowers E, (n, 4 m): E where it is clear less E where it is set.

    The other bits of its codebook are the best that they can be either way, and the entries of the
    other codebooks are given.
    """
    n, n_books = entries.shape
    shape = n, n_books, N_ENTRIES
    blocks = search.products.reshape(n_books, N_ENTRIES, n_books, N_ENTRIES)
    own = blocks[np.arange(n_books), :, np.arange(n_books), :]  # (m, 16, 16)
    pull = (mark_entries(entries) @ search.products).reshape(shape)
    others = pull - own[np.arange(n_books), entries]
    shares = shares.reshape(shape)
    share = np.take_along_axis(shares, entries[:, :, None].astype(np.intp), axis=2)
    rest = squares[:, None, None] - share.sum(axis=1, keepdims=True) + share
    squares_of_vectors = own[:, np.arange(N_ENTRIES), np.arange(N_ENTRIES)]
    errors = squares_of_vectors + 2 * (others - shares) + search.along * (rest - shares) ** 2
    margins = np.empty((n, n_books, 4))
    for bit in range(4):
        is_set = np.arange(N_ENTRIES) >> 3 - bit & 1 == 1
        margins[:, :, bit] = errors[:, :, ~is_set].min(axis=2) - errors[:, :, is_set].min(axis=2)
    return margins.reshape(n, 4 * n_books)
