"""Rows drawn to the groups that they resemble: what a group shares is kept, what is odd is not.

    x̃ = w z + (1 - w) x        z = sum over centers c of p_c c, p = softmax(cosines of x with c / T)

x, z and x̃ have length 1. The centers are those of k-means, w is 0.7, and T is half the standard
deviation of the cosines of rows with centers, so that a row counts with the few centers that stand
out for it. Single rows are noisy: in rows that are drawn to their groups, members of a group are
near each other also where their own cosines are not large. It costs fidelity to the cosines of the
rows themselves.
"""

from dataclasses import dataclass

import numpy as np

from rankbits.methods.shallow.shared.groups import find_centers
from rankbits.methods.shallow.shared.units import scale_to_units

GROUP_SHARE = 0.7  # w
_DEVIATIONS = 0.5  # T, in standard deviations of the cosines
_N_ROUNDS = 15


@dataclass(frozen=True)
class Smoothing:
    """The centers (g, d) of the groups, at length 1, and how a row weighs them."""

    centers: np.ndarray
    temperature: float

    def apply(self, units: np.ndarray) -> np.ndarray:
        """Rows of length 1, drawn to their groups; rows of zeros stay.

        >>> smoothing = Smoothing(np.eye(2), temperature=0.1)
        >>> smoothing.apply(np.array([[0.6, 0.8], [0.0, 0.0]])).round(3).tolist()
        [[0.281, 0.96], [0.0, 0.0]]
        """
        cosines = units @ self.centers.T / self.temperature
        weights = np.exp(cosines - cosines.max(axis=1, keepdims=True))
        groups = scale_to_units(weights @ self.centers)
        smooth = scale_to_units(GROUP_SHARE * groups + (1 - GROUP_SHARE) * units)
        return np.where(units.any(axis=1, keepdims=True), smooth, 0.0)


def learn_smoothing(units: np.ndarray, n_groups: int, rng: np.random.RandomState) -> Smoothing:
    """The smoothing by so many groups of rows, or fewer where there are fewer distinct rows."""
    centers = scale_to_units(find_centers(units, n_groups, _N_ROUNDS, rng))
    centers = centers[centers.any(axis=1)]
    deviation = float((units @ centers.T).std())
    return Smoothing(centers, _DEVIATIONS * deviation if deviation > 0 else 1.0)
