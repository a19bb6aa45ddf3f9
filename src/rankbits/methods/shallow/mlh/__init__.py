"""MLH: hyperplanes that bring similar rows within a Hamming radius and keep others outside.

The hinge-like loss of a pair is bounded from above as in a structural SVM with latent variables
(`bound`), and the bound is lowered on random pairs (`training`).

The radius matters, and none suits all data. Unless it is given, it is chosen by validation: a few
radii are tried on nine tenths of the rows, and the one whose codes rank pairs of the other rows
best is taken for the training on all rows.

What differs from the paper:
- As many similar as other pairs are drawn for a step. The paper's λ, the slope of the loss of other
  pairs, is 1 unless given; it is the radius that is validated.
- Rows are scaled to a mean square of 1, so that the learning rate means the same on any data.
- The step lengths fall at the end, so that the last W is not a random one of those on the way.
- A kernel is an option.

M. Norouzi, D. J. Fleet, "Minimal loss hashing for compact binary codes", ICML 2011.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.methods.parameters.common import RANDOM_STATE, VERBOSE, Seed
from rankbits.methods.parameters.fields import anything, fact, integer, learned, number, parameter
from rankbits.methods.shallow.mlh.training import Settings, Trainer
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.pair_sampling import supervise_pairs
from rankbits.methods.shallow.shared.parameters import GAMMA, KERNEL, N_ANCHORS
from rankbits.methods.shallow.shared.principal import require_variation, root_mean_square
from rankbits.methods.shallow.shared.progress import show_progress


class MLH(KernelHasher):
    """Minimal loss hashing: a hinge loss of pairs around a Hamming radius [1]_.

    Parameters
    ----------
    radius : int or None, default=None
        ρ: similar pairs are to lie nearer, others farther. None chooses it by validation.
    slope : float, default=1.0
        λ, the loss of a pair that is not similar for each bit that it lies too near.
    n_steps : int, default=1000
        Steps of the training.
    batch_size : int, default=400
        Pairs of a step, half of them similar.
    learning_rate : float, default=1.0
        Length of the first steps.
    decay : float, default=0.001
        Weight of |W|² / 2, which keeps the logits from growing.

    Attributes
    ----------
    mean_ : ndarray of shape (D,)
        Mean of the training rows, or of their coordinates in feature space.
    planes_ : ndarray of shape (D, n_bits)
        W, for rows that are not scaled.
    anchors_ : RbfAnchors or None
        The map to D coordinates in feature space; without a kernel D is n_features.
    radius_ : int
        ρ, as given or chosen.
    bounds_ : ndarray of shape (n_steps,)
        The mean bound of the loss on the pairs of each step.

    References
    ----------
    .. [1] M. Norouzi, D. J. Fleet, "Minimal loss hashing for compact binary codes", ICML 2011.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> hasher = MLH(8, radius=2, n_steps=50, random_state=0).fit(data.query_x, data.query_y)
    >>> hasher.encode(data.query_x)
    BinaryCodes(n=297, n_bits=8)
    """

    radius: int | None = parameter(None, anything)  # fit checks it: n_bits limits it
    slope: float = parameter(1.0, number(closed=False))
    n_steps: int = parameter(1000, integer(1))
    batch_size: int = parameter(400, integer(2))
    learning_rate: float = parameter(1.0, number(closed=False))
    decay: float = parameter(1e-3, number())
    kernel: str | None = KERNEL
    n_anchors: int = N_ANCHORS
    gamma: float | None = GAMMA
    verbose: bool | str = VERBOSE
    random_state: Seed = RANDOM_STATE

    bounds_: np.ndarray = learned("steps")
    radius_: int = fact(int)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Two rows are similar if they share a class or a tag, or if either has a level above 0
            for the other. None takes the ten nearest rows.
        """
        if self.radius is not None:
            _check.whole("radius", self.radius, 1, self.n_bits)
        rng = check_random_state(self.random_state)
        rows = self._training_rows(X, y)
        supervision = supervise_pairs(rows, y)
        require_variation(rows)
        coordinates = self._draw_anchors(rows, rng)
        self.mean_ = coordinates.mean(axis=0)
        centered = coordinates - self.mean_
        scale = root_mean_square(centered)
        generator = np.random.default_rng(rng.randint(1 << 31))
        trainer = Trainer(centered / scale, supervision, self.n_bits, self._settings(), generator)
        self.planes_ = self._train(trainer) / scale
        return self

    def _train(self, trainer: Trainer) -> np.ndarray:
        """W for the scaled rows; sets the radius and the bounds."""
        n_steps, n_trials = trainer.settings.n_steps, len(trainer.radii())
        n_total = n_steps + (self.radius is None) * n_trials * trainer.trial_settings().n_steps
        bounds: list[float] = []
        with show_progress(self.verbose, "step", n_total) as advance:

            def note(bound: float) -> None:
                bounds.append(bound)
                advance(f"bound {bound:.3f}")

            trainer.after_step = note
            self.radius_ = trainer.choose_radius() if self.radius is None else int(self.radius)
            everything = np.arange(len(trainer.rows))
            planes = trainer.train(everything, self.radius_, trainer.settings)
        self.bounds_ = np.array(bounds[-n_steps:])
        return planes

    def _settings(self) -> Settings:
        return Settings(self.slope, self.n_steps, self.batch_size, self.learning_rate, self.decay)
