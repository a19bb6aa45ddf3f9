"""SH: spectral hashing, signs of the smoothest functions on a box.

Good codes keep similar rows together, while each bit is balanced and no two bits are correlated.
Relaxed, this is an eigenproblem of the graph Laplacian of the similarities. If rows are spread
evenly over a box whose sides are R_1, ..., R_r, and the similarity is local, its eigenvectors tend
to the eigenfunctions of the Laplacian on the box that are flat at its ends. Those along one axis i
are

    cos(w (x_i - low_i)),    w = k pi / R_i,    k = 1, 2, ...

and their eigenvalue grows with w. The box is that of the principal components, at most b of them;
the b smallest w of all axes win, of equal ones that of the first axis. Functions along several axes
are left out, since their signs are products of bits that a code already has.

What we changed: outliers set the range of an axis, so that short codes may tell them from the rest
and nothing else. With `clip` the range lies between two quantiles of the training rows, and rows
beyond it are taken for its ends. Without it, as in the paper, rows beyond the range go on along the
cosine, which turns back there: they are mirrored into the box.
"""

from typing import Any, Self

import numpy as np

from rankbits.errors import InputError
from rankbits.methods.parameters.fields import fact, learned, number, optional, parameter
from rankbits.methods.shallow.shared.principal import leading_directions, require_variation
from rankbits.methods.shallow.shared.waves import WaveHasher


class SH(WaveHasher):
    """Spectral hashing: signs of the smoothest waves along the principal components [1]_.

    A long axis carries several bits, so there may be more bits than features.

    Parameters
    ----------
    clip : float or None, default=None
        Share of the training rows, from 0 and below 0.5, that lies beyond each end of the range of
        an axis; rows beyond are taken for the end. None takes the whole range, as in the paper, and
        mirrors rows beyond it.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows.
    planes_ : ndarray of shape (n_features, n_bits)
        Principal direction of each bit, times w.
    phases_ : ndarray of shape (n_bits,)
        -w low, so that an angle is 0 where the range of the axis begins.
    thresholds_ : ndarray of shape (n_bits,)
        Zeros.
    modes_ : ndarray of int64, shape (n_bits, 2)
        Axis i from 0 and mode k from 1 of each bit, by rising w.

    References
    ----------
    .. [1] Y. Weiss, A. Torralba, R. Fergus, "Spectral hashing", NIPS 2008.

    Examples
    --------
    >>> box = np.stack(np.meshgrid(np.arange(9.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    >>> SH(n_bits=3).fit(box).modes_.tolist()
    [[0, 1], [0, 2], [1, 1]]
    """

    clip: float | None = parameter(None, optional(number(0.0, 0.5)))

    modes_: np.ndarray = learned("b", "2", dtype=np.int64)
    is_clipped_: bool = fact(bool)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the principal components of X and choose their modes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        share = 0.0 if self.clip is None else self.clip
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        require_variation(rows)
        self.mean_ = rows.mean(axis=0)
        directions = leading_directions(rows - self.mean_, n_bits)
        parts = (rows - self.mean_) @ directions
        low, high = np.quantile(parts, (share, 1.0 - share), axis=0)
        axes, modes, frequencies = choose_modes(_positive_widths(high - low, share), n_bits)
        self.modes_ = np.stack([axes, modes], axis=1)
        self.planes_ = directions[:, axes] * frequencies
        self.phases_, self.thresholds_ = -low[axes] * frequencies, np.zeros(n_bits)
        self.is_clipped_ = self.clip is not None
        return self

    def _angles(self, rows: np.ndarray) -> np.ndarray:
        angles = super()._angles(rows)
        return np.clip(angles, 0.0, self._last_angles()) if self.is_clipped_ else angles

    def _last_angles(self) -> np.ndarray:
        """The angle k pi, where the range of the axis ends."""
        angles: np.ndarray = np.pi * self.modes_[:, 1]
        return angles

    def _torch_module(self) -> Any:
        module = super()._torch_module()
        if self.is_clipped_:
            module.set_last_angles(self._last_angles())
        return module


def choose_modes(widths: np.ndarray, n_modes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes, modes k and frequencies k pi / width of the smallest frequencies on a box, ascending.

    Of equal frequencies the one of the first axis comes first. No more modes of an axis are listed
    than a box with this axis alone would need.

    >>> choose_modes(np.array([2.0, 1.0]), 3)[0].tolist()
    [0, 0, 1]
    """
    most = np.ceil(n_modes * widths / widths.max()).astype(np.int64)
    axes = np.repeat(np.arange(len(widths)), most)
    modes = np.arange(1, most.sum() + 1) - np.repeat(np.cumsum(most) - most, most)
    ranks = (modes * (widths.max() / widths[axes])).round(9)  # equal ones may differ by rounding
    order = np.lexsort((axes, ranks))[:n_modes]
    axes, modes = axes[order], modes[order]
    return axes, modes, modes * np.pi / widths[axes]


def _positive_widths(widths: np.ndarray, share: float) -> np.ndarray:
    """The widths, if the quantiles of every axis differ."""
    if not (widths > 0).all():
        raise InputError(
            f"clip must leave every axis a range, but {share:g} leaves axis {widths.argmin()} of "
            "X none: most rows are equal there; take a smaller clip, or None"
        )
    return widths
