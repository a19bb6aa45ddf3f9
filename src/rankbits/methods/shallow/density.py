"""DSH, density sensitive hashing: planes between neighboring groups of rows.

LSH draws its planes without looking at the rows. Here k-means, after a few rounds, gives groups of
rows with the centers m_1, ..., m_k, more groups than bits. Two groups are neighbors if each center
is among the nearest of the other, or with adjacency="either" if one of them is. Halfway between
them is little density to cut through, so their candidate is the plane that lies halfway:

    w'x > w'(m_i + m_j) / 2,    w = m_i - m_j

Of all candidates the b most balanced are kept, those with the largest entropy of the mass on their
two sides. A group counts with all its rows on the side of its center; the entropy is larger, the
nearer the share of one side is to 1/2. Of equally balanced planes the one of the first groups wins.

What we changed: where fewer pairs of groups are neighbors than bits are wanted, the number of
nearest centers is raised until there are enough. (The abbreviation DSH means deep supervised
hashing here, the method `dsh`.)
"""

from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from rankbits.errors import InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import choice, integer, learned, number, parameter
from rankbits.methods.shallow.shared.groups import count_members, find_centers
from rankbits.methods.shallow.shared.linear import LinearHasher
from rankbits.methods.shallow.shared.principal import require_variation


class DensityHashing(LinearHasher):
    """Density sensitive hashing: planes halfway between neighboring groups of rows [1]_.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the number of pairs of groups.
    group_factor : float, default=1.5
        Groups for each bit, at least 1; their number is rounded up, and there are at least two.
    n_rounds : int, default=3
        Rounds of k-means.
    n_nearest : int, default=3
        Nearest centers that count as neighbors.
    adjacency : {"mutual", "either"}, default="mutual"
        Whether both of two centers must be among the nearest of the other, or one of them. "either"
        has more planes to choose from.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows, which is taken off first.
    planes_ : ndarray of shape (n_features, n_bits)
        Normals of the planes, differences of two centers.
    offsets_ : ndarray of shape (n_bits,)
        Taken off the projections of centered rows.
    balances_ : ndarray of shape (n_bits,)
        Share of the mass on the positive side of each plane, the most balanced first.

    References
    ----------
    .. [1] Z. Jin, C. Li, Y. Lin, D. Cai, "Density sensitive hashing", IEEE Transactions on
       Cybernetics, 2014.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((100, 5))
    >>> DensityHashing(n_bits=12, random_state=0).fit_transform(rows).shape
    (100, 2)
    """

    group_factor: float = parameter(1.5, number(1.0))
    n_rounds: int = parameter(3, integer(1))
    n_nearest: int = parameter(3, integer(1))
    adjacency: str = parameter("mutual", choice("mutual", "either"))
    random_state: Seed = RANDOM_STATE

    offsets_: np.ndarray = learned("b")
    balances_: np.ndarray = learned("b")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the groups of X and choose the planes between them.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        n_bits, rows = self.n_bits, self._training_rows(X, y)
        n_groups = max(2, int(np.ceil(self.group_factor * n_bits)))
        require_variation(rows)
        self.mean_ = rows.mean(axis=0)
        rows = rows - self.mean_
        centers = find_centers(rows, n_groups, self.n_rounds, check_random_state(self.random_state))
        normals, offsets = halfway_planes(centers, self._choose_pairs(centers, n_bits))
        balances = balance_planes(centers, count_members(rows, centers), normals, offsets)
        chosen = np.argsort(np.abs(balances - 0.5).round(12), kind="stable")[:n_bits]
        self.planes_, self.offsets_ = np.ascontiguousarray(normals[chosen].T), offsets[chosen]
        self.balances_ = balances[chosen]
        return self

    def _choose_pairs(self, centers: np.ndarray, n_bits: int) -> np.ndarray:
        """Pairs of groups that have a plane between them, at least one for each bit."""
        n_groups = len(centers)
        n_pairs = n_groups * (n_groups - 1) // 2
        if n_pairs < n_bits:
            raise InputError(
                f"n_bits must be at most {n_pairs}, the pairs of {n_groups} groups of different "
                f"rows of X, got {n_bits}; take fewer bits, more rows, or a method without this "
                "limit such as lsh"
            )
        return neighboring_pairs(centers, self.n_nearest, n_bits, self.adjacency == "mutual")

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = super()._logits(rows) - self.offsets_
        return logits

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import Shifted

        return Shifted(super()._torch_module(), -self.offsets_)


def neighboring_pairs(
    centers: np.ndarray, n_nearest: int, n_least: int, is_mutual: bool
) -> np.ndarray:
    """Pairs i < j of groups that are among each other's nearest, shape (pairs, 2), ascending.

    There are at least so many: the number of nearest ones is raised until there are.
    """
    squares = euclidean_distances(centers, squared=True)
    np.fill_diagonal(squares, np.inf)
    ranks = squares.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") + 1
    first, second = np.triu_indices(len(centers), 1)
    choose = np.maximum if is_mutual else np.minimum
    pair_ranks = choose(ranks[first, second], ranks[second, first])
    least = int(np.partition(pair_ranks, n_least - 1)[n_least - 1])
    is_near = pair_ranks <= max(n_nearest, least)
    return np.stack([first[is_near], second[is_near]], axis=1)


def halfway_planes(centers: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normals (pairs, d) and offsets (pairs,) of the planes halfway between two centers."""
    one, other = centers[pairs[:, 0]], centers[pairs[:, 1]]
    normals = one - other
    offsets: np.ndarray = np.einsum("pd,pd->p", normals, one + other) / 2
    return normals, offsets


def balance_planes(
    centers: np.ndarray, sizes: np.ndarray, normals: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """Share of all rows whose group's center lies on the positive side of each plane."""
    is_positive = centers @ normals.T > offsets
    shares: np.ndarray = sizes @ is_positive / sizes.sum()
    return shares
