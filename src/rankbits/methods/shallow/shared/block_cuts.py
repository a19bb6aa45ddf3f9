"""One bit of all rows at a minimum of a sum over pairs, by cuts of blocks of similar rows [1]_.

    E(z) = sum over i, j of  a_ij z_i z_j + sum over i of  u_i z_i,    z_i = -1 or +1

is hard to minimize, because dissimilar pairs have a_ij > 0. Within a block of rows of which no two
are dissimilar all a_ij <= 0, so that E is submodular: for given other rows the best z of the block
is a minimum cut of a graph with a node for each row, and exact. Blocks take turns, and E never
rises.

In the graph, nodes on the side of the source have z = +1. A row is tied to the source with -v_i or
to the sink with v_i, v_i = u_i + 2 sum over j outside of the block of a_ij z_j, and two rows of the
block are tied with -4 a_ij / 2: a cut then costs (E - constant) / 2.

.. [1] G. Lin, C. Shen, Q. Shi, A. van den Hengel and D. Suter, "Fast supervised hashing with
   decision trees for high-dimensional data", CVPR 2014.
"""

import numpy as np
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from scipy.sparse.linalg import ArpackError, eigsh

from rankbits.methods.shallow.shared.bitwise import signs_of
from rankbits.methods.shallow.shared.pair_sampling import Pairs

MAX_BLOCK = 500  # rows; the time of a cut grows faster than their number
_LARGEST = 2**30  # sum of the capacities of a graph, which are 32-bit integers
_FEW_ROWS = 50  # for which all eigenvectors are as quick as one


def group_rows(pairs: Pairs, max_size: int = MAX_BLOCK) -> list[np.ndarray]:
    """All rows in blocks, each row in one; no two rows of a block are a dissimilar pair.

    A block grows from the first row that has none by the row with the most similar partners in it,
    as long as there is one that may join.
    """
    is_grouped, blocks = np.zeros(pairs.n_rows, bool), []
    for start in range(pairs.n_rows):
        if not is_grouped[start]:
            block = _grow_block(start, pairs, is_grouped, max_size)
            is_grouped[block] = True
            blocks.append(block)
    return blocks


def _grow_block(start: int, pairs: Pairs, is_grouped: np.ndarray, max_size: int) -> np.ndarray:
    is_barred, n_similar = is_grouped.copy(), np.zeros(pairs.n_rows, np.int64)
    block, row = list[int](), start
    while len(block) < max_size:
        block.append(row)
        similar, dissimilar = pairs.partners(row)
        n_similar[similar] += 1
        is_barred[dissimilar] = is_barred[row] = True
        n_similar[is_barred] = 0
        row = int(n_similar.argmax())
        if n_similar[row] == 0:
            break
    return np.sort(block)


def minimize_bit(
    weights: csr_array,
    blocks: list[np.ndarray],
    start: np.ndarray,
    linear: np.ndarray | None = None,
    max_rounds: int = 2,
) -> np.ndarray:
    """The z (n,) of -1 and +1 that cuts lead to from `start`, where E is never lower.

    Parameters
    ----------
    weights : csr_array of shape (n, n)
        a, symmetric; at most 0 within a block.
    blocks : list of ndarray of int
        Rows of each block, see `group_rows`.
    start : ndarray of shape (n,)
        The first z.
    linear : ndarray of shape (n,) or None
        u; None stands for zeros.
    max_rounds : int
        Rounds over all blocks; they end once none has changed.
    """
    bits = start.astype(np.float64)
    linear = np.zeros(len(bits)) if linear is None else linear
    parts = [weights[block] for block in blocks]
    for _ in range(max_rounds):
        before = bits.copy()
        for block, part in zip(blocks, parts, strict=True):
            inside = part[:, block]
            outside = linear[block] + 2.0 * (part @ bits - inside @ bits[block])
            bits[block] = _cut_if_lower(outside, inside, bits[block])
        if np.array_equal(before, bits):
            break
    return bits


def _cut_if_lower(linear: np.ndarray, weights: csr_array, bits: np.ndarray) -> np.ndarray:
    """The cut's bits; those there are if rounding the capacities has made the cut no better."""
    cut = minimum_cut(linear, weights)
    return cut if energy(weights, cut, linear) < energy(weights, bits, linear) else bits


def energy(weights: csr_array, bits: np.ndarray, linear: np.ndarray | None = None) -> float:
    """E(z)."""
    pairs = float(bits @ (weights @ bits))
    return pairs if linear is None else pairs + float(linear @ bits)


def minimum_cut(linear: np.ndarray, weights: csr_array) -> np.ndarray:
    """The z (m,) of -1 and +1 that minimizes E, exactly; no weight may be above 0.

    Capacities are multiples of a power of two so small that their rounding hardly matters, and not
    at all where all weights are integers and their sum is below 2^30.

    >>> minimum_cut(np.array([1.0, -3.0]), csr_array(np.array([[0.0, -1.0], [-1.0, 0.0]])))
    array([1., 1.])
    """
    source, sink = np.maximum(-linear, 0.0), np.maximum(linear, 0.0)
    total = max(source.sum(), sink.sum(), -2.0 * weights.sum())
    if total == 0.0 or len(linear) == 1:
        return np.where(linear > 0, -1.0, 1.0)
    scale = 2.0 ** np.floor(np.log2(_LARGEST / total))
    ties = (weights * (-2.0 * scale)).rint()
    graph = block_array(
        [
            [ties, None, csr_array(np.rint(sink * scale)[:, None])],
            [csr_array(np.rint(source * scale)[None]), csr_array((1, 1)), None],
            [None, None, csr_array((1, 1))],
        ],
        format="csr",
        dtype=np.int32,
    )
    graph.eliminate_zeros()
    return _source_side(graph, len(linear))


def _source_side(graph: csr_array, m: int) -> np.ndarray:
    """+1 for the nodes that the source, node m, still reaches once the flow is largest."""
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    residual = graph - maximum_flow(graph, m, m + 1, method="dinic").flow
    residual.eliminate_zeros()
    reached = breadth_first_order(residual, m, return_predecessors=False)
    bits = np.full(m + 2, -1.0)
    bits[reached] = 1.0
    return bits[:m]


def spectral_bits(weights: csr_array, rng: np.random.Generator) -> np.ndarray:
    """Signs of the z of length 1 that minimizes E: the eigenvector of the smallest eigenvalue.

    Where eigenvalues are equal, as they are with classes, the draw decides between them.
    """
    start = rng.standard_normal(weights.shape[0])
    if weights.shape[0] <= _FEW_ROWS:
        values, vectors = np.linalg.eigh(weights.toarray())
        is_least = values <= values[0] + 1e-9 * np.abs(values).max()
        vector = vectors[:, is_least] @ (vectors[:, is_least].T @ start)
    else:
        try:
            vector = eigsh(weights, k=1, which="SA", v0=start, tol=1e-2, maxiter=100)[1][:, 0]
        except ArpackError:  # it has not converged, or all weights are 0: any start will do
            vector = start
    return signs_of(vector)
