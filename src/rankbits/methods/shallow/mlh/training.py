"""MLH's training: steps down the upper bound of the loss, on pairs drawn anew for each step.

A step draws as many similar as other pairs. The slope of a pair's bound in W is

    x_i (g - sign(u))' + x_j (h - sign(v))',

a perceptron's update: nothing moves where the most violating codes are those that the pair has.
Steps have momentum, and become shorter in the second half of the training.

The radius is chosen by trials: shorter trainings on nine tenths of the rows, of which the one whose
codes rank the pairs of the other rows best wins. Where these have no similar or no other pair, the
radius is a quarter of the bits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from rankbits.methods.shallow.mlh.bound import bound_and_slopes, hinge_table
from rankbits.methods.shallow.shared.pair_sampling import Pairs, draw_pairs
from rankbits.methods.supervision import Supervision

_MOMENTUM = 0.9
_SHARES = (1 / 8, 1 / 4, 3 / 8, 1 / 2)  # of the bits, as radii to try
_SHORTER = 4  # trials have this many times fewer steps
_PARTNERS = 50  # similar ones, and as many others, that a row draws


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes
    ----------
    slope : float
        λ, the slope of the loss of pairs that are not similar.
    n_steps, batch_size : int
        Steps, and pairs of a step.
    learning_rate : float
        Length of the first steps.
    decay : float
        Weight of |W|² / 2.
    """

    slope: float
    n_steps: int
    batch_size: int
    learning_rate: float
    decay: float


@dataclass(eq=False)
class Trainer:
    """Trains W for some of the rows, and chooses the radius.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Centered, with a mean square of 1.
    supervision : Supervision
        Which of them are similar.
    n_bits : int
    settings : Settings
    rng : Generator
    after_step : callable
        Told the mean bound after each step.
    """

    rows: np.ndarray
    supervision: Supervision
    n_bits: int
    settings: Settings
    rng: np.random.Generator
    after_step: Callable[[float], None] = field(default=lambda bound: None)

    def trial_settings(self) -> Settings:
        """Those of a trial."""
        return replace(self.settings, n_steps=max(1, self.settings.n_steps // _SHORTER))

    def radii(self) -> list[int]:
        """The radii to try."""
        return sorted({max(1, round(share * self.n_bits)) for share in _SHARES})

    def choose_radius(self) -> int:
        """The radius whose trial ranks held-out pairs best; of equally good ones the smallest."""
        order = self.rng.permutation(len(self.rows))
        n_held_out = len(order) // 10
        parts = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
        if not all(self.supervision.has_contrast(part) for part in parts):
            return max(1, self.n_bits // 4)
        train, held_out = parts
        pairs = self.draw_pairs(held_out)
        scores = []
        for radius in self.radii():
            bits = self.rows[held_out] @ self.train(train, radius, self.trial_settings()) > 0
            scores.append(pooled_precision(pairs.count_differing(bits), pairs.is_similar))
        return self.radii()[int(np.argmax(scores))]

    def train(self, chosen: np.ndarray, radius: int, settings: Settings) -> np.ndarray:
        """W (d, b) trained on some of the rows, from random hyperplanes with logits of 1."""
        rows, pairs = self.rows[chosen], self.draw_pairs(chosen)
        start = self.rng.standard_normal((rows.shape[1], self.n_bits))
        lengths = np.sqrt(((rows @ start) ** 2).mean(axis=0))
        start /= np.where(lengths > 0, lengths, 1.0)
        return train_planes(rows, pairs, start, radius, settings, self.rng, self.after_step)

    def draw_pairs(self, chosen: np.ndarray) -> Pairs:
        """Pairs of some of the rows; their numbers are positions in `chosen`."""
        supervision = self.supervision.take(chosen)
        return draw_pairs(supervision, _PARTNERS, _PARTNERS, self.rng)


def train_planes(
    rows: np.ndarray,
    pairs: Pairs,
    start: np.ndarray,
    radius: int,
    settings: Settings,
    rng: np.random.Generator,
    after_step: Callable[[float], None] = lambda bound: None,
) -> np.ndarray:
    """W (d, b) for rows (n, d), trained from `start`; `after_step` is told the mean bound."""
    planes, velocity = start.copy(), np.zeros_like(start)
    table = hinge_table(start.shape[1], radius, settings.slope)
    for step in range(settings.n_steps):
        chosen = draw_batch(pairs, settings.batch_size, rng)
        x, z = rows[pairs.first[chosen]], rows[pairs.second[chosen]]
        losses = table[pairs.is_similar[chosen].astype(np.intp)]
        bounds, along_x, along_z = bound_and_slopes(x @ planes, z @ planes, losses)
        gradient = (x.T @ along_x + z.T @ along_z) / len(chosen) + settings.decay * planes
        rate = settings.learning_rate * min(1.0, 2 * (1 - step / settings.n_steps))
        velocity = _MOMENTUM * velocity - rate * gradient
        planes = planes + velocity
        after_step(float(bounds.mean()))
    return planes


def draw_batch(pairs: Pairs, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of pairs: half of them similar, drawn with repeats."""
    similar, other = np.flatnonzero(pairs.is_similar), np.flatnonzero(~pairs.is_similar)
    n_similar = batch_size // 2
    return np.concatenate(
        [rng.choice(similar, n_similar), rng.choice(other, batch_size - n_similar)]
    )


def pooled_precision(distances: np.ndarray, is_similar: np.ndarray) -> float:
    """Average precision of one list of pairs, ranked by distance; pairs of a distance share it.

    >>> pooled_precision(np.array([0, 1, 1, 2]), np.array([True, True, False, False]))
    0.8333333333333333
    """
    n_similar = np.bincount(distances[is_similar], minlength=distances.max() + 1)
    n_pairs = np.bincount(distances)
    precision = np.cumsum(n_similar) / np.maximum(np.cumsum(n_pairs), 1)
    return float((n_similar * precision).sum() / n_similar.sum())
