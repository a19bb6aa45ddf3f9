"""SpH: bits that say whether a row lies in a sphere.

Bit i of x is 1 inside the sphere with the center c_i and the radius r_i, |x - c_i| < r_i. A sphere
encloses a region where a hyperplane only halves space, so the rows that share many spheres are
near each other. Good bits are balanced and independent: a sphere has half of the n training rows,
and two of them share n / 4.

The radius is the median distance from the center. Centers start at means of a few random rows and
then move in rounds, apart if their spheres share too many rows o_ij, towards each other if too few:

    c_i  <-  c_i + 1/b  sum over j of  (o_ij - n/4) / (n/2)  (c_i - c_j)

until, over all pairs, the mean of |o_ij - n/4| is at most `tolerance` n/4 and the standard
deviation of o_ij at most 1.5 times that, the .10 and .15 of the paper; or `max_rounds` are over.

What we changed: rounds are limited, and the state with the least mean error is kept, since rounds
may not converge on few rows. Of more than 10,000 rows so many are drawn to learn from. Codes are
compared by the Hamming distance, as all codes are; `spherical_distances` is the distance of the
paper, for re-ranking.
"""

from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import fact, integer, learned, number, parameter
from rankbits.methods.shallow.shared.groups import draw_rows
from rankbits.methods.shallow.shared.learned import ArrayHasher
from rankbits.methods.shallow.shared.principal import require_variation

_MOST_ROWS = 10_000  # that are learned from
_START_ROWS = 10  # whose mean a center is at the start
_DEVIATION = 1.5  # the allowed standard deviation, in units of the allowed mean error


class SpH(ArrayHasher):
    """Spherical hashing: bit i says whether x lies in sphere i; pairs of bits are independent [1]_.

    Parameters
    ----------
    tolerance : float, default=0.1
        Mean error of the rows that two spheres share, relative to a quarter of all, at which the
        rounds end; the standard deviation may be 1.5 times as large. It must be positive.
    max_rounds : int, default=100
        Largest number of rounds.

    Attributes
    ----------
    centers_ : ndarray of shape (n_bits, n_features)
        Centers of the spheres.
    squared_radii_ : ndarray of shape (n_bits,)
        Their radii, squared.
    history_ : list of dict
        For the start and each round `error` and `deviation`: the mean of |o_ij - n/4| and the
        standard deviation of o_ij, both relative to n/4.

    References
    ----------
    .. [1] J.-P. Heo, Y. Lee, J. He, S.-F. Chang, S.-E. Yoon, "Spherical hashing", CVPR 2012.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((100, 5))
    >>> SpH(n_bits=12, random_state=0).fit(rows).encode(rows).bits().mean(axis=0)[:3]
    array([0.5, 0.5, 0.5])
    """

    tolerance: float = parameter(0.1, number(closed=False))
    max_rounds: int = parameter(100, integer(0))
    random_state: Seed = RANDOM_STATE

    centers_: np.ndarray = learned("b", "d")
    squared_radii_: np.ndarray = learned("b")
    history_: list[dict[str, float]] = fact(list)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the spheres.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        rows = self._training_rows(X, y)
        require_variation(rows)
        rng = check_random_state(self.random_state)
        rows = draw_rows(rows, _MOST_ROWS, rng)
        start = draw_means(rows, self.n_bits, rng)
        self.centers_, self.history_ = move_centers(rows, start, self.tolerance, self.max_rounds)
        self.squared_radii_ = halve(euclidean_distances(rows, self.centers_, squared=True))
        return self

    @staticmethod
    def spherical_distances(queries: BinaryCodes, items: BinaryCodes) -> np.ndarray:
        """Spherical Hamming distances of all pairs, float64 of shape (queries, items).

        The number of spheres that have one of the two rows, divided by the number of those that
        have both: two rows that share many spheres lie in a small region. Rows that share none are
        infinitely far apart.

        Parameters
        ----------
        queries : BinaryCodes
            Codes of this method.
        items : BinaryCodes
            Codes of the same method, such as candidates that a search by Hamming distance found.
        """
        if queries.n_bits != items.n_bits:
            raise InputError(
                f"queries and items must have codes of one length, got {queries.n_bits} and "
                f"{items.n_bits} bits"
            )
        inside, items_inside = (codes.bits().astype(np.float64) for codes in (queries, items))
        n_both: np.ndarray = inside @ items_inside.T
        n_one = inside.sum(axis=1)[:, None] + items_inside.sum(axis=1) - 2 * n_both
        distances = np.full_like(n_both, np.inf)
        np.divide(n_one, n_both, out=distances, where=n_both > 0)
        return distances

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = self.squared_radii_ - euclidean_distances(
            rows, self.centers_, squared=True
        )
        return logits

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import Spheres

        return Spheres(self.centers_, self.squared_radii_)


def draw_means(rows: np.ndarray, n_means: int, rng: np.random.RandomState) -> np.ndarray:
    """Means of a few rows each, drawn at random."""
    places = rng.randint(len(rows), size=(_START_ROWS, n_means))
    total = np.zeros((n_means, rows.shape[1]))
    for drawn in places:
        total += rows[drawn]
    means: np.ndarray = total / _START_ROWS
    return means


def move_centers(
    rows: np.ndarray, start: np.ndarray, tolerance: float, max_rounds: int
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """The centers of the round with the least error, and the errors of all rounds."""
    centers, best, history = start, start, list[dict[str, float]]()
    for _ in range(max_rounds + 1):
        excess = excess_overlaps(rows, centers)
        history.append(summarize(excess))
        last = history[-1]
        if last["error"] <= min(record["error"] for record in history):
            best = centers
        if last["error"] <= tolerance and last["deviation"] <= _DEVIATION * tolerance:
            break
        pushes = excess / (2 * len(excess))
        centers = centers + pushes.sum(axis=1, keepdims=True) * centers - pushes @ centers
    return best, history


def excess_overlaps(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(o_ij - n/4) / (n/4) of every pair of spheres, shape (b, b); 0 on the diagonal."""
    squares = euclidean_distances(rows, centers, squared=True)
    inside = (squares < halve(squares)).astype(np.float32)
    excess: np.ndarray = (inside.T @ inside).astype(np.float64) / (len(rows) / 4) - 1
    np.fill_diagonal(excess, 0.0)
    return excess


def halve(values: np.ndarray) -> np.ndarray:
    """Values that have half of each column below them, or one fewer of an odd number of rows."""
    half = len(values) // 2
    ends = np.partition(values, (half - 1, half), axis=0)[half - 1 : half + 1]
    middles: np.ndarray = ends.mean(axis=0)
    return middles


def summarize(excess: np.ndarray) -> dict[str, float]:
    """Mean error and standard deviation over all pairs; 0 where there is one sphere only."""
    pairs = excess[np.triu_indices(len(excess), 1)]
    if pairs.size == 0:
        return {"error": 0.0, "deviation": 0.0}
    return {"error": float(np.abs(pairs).mean()), "deviation": float(pairs.std())}
