"""AGH: signs of the smoothest vectors of an anchor graph.

As in spectral hashing, bits are signs of the smoothest functions on a graph of the rows. But
here the graph follows the rows themselves, see `anchor_graph`, and not a box around them.

One layer takes b vectors y and a bit from each: y > 0. Two layers take half as many, the smoothest,
and two bits from each. The second bit cuts each side of the first once more: |y| > c_side. The two
thresholds c+ and c- minimize the cut f'(I - A) f of f = |y| - c_side under 1'f = 0. Let a be the
indicator of the side y > 0 with n+ of n rows, n- those of the other. Since (I - A) 1 = 0, the cut
depends on c+ - c- alone, and is least at

    c+ - c- = a'(I - A)|y| / a'(I - A) a

and 1'f = 0 then gives c+ and c-. Where no edge crosses between the sides any difference is as good,
and each side has its own mean as threshold.

What we changed: the paper leaves the width of the kernel to the user; here gamma follows from the
data by the rule of every method. The paper halves b; an odd b has one vector more than second bits.
Anchors that no training row is near are dropped.
"""

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from rankbits.errors import FileFormatError, InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import fact, integer, learned, parameter
from rankbits.methods.shallow.shared.anchor_graph import (
    AnchorGraph,
    nearest_anchors,
    smoothest_vectors,
    weight_matrix,
)
from rankbits.methods.shallow.shared.groups import find_centers
from rankbits.methods.shallow.shared.kernels import median_gamma
from rankbits.methods.shallow.shared.learned import ArrayHasher
from rankbits.methods.shallow.shared.parameters import GAMMA
from rankbits.methods.shallow.shared.principal import require_variation

_ROUNDS = 20  # of k-means; anchors need not have settled


class AGH(ArrayHasher):
    """Anchor graph hashing: signs of the smoothest vectors of a graph of the rows [1]_.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, below n_anchors with one layer, below twice that with two.
    n_layers : {1, 2}, default=2
        Bits that are taken from a vector. Two layers use smoother vectors.
    n_anchors : int, default=300
        Anchors m, the centers of groups of training rows; with fewer distinct rows, all of these.
    n_nearest : int, default=3
        Anchors s that a row has weights on.

    Attributes
    ----------
    anchors_ : ndarray of shape (m, n_features)
        The anchors.
    gamma_ : ndarray of shape (1,)
        Factor in the weights.
    planes_ : ndarray of shape (m, r)
        Values of the vectors at the anchors; a row has the weighted mean over its nearest ones.
    thresholds_ : ndarray of shape (n_bits, 2)
        Thresholds c- and c+ of the second bits, which are the last n_bits - r; 0 for the first.
    eigenvalues_ : ndarray of shape (r,)
        How smooth the vectors are, 1 being a constant on each part of the graph; falling.

    References
    ----------
    .. [1] W. Liu, J. Wang, S. Kumar, S.-F. Chang, "Hashing with graphs", ICML 2011.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((50, 3))
    >>> AGH(n_bits=12, n_anchors=20, random_state=0).fit_transform(rows).shape
    (50, 2)
    """

    n_layers: int = parameter(2, integer(1, 2))
    n_anchors: int = parameter(300, integer(2))
    n_nearest: int = parameter(3, integer(1))
    gamma: float | None = GAMMA
    random_state: Seed = RANDOM_STATE

    anchors_: np.ndarray = learned("m", "d")
    gamma_: np.ndarray = learned("1")
    planes_: np.ndarray = learned("m", "r")
    thresholds_: np.ndarray = learned("b", "2")
    eigenvalues_: np.ndarray = learned("r")
    n_nearest_: int = fact(int)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the anchors, the smoothest vectors of their graph, and the thresholds.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        n_bits, n_layers, rows = self.n_bits, self.n_layers, self._training_rows(X, y)
        weights = self._build_graph(rows)
        n_vectors = -(-n_bits // n_layers)
        self.planes_, self.eigenvalues_ = smoothest_vectors(weights, n_vectors)
        self._require_vectors(n_vectors, n_layers)
        self.thresholds_ = np.zeros((n_bits, 2))
        for k in range(n_bits - n_vectors):
            self.thresholds_[n_vectors + k] = choose_thresholds(weights, self.planes_[:, k])
        return self

    def _build_graph(self, rows: np.ndarray) -> csr_array:
        """Set the anchors and the width of the weights; returns the weights of the rows."""
        require_variation(rows)
        rng = check_random_state(self.random_state)
        anchors = find_centers(rows, self.n_anchors, _ROUNDS, rng)
        n_nearest = min(self.n_nearest, len(anchors))
        nearest, _ = nearest_anchors(rows, anchors, n_nearest)
        self.anchors_ = anchors[np.unique(nearest)]
        self.n_nearest_ = n_nearest
        gamma = median_gamma(rows, anchors, rng) if self.gamma is None else self.gamma
        self.gamma_ = np.array([gamma])
        return weight_matrix(*self._graph().weigh(rows), len(self.anchors_))

    def _require_vectors(self, n_vectors: int, n_layers: int) -> None:
        n_found = self.planes_.shape[1]
        if n_found < n_vectors:
            raise InputError(
                f"n_bits must be at most {n_found * n_layers}, {n_layers} for each of the "
                f"{n_found} vectors of a graph of {len(self.anchors_)} anchors, got {self.n_bits}; "
                "take fewer bits, or more anchors with n_anchors and more rows"
            )

    def _graph(self) -> AnchorGraph:
        return AnchorGraph(self.anchors_, float(self.gamma_[0]), self.n_nearest_)

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        values = self._graph().extend(rows, self.planes_)
        n_vectors = values.shape[1]
        second = values[:, : self.n_bits_ - n_vectors]
        low, high = self.thresholds_[n_vectors:].T
        return np.hstack([values, np.abs(second) - np.where(second > 0, high, low)])

    def _block_rows(self, row_shape: tuple[int, ...]) -> int:
        return super()._block_rows((max(*row_shape, len(self.anchors_)),))

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        super()._restore(arrays, facts)
        n_vectors, n_anchors = self.planes_.shape[1], len(self.anchors_)
        if not n_vectors <= self.n_bits_ <= 2 * n_vectors:
            raise FileFormatError(
                f"the model must have one or two bits for each vector, got {self.n_bits_} for "
                f"{n_vectors}"
            )
        if not 1 <= self.n_nearest_ <= n_anchors:
            raise FileFormatError(
                f"the model's n_nearest must be from 1 to {n_anchors}, its anchors, got "
                f"{self.n_nearest_}"
            )

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import AnchorLayers

        return AnchorLayers(self._graph(), self.planes_, self.thresholds_)


def choose_thresholds(weights: csr_array, plane: np.ndarray) -> tuple[float, float]:
    """Thresholds c- and c+ for |y| of the vector y = Z plane, see the module."""
    values = weights @ plane
    is_positive = values > 0
    sizes, side = np.abs(values), is_positive.astype(np.float64)
    n, n_positive, total = len(values), side.sum(), np.abs(values).sum()
    masses = weights.sum(axis=0)
    side_mass = weights.T @ side
    crossing = n_positive - (side_mass**2 / masses).sum()
    if crossing > 1e-9 * n:
        lead = (side @ sizes - (side_mass * (weights.T @ sizes) / masses).sum()) / crossing
    else:
        lead = sizes[is_positive].mean() - sizes[~is_positive].mean()
    return (total - n_positive * lead) / n, (total + (n - n_positive) * lead) / n
