"""HammingNeighbors: the index behind scikit-learn's interface of nearest neighbors.

Distances are numbers of differing bits, where scikit-learn's metric "hamming" gives the share of
them. Neighbors are in order of (distance, row).
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rankbits import _check
from rankbits.codes import MAX_BITS, BinaryCodes
from rankbits.errors import InputError
from rankbits.index import engines, inputs
from rankbits.index.hamming import HammingIndex
from rankbits.index.results import Ragged

_MODES = ("connectivity", "distance")


class HammingNeighbors(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nearest neighbors in Hamming space, exact.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbors of `kneighbors` unless it is told otherwise.
    radius : int, default=2
        Reach of `radius_neighbors` in bits, inclusive.
    kind : str, default="auto"
        Kind of the index, one of the exact ones: `rankbits.index.engines.exact_names()`.
    n_threads : int or None, default=None
        Threads of a search.
    n_bits : int or None, default=None
        What arrays are: None for (n, b) arrays of 0/1, -1/+1 or bool; a number for uint8 arrays of
        packed codes of so many bits, as the `transform` of rankbits' methods gives them.
        BinaryCodes are taken in both cases.

    Attributes
    ----------
    index_ : HammingIndex
        Holds the rows of X under their row numbers.
    n_bits_ : int
        Bits in a code.
    n_samples_fit_ : int
        Rows of X.

    >>> neighbors = HammingNeighbors(n_neighbors=2).fit([[0, 0, 0], [0, 1, 1], [1, 1, 1]])
    >>> distances, rows = neighbors.kneighbors([[0, 0, 1]])
    >>> distances.tolist(), rows.tolist()
    ([[1, 1]], [[0, 1]])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: int = 2,
        kind: str = "auto",
        n_threads: int | None = None,
        n_bits: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.kind = kind
        self.n_threads = n_threads
        self.n_bits = n_bits

    def fit(self, X: Any, y: Any = None) -> "HammingNeighbors":
        """Take the rows of X as the items to find; y is ignored."""
        codes = self._codes(X)
        if len(codes) == 0:
            raise InputError("X must not be empty")
        kind = _check.choice("kind", self.kind, engines.exact_names())
        self.index_ = HammingIndex(codes.n_bits, kind, n_threads=self.n_threads)
        self.index_.add(codes)
        self.n_bits_, self.n_samples_fit_ = codes.n_bits, len(codes)
        return self

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """The nearest rows of each query.

        Parameters
        ----------
        X : queries; None takes each row of the fitted data, without itself among its neighbors
        n_neighbors : int or None
        return_distance : bool

        Returns
        -------
        distances : ndarray of int32, shape (queries, n_neighbors), if return_distance
        rows : ndarray of int64, shape (queries, n_neighbors)
        """
        check_is_fitted(self)
        n_others = self.n_samples_fit_ - (X is None)
        k = _check.whole("n_neighbors", self.n_neighbors if n_neighbors is None else n_neighbors, 1)
        if k > n_others:
            raise InputError(f"n_neighbors must be at most {n_others}, the rows to find; got {k}")
        if X is None:
            distances, rows = self.index_.search(self.index_.codes(), k + 1)
            is_other = _without_self(rows)
            distances, rows = distances[is_other].reshape(-1, k), rows[is_other].reshape(-1, k)
        else:
            distances, rows = self.index_.search(self._queries(X), k)
        return (distances, rows) if return_distance else rows

    def radius_neighbors(
        self, X: Any = None, radius: int | None = None, return_distance: bool = True
    ) -> Any:
        """Every row at a distance of `radius` bits or less, for each query.

        Returns
        -------
        distances : ndarray of objects, int32 arrays, shape (queries,), if return_distance
        rows : ndarray of objects, int64 arrays, shape (queries,)
        """
        answer = self._within(X, radius)
        rows = _objects(answer.offsets, answer.ids)
        return (_objects(answer.offsets, answer.distances), rows) if return_distance else rows

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """`kneighbors` as a sparse matrix (queries, fitted rows) of ones or of distances."""
        _check.choice("mode", mode, _MODES)
        distances, rows = self.kneighbors(X, n_neighbors)
        offsets = np.arange(len(rows) + 1) * rows.shape[1]
        return self._graph(Ragged(offsets, distances.ravel(), rows.ravel()), mode)

    def radius_neighbors_graph(
        self, X: Any = None, radius: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """`radius_neighbors` as a sparse matrix (queries, fitted rows) of ones or of distances."""
        _check.choice("mode", mode, _MODES)
        return self._graph(self._within(X, radius), mode)

    def transform(self, X: Any) -> csr_matrix:
        """The graph of distances, for estimators with metric="precomputed" behind it.

        A row that was fitted is the first, or tied with the first, of its own neighbors.
        """
        return self.kneighbors_graph(X, mode="distance")

    def _within(self, X: Any, radius: int | None) -> Ragged:
        check_is_fitted(self)
        reach = self.radius if radius is None else radius
        if X is not None:
            return self.index_.within(self._queries(X), reach).ragged()
        answer = self.index_.within(self.index_.codes(), reach).ragged()
        is_other = answer.ids != answer.queries()
        return Ragged(
            answer.offsets - np.arange(len(answer.offsets)),
            answer.distances[is_other],
            answer.ids[is_other],
        )

    def _graph(self, answer: Ragged, mode: str) -> csr_matrix:
        values = (
            np.ones(len(answer.ids)) if mode == "connectivity" else answer.distances.astype(float)
        )
        shape = (len(answer.offsets) - 1, self.n_samples_fit_)
        return csr_matrix((values, answer.ids, answer.offsets), shape=shape)

    def _codes(self, X: Any) -> BinaryCodes:
        if self.n_bits is not None:
            return inputs.codes_of("X", X, _check.whole("n_bits", self.n_bits, 1, MAX_BITS))
        if isinstance(X, BinaryCodes):
            return X
        try:
            return BinaryCodes.from_bits(X)
        except InputError as error:
            raise InputError(f"X: {error}; set n_bits if X is packed codes") from None

    def _queries(self, X: Any) -> BinaryCodes:
        codes = self._codes(X)
        if codes.n_bits != self.n_bits_:
            raise InputError(f"X must have {self.n_bits_} bits as in fit, got {codes.n_bits}")
        return codes


def _without_self(rows: np.ndarray) -> np.ndarray:
    """Marks all but one place of each row: its own number or, if that is not there, the last.

    A row stands behind equal rows of lower number, so its own may be beyond the last place.
    """
    is_other: np.ndarray = rows != np.arange(len(rows))[:, None]
    is_other[is_other.all(axis=1), -1] = False
    return is_other


def _objects(offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of each query as an array of arrays."""
    out = np.empty(len(offsets) - 1, object)
    for query in range(len(out)):
        out[query] = values[offsets[query] : offsets[query + 1]]
    return out
