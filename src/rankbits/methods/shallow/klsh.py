"""KLSH: random hyperplanes in the feature space of a kernel.

LSH needs w ~ N(0, I) in the space of its rows. The feature space of a kernel is not at hand, only
the kernel is. By the central limit theorem the mean of t feature vectors, centered, is nearly
normal with the covariance C / t of the features, so C^(-1/2) times it is nearly N(0, I). With p
anchors in place of all rows, and K the kernel between them, centered in feature space, that vector
is a combination of the anchors with the weights

    w = sqrt((p - 1) / t) K^(-1/2) e,    e the indicator of t anchors drawn at random

and bit j of x is the sign of w'k(x), k(x) the centered kernel between x and the anchors. Two rows
at the angle a in feature space, within the span of the anchors, then agree in a bit with a
probability near 1 - a / pi.

To center k(x) takes the mean of the kernel over the anchors, and the mean over x's own kernel. The
latter is the same for all anchors, and K^(-1/2) e sums to 0, so only the former is needed: the
logits are (k(x) - mean) planes, as for every kernel method here.

What we changed: the kernel is exp(-gamma |x - y|²), with the width that every method has; anchors
and rows are compared by the same width. With fewer than 2t anchors, half of them are drawn for a
bit: for all of them w would be 0.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import integer, parameter
from rankbits.methods.shallow.shared.eigenproblems import inverse_square_root
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.parameters import GAMMA


class KLSH(KernelHasher):
    """Kernelized LSH: random hyperplanes in the feature space of an RBF kernel [1]_.

    Parameters
    ----------
    n_anchors : int, default=300
        Training rows p that span the space, drawn at random; with fewer rows, all of them.
    subset_size : int, default=30
        Anchors t that are drawn for each bit, at most half of them.

    Attributes
    ----------
    anchors_ : RbfAnchors
        The map from rows to kernel values.
    mean_ : ndarray of shape (p,)
        Mean of the kernel values of the anchors.
    planes_ : ndarray of shape (p, n_bits)
        w of each bit.

    References
    ----------
    .. [1] B. Kulis, K. Grauman, "Kernelized locality-sensitive hashing for scalable image search",
       ICCV 2009.

    Examples
    --------
    >>> KLSH(n_bits=12, random_state=0).fit_transform(np.eye(3)).shape
    (3, 2)
    """

    n_anchors: int = parameter(300, integer(2))
    subset_size: int = parameter(30, integer(1))
    gamma: float | None = GAMMA
    random_state: Seed = RANDOM_STATE

    _is_orthonormal = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the anchors and the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        self._draw_anchors(rows, rng)
        kernel = self._coordinates(self.anchors_.rows)  # type: ignore[union-attr]
        self.mean_ = kernel.mean(axis=0)
        n_anchors = len(kernel)
        subset_size = min(self.subset_size, n_anchors // 2)
        subsets = draw_subsets(n_anchors, subset_size, n_bits, rng)
        scale = np.sqrt((n_anchors - 1) / subset_size)
        self.planes_ = scale * inverse_square_root(center_kernel(kernel)) @ subsets
        return self


def center_kernel(kernel: np.ndarray) -> np.ndarray:
    """The kernel (p, p) of the same features less their mean."""
    means = kernel.mean(axis=0)
    centered: np.ndarray = kernel - means - means[:, None] + means.mean()
    return centered


def draw_subsets(n: int, size: int, n_subsets: int, rng: np.random.RandomState) -> np.ndarray:
    """Indicators (n, n_subsets) of subsets of this size, each drawn without repeats.

    >>> draw_subsets(5, 2, 3, np.random.RandomState(0)).sum(axis=0)
    array([2., 2., 2.])
    """
    order = rng.random_sample((n, n_subsets)).argsort(axis=0, kind="stable")
    indicators = np.zeros((n, n_subsets))
    np.put_along_axis(indicators, order[:size], 1.0, axis=0)
    return indicators
