"""Which pairs of rows are similar, as a matrix that is multiplied without being written down.

    P  (n, n) 1 where two rows are similar, else 0; symmetric, and 1 on the diagonal
    S  (n, n) 1 where two rows are similar, else -1; S = 2 P - 1 1'

Rows are similar if either is relevant to the other, at any level above 0. With class labels P is
G G' of the class memberships G, and a product costs O(n); otherwise the similar pairs are stored
one by one.
"""

import numpy as np
from scipy import sparse

from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision

_BLOCK_CELLS = 1 << 22


class Similarity:
    """The pairs that are similar, and products of S with vectors.

    Attributes
    ----------
    n_rows : int
        n.
    n_similar : int
        Entries of P that are 1: pairs in both orders, and each row with itself.
    """

    def __init__(self, factors: tuple[sparse.csr_array, ...]) -> None:
        self._factors = factors  # P is their product
        self.n_rows = factors[0].shape[0]
        self.n_similar = round(float(self.similar_sums(np.ones(self.n_rows)).sum()))

    def similar_sums(self, vectors: np.ndarray) -> np.ndarray:
        """P V: for each row the sum of V (n,) or (n, k) over the rows that are similar to it."""
        for factor in reversed(self._factors):
            vectors = factor @ vectors
        return vectors

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        """S V."""
        products: np.ndarray = 2.0 * self.similar_sums(vectors) - vectors.sum(axis=0)
        return products


def similarity_of(supervision: Supervision) -> Similarity:
    """The similarity of all rows that the supervision is about."""
    if supervision.classes is not None:
        n = len(supervision)
        columns = np.unique(supervision.classes, return_inverse=True)[1]
        members = sparse.csr_array((np.ones(n), (np.arange(n), columns)))
        return Similarity((members, members.T.tocsr()))
    return Similarity((_similar_pairs(supervision),))


def _similar_pairs(supervision: Supervision) -> sparse.csr_array:
    """P of any supervision, read in blocks of rows."""
    n = len(supervision)
    everything, step = np.arange(n), max(1, _BLOCK_CELLS // n)
    blocks = [
        sparse.csr_array(supervision.levels(everything[start : start + step], everything) > 0)
        for start in range(0, n, step)
    ]
    relevant = sparse.vstack(blocks, format="csr").astype(np.float64)
    pairs = relevant.maximum(relevant.T).maximum(sparse.eye_array(n, format="csr"))
    return sparse.csr_array(pairs)


def draw_rows(
    supervision: Supervision, n_rows: int | None, rng: np.random.RandomState
) -> np.ndarray:
    """Positions of at most so many rows, ascending, of which some are similar and some are not."""
    n = len(supervision)
    if n_rows is None or n_rows >= n:
        return np.arange(n)
    chosen = np.sort(rng.choice(n, n_rows, replace=False))
    if not supervision.has_contrast(chosen):
        raise InputError(
            f"n_rows must be large enough for the rows drawn to have similar and other pairs, got "
            f"{n_rows} of {n} rows; take more, or None for all"
        )
    return chosen
