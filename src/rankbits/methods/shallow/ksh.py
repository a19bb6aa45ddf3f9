"""KSH: kernel hyperplanes whose codes have inner products near 1 for similar rows, -1 for others.

    minimize  | H H' / b - S |²,    H = sign((k(x) - mean) A)

where k(x) are the RBF features of some anchors and S is 1 for similar pairs, -1 for others. The
bits are learned greedily, see `ksh_bits`.

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

from rankbits import _check
from rankbits.methods.shallow.kernel_hasher import KernelHasher
from rankbits.methods.shallow.ksh_bits import learn_bits, whiten
from rankbits.methods.shallow.pair_sampling import supervise_pairs
from rankbits.methods.shallow.progress import check_verbose, show_progress
from rankbits.methods.shallow.similarity import Similarity, draw_rows, similarity_of


class KSH(KernelHasher):
    """Supervised hashing with kernels: inner products of codes fitted to similarities [1]_.

    Two rows of the same class shall agree in all bits, others differ in all: |H H' / b - S|² is
    lowered bit by bit. Each bit starts from an eigenvector and follows a smoothed sign.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length.
    n_anchors : int, default=300
        Training rows that span the kernel's hyperplanes, drawn at random; with fewer rows, all of
        them.
    gamma : float or None, default=None
        Factor in the kernel exp(-gamma |x - a|²); None takes 1 / median |x - a|².
    n_rows : int or None, default=5000
        Training rows whose pairs are learned from, drawn at random if there are more; None takes
        all.
    max_steps : int, default=100
        Largest number of gradient steps for a bit; 0 keeps the eigenvectors.
    verbose : bool or "auto", default=False
        Whether a progress bar is shown on standard error; "auto" shows it on a terminal.
    random_state : int, RandomState or None, default=None
        Seed of the anchors and of the rows that are drawn.

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

    _is_orthonormal: ClassVar[bool] = False
    _facts: ClassVar[dict[str, type]] = {"history": list}

    history_: list[dict[str, Any]]

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 300,
        gamma: float | None = None,
        n_rows: int | None = 5000,
        max_steps: int = 100,
        verbose: bool | str = False,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.gamma = gamma
        self.n_rows = n_rows
        self.max_steps = max_steps
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Two rows are similar if they share a class or a tag, or if either has a level above 0
            for the other. None takes the ten nearest rows.
        """
        n_bits = self._code_length()
        _check.whole("max_steps", self.max_steps, 0)
        check_verbose(self.verbose)
        rng = check_random_state(self.random_state)
        rows = self._training_rows(X, y)
        supervision = supervise_pairs(rows, y)
        features = self._draw_anchors(rows, rng)
        self.mean_ = features.mean(axis=0)
        chosen = draw_rows(supervision, self.n_rows, rng)
        similarity = similarity_of(supervision.take(chosen))
        self._learn_planes(features[chosen] - self.mean_, similarity, n_bits)
        return self

    def _learn_planes(self, centered: np.ndarray, similarity: Similarity, n_bits: int) -> None:
        """Set the planes and the history, from centered features and the similarities of rows."""
        basis = whiten(centered)
        directions, self.history_ = [], []
        with show_progress(self.verbose, "bit", n_bits) as advance:
            for bit in learn_bits(centered @ basis, similarity, n_bits, self.max_steps):
                directions.append(bit.direction)
                self.history_.append(bit.to_record())
                advance(f"loss {bit.loss:.4f}")
        self.planes_ = basis @ np.column_stack(directions)
