"""SSH: hyperplanes on which similar rows agree, others do not, and all rows vary.

    maximize  tr(W'M W),    M = mean over similar pairs of x_i x_j'
                                - mean over other pairs of x_i x_j'  +  η mean over rows of x x'

The first two means are over the labeled rows, the last one is over all rows, which are centered:
where labels say nothing, the directions of largest variance serve, as in PCA. Under W'W = I the
maximum are the eigenvectors of M's largest eigenvalues (`eigenproblems`).

If W'W = I is only a penalty, as in the paper's second version, tr(W'M W) - ρ/2 |W'W - I|² is
stationary where W W'W = (I + M/ρ) W, and is largest for W = U max(0, I + Λ/ρ)^(1/2), with the
leading eigenvectors U and eigenvalues Λ of M, and for any rotation of it from the right: directions
that matter more are longer. Lengths change no sign by themselves, but they do under a rotation,
which then spends more bits on these directions.

What differs from the paper:
- Similar and other pairs are divided by their numbers, so that η means the same for any number of
  labels and classes.
- Neither objective fixes the rotation, but the signs depend on it: ITQ's rotation is the default.
- By our reading the paper solves the second version by L U, with a Cholesky factor L of I + M/ρ.
  That is stationary only if U has all eigenvectors, so we take the root above.

J. Wang, S. Kumar, S.-F. Chang, "Semi-supervised hashing for scalable image retrieval", CVPR 2010.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.affinity import Affinity
from rankbits.errors import InputError
from rankbits.methods.labels import read_labels
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import anything, learned, number, optional, parameter
from rankbits.methods.shallow.shared.eigenproblems import leading_eigenvectors
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.pair_sampling import supervise_pairs
from rankbits.methods.shallow.shared.parameters import GAMMA, KERNEL, N_ANCHORS, N_ROWS, ROTATION
from rankbits.methods.shallow.shared.principal import (
    require_directions,
    require_variation,
    span_rows,
)
from rankbits.methods.shallow.shared.rotation import learn_rotation, random_rotation
from rankbits.methods.shallow.shared.similarity import Similarity, draw_rows, similarity_of

_MORE = "kernel='rbf', which has as many directions as anchors"


class SSH(KernelHasher):
    """Semi-supervised hashing: agreement with labeled pairs, variance over all rows [1]_.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length, at most the directions in which the rows vary.
    unlabeled : int, str or None, default=None
        The class label of rows that have none, such as -1; they only add to the variance. None if
        every row has its label.
    variance_weight : float, default=0.1
        η, the weight of the variance of all rows. It must be positive.
    orthogonality : float or None, default=0.01
        ρ, the weight of the penalty on hyperplanes that are not orthogonal, in units of the largest
        eigenvalue of M. None makes them orthogonal.
    n_rows : int or None, default=5000
        Labeled rows whose pairs are learned from, drawn at random if there are more; None takes
        all.

    Attributes
    ----------
    mean_ : ndarray of shape (D,)
        Mean of the training rows, or of their coordinates in feature space.
    planes_ : ndarray of shape (D, n_bits)
        W, the normals of the hyperplanes.
    eigenvalues_ : ndarray of shape (n_bits,)
        The largest eigenvalues of M, falling.
    anchors_ : RbfAnchors or None
        The map to D coordinates in feature space; without a kernel D is n_features.

    References
    ----------
    .. [1] J. Wang, S. Kumar, S.-F. Chang, "Semi-supervised hashing for scalable image retrieval",
       CVPR 2010.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((60, 5))
    >>> y = np.where(np.arange(60) < 20, rows[:, 0] > 0, -1)
    >>> SSH(n_bits=3, unlabeled=-1, random_state=0).fit_transform(rows, y).shape
    (60, 1)
    """

    unlabeled: int | str | None = parameter(None, anything)
    variance_weight: float = parameter(0.1, number(closed=False))
    orthogonality: float | None = parameter(0.01, optional(number(closed=False)))
    rotation: str | None = ROTATION
    kernel: str | None = KERNEL
    n_anchors: int = N_ANCHORS
    gamma: float | None = GAMMA
    n_rows: int | None = N_ROWS
    random_state: Seed = RANDOM_STATE

    eigenvalues_: np.ndarray = learned("b")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Two rows are similar if they share a class or a tag, or if either has a level above 0
            for the other. None takes the ten nearest rows.
        """
        rng = check_random_state(self.random_state)
        rows = self._training_rows(X, y)
        labeled, labels = self._select_labeled(rows, y)
        supervision = supervise_pairs(rows[labeled], labels)
        require_variation(rows)
        coordinates = self._draw_anchors(rows, rng)
        self.mean_ = coordinates.mean(axis=0)
        parts, basis = span_rows(coordinates - self.mean_)
        require_directions(parts, self.n_bits, _MORE)
        chosen = draw_rows(supervision, self.n_rows, rng)
        similarity = similarity_of(supervision.take(chosen))
        matrix = agreement_matrix(parts[labeled][chosen], similarity)
        matrix += self.variance_weight * (parts.T @ parts) / len(parts)
        vectors, self.eigenvalues_ = leading_eigenvectors(matrix, self.n_bits)
        self.planes_ = basis @ self._rotate(parts, self._scale(vectors, matrix), rng)
        return self

    def _select_labeled(self, rows: np.ndarray, y: Any) -> tuple[np.ndarray, Any]:
        """Positions of the labeled rows, and their part of y."""
        everything = np.arange(len(rows))
        if self.unlabeled is None:
            return everything, y
        if y is None or isinstance(y, Affinity) or read_labels(y).ndim != 1:
            raise InputError(
                "unlabeled must be None unless y is class labels, got "
                f"{self.unlabeled!r}; rows of tags or affinities all count as labeled"
            )
        labels = read_labels(y)
        labeled = everything[labels != self.unlabeled]
        if not len(labeled):
            raise InputError(
                f"y must have labels other than {self.unlabeled!r}, which stands for none; without "
                "any label pass y=None"
            )
        return labeled, labels[labeled]

    def _scale(self, vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """U, or U max(0, I + Λ/ρ)^(1/2) if orthogonality is only a penalty."""
        if self.orthogonality is None:
            return vectors
        largest = float(np.abs(np.linalg.eigvalsh(matrix)).max())
        squares = np.maximum(0, 1 + self.eigenvalues_ / (self.orthogonality * largest))
        n_long = int((squares > 0).sum())
        if self.rotation is None and n_long < len(squares):
            raise InputError(
                f"n_bits must be at most {n_long} with rotation=None and orthogonality="
                f"{self.orthogonality}, got {len(squares)}: the labels speak against further "
                "directions; take fewer bits, rotation='itq' or a larger orthogonality"
            )
        scaled: np.ndarray = vectors * np.sqrt(squares)
        return scaled

    def _rotate(
        self, parts: np.ndarray, planes: np.ndarray, rng: np.random.RandomState
    ) -> np.ndarray:
        """The planes in the rotation that brings the rows nearest to their signs."""
        if self.rotation is None:
            return planes
        rotation, _ = learn_rotation(parts @ planes, random_rotation(planes.shape[1], rng))
        rotated: np.ndarray = planes @ rotation
        return rotated


def agreement_matrix(rows: np.ndarray, similarity: Similarity) -> np.ndarray:
    """Mean of x_i x_j' over similar pairs less that over other pairs, (D, D); i and j differ."""
    n = len(rows)
    n_similar, n_other = similarity.n_similar - n, n * n - similarity.n_similar
    with_similar = rows.T @ similarity.similar_sums(rows)
    total = rows.sum(axis=0)
    similar = (with_similar - rows.T @ rows) / n_similar
    other = (np.outer(total, total) - with_similar) / n_other
    matrix: np.ndarray = similar - other
    return matrix
