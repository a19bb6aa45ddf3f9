"""SKLSH: random Fourier features and random thresholds, distances that follow a Gaussian kernel.

For the kernel k(x, y) = exp(-gamma |x - y|²), bit j of x is

    sign(cos(x'r + u) + t),    r ~ N(0, 2 gamma I),    u ~ U[0, 2 pi),    t ~ U[-1, 1]

so that the cosines of two rows have the kernel as their correlation (Bochner's theorem), and t cuts
between them with a probability of half their distance. The expected share of bits in which x and y
differ is a function of the kernel alone:

    h(x - y) = 8 / pi²  sum over m = 1, 2, ... of  (1 - exp(-gamma m² |x - y|²)) / (4 m² - 1)

It begins at 0, rises with the distance, and levels off at 4 / pi² = .405.

What we changed: the paper writes the kernel with gamma / 2. Here gamma means what it means in every
method, and its default follows from the data by the same rule. r, u and t are drawn once.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.shallow.shared.kernels import choose_gamma
from rankbits.methods.shallow.shared.parameters import GAMMA
from rankbits.methods.shallow.shared.waves import WaveHasher


class SKLSH(WaveHasher):
    """Shift-invariant kernel hashing: Hamming distances follow a Gaussian kernel [1]_.

    Parameters
    ----------
    gamma : float or None, default=None
        Factor in the kernel exp(-gamma |x - y|²); None takes 1 / median |x - y|².

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows, which is taken off first; distances do not change by that.
    planes_ : ndarray of shape (n_features, n_bits)
        r of each bit.
    phases_ : ndarray of shape (n_bits,)
        u of each bit.
    thresholds_ : ndarray of shape (n_bits,)
        t of each bit.

    References
    ----------
    .. [1] M. Raginsky, S. Lazebnik, "Locality-sensitive binary codes from shift-invariant kernels",
       NIPS 2009.

    Examples
    --------
    >>> SKLSH(n_bits=12, random_state=0).fit_transform(np.eye(3)).shape
    (3, 2)
    """

    gamma: float | None = GAMMA
    random_state: Seed = RANDOM_STATE

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw directions, phases and thresholds.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Only its mean is learned, and gamma if it is None.
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        rng = check_random_state(self.random_state)
        gamma = choose_gamma(rows, self.gamma, rng)
        self.mean_ = rows.mean(axis=0)
        self.planes_ = np.sqrt(2.0 * gamma) * rng.standard_normal((rows.shape[1], n_bits))
        self.phases_ = rng.uniform(0.0, 2.0 * np.pi, n_bits)
        self.thresholds_ = rng.uniform(-1.0, 1.0, n_bits)
        return self
