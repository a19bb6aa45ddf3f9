"""KSH: kernel hyperplanes whose codes have inner products near 1 for similar rows, -1 for others.

    minimize  | H H' / b - S |²,    H = sign((k(x) - mean) A)

where k(x) are the RBF features of some anchors and S is 1 for similar pairs, -1 for others. The
bits are learned greedily, see `bits`.

What differs from the paper:
- S is multiplied without being written down (`similarity`), so that all training rows can teach:
  the paper labels 1,000 or 2,000 of them.
- The features are whitened on the training rows. The generalized eigenproblem of the paper becomes
  an ordinary one, is solvable where anchors repeat, and the descent takes fewer steps; the
  hyperplanes that it chooses among are the same.

W. Liu, J. Wang, R. Ji, Y.-G. Jiang, S.-F. Chang, "Supervised hashing with kernels", CVPR 2012.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, VERBOSE, Seed
from rankbits.methods.parameters.fields import fact, integer, parameter
from rankbits.methods.shallow.ksh.bits import learn_bits, whiten
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.pair_sampling import supervise_pairs
from rankbits.methods.shallow.shared.parameters import GAMMA, N_ANCHORS, N_ROWS
from rankbits.methods.shallow.shared.progress import show_progress
from rankbits.methods.shallow.shared.similarity import Similarity, draw_rows, similarity_of


class KSH(KernelHasher):
    """Supervised hashing with kernels: inner products of codes fitted to similarities [1]_.

    Two rows of the same class shall agree in all bits, others differ in all: |H H' / b - S|² is
    lowered bit by bit. Each bit starts from an eigenvector and follows a smoothed sign.

    Parameters
    ----------
    max_steps : int, default=100
        Largest number of gradient steps for a bit; 0 keeps the eigenvectors.

    Attributes
    ----------
    mean_ : ndarray of shape (n_anchors,)
        Mean of the kernel features of the training rows.
    planes_ : ndarray of shape (n_anchors, n_bits)
        A, the normals of the hyperplanes.
    anchors_ : RbfAnchors
        The map from rows to kernel features.
    history_ : list of dict
        One entry for each bit: `spectral` and `smooth`, how well the eigenvector and the smoothed
        descent fit the residual R of the earlier bits, h'R h / (b n²), of which the larger was
        taken; `loss`, |H H' / b - S|² / n² of the bits so far.

    References
    ----------
    .. [1] W. Liu, J. Wang, R. Ji, Y.-G. Jiang, S.-F. Chang, "Supervised hashing with kernels",
       CVPR 2012.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0], [0.1, 2.0], [3.0, 1.1], [3.1, 2.1]])
    >>> codes = KSH(n_bits=2, random_state=0).fit(x, [0, 0, 1, 1]).transform(x)
    >>> codes[0] == codes[1], codes[1] == codes[2], codes[2] == codes[3]
    (array([ True]), array([False]), array([ True]))
    """

    n_anchors: int = N_ANCHORS
    gamma: float | None = GAMMA
    n_rows: int | None = N_ROWS
    max_steps: int = parameter(100, integer(0))
    verbose: bool | str = VERBOSE
    random_state: Seed = RANDOM_STATE

    _is_orthonormal: ClassVar[bool] = False

    history_: list[dict[str, Any]] = fact(list)

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
        supervision = supervise_pairs(rows, y)
        features = self._draw_anchors(rows, rng)
        self.mean_ = features.mean(axis=0)
        chosen = draw_rows(supervision, self.n_rows, rng)
        similarity = similarity_of(supervision.take(chosen))
        self._learn_planes(features[chosen] - self.mean_, similarity)
        return self

    def _learn_planes(self, centered: np.ndarray, similarity: Similarity) -> None:
        """Set the planes and the history, from centered features and the similarities of rows."""
        basis = whiten(centered)
        directions, self.history_ = [], []
        with show_progress(self.verbose, "bit", self.n_bits) as advance:
            for bit in learn_bits(centered @ basis, similarity, self.n_bits, self.max_steps):
                directions.append(bit.direction)
                self.history_.append(bit.to_record())
                advance(f"loss {bit.loss:.4f}")
        self.planes_ = basis @ np.column_stack(directions)
