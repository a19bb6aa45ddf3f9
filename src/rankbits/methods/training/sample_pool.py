"""What bits behind a class posterior are trained on: noisy rows, labels drawn from the posterior.

The classifiers know the training rows, so even with the noise that they were trained with they are
surer of these than of new rows: on 150 classes they doubted one row in seventy, and one in eleven
of those that they had not seen. Bits that never see doubt learn nothing about it. So rows of the
pool have more noise, until they are as doubtful in the mean as rows held out of the classifiers.
New rows are not alike: most are as clear as training rows and some are far from all of them. So
each row has a noise of its own, drawn evenly between that of the classifiers' training and the
largest.

Notation: C classes, T the factor of the logits that labels are drawn with.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rankbits import affinity
from rankbits.methods.supervision import N_CHANCES, Supervision
from rankbits.methods.training.layers import Posterior, class_beliefs, scale_to_one_norm

MOST_SAMPLES, _FEWEST_SAMPLES, _SAMPLES_PER_ROW = 60_000, 20_000, 12
_BLOCK = 4096
_DOUBT_SAMPLE = 2048  # rows on which the doubt of a pool is measured
_MOST_NOISE, _N_HALVINGS = 6.0, 8  # the largest noise tried, as a multiple, and how finely


@dataclass(frozen=True)
class SamplePool:
    """Noisy rows as the bits see them, and the probabilities of their classes."""

    inputs: Tensor  # (n, 2 C)
    probabilities: np.ndarray  # (n, C) float32


class DrawnClasses(Supervision):
    """Classes drawn from their probabilities, anew every epoch, so that no label can be learned.

    A loss that reads chances has only the class of a query drawn: `chances` says how likely each
    item is of that class. Steps between chances are coarse, so they are rounded up or down at
    random, anew every epoch, and are right in the mean.
    """

    def __init__(
        self,
        probabilities: np.ndarray,
        classes: np.ndarray | None = None,
        rounding: np.random.Generator | None = None,
    ) -> None:
        if classes is None:
            classes = probabilities.argmax(axis=1)  # until the first draw
        rows = np.arange(len(classes))
        super().__init__("classes", affinity.classes(classes, classes), rows, classes)
        self.probabilities = probabilities
        self._rounding = rounding

    def redrawn(self, rng: np.random.Generator) -> "DrawnClasses":
        """The same rows with classes of a new draw."""
        limits = self.probabilities.cumsum(axis=1)
        marks = rng.random((len(limits), 1), dtype=np.float32) * limits[:, -1:]
        classes = (marks > limits[:, :-1]).sum(axis=1)
        return DrawnClasses(self.probabilities, classes, rng.spawn(1)[0])

    def chances(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Steps of the chance that an item is of the class drawn for a query."""
        assert self.classes is not None  # noqa: S101
        chances: np.ndarray = self._steps[:, items][self.classes[queries]]
        return chances

    @cached_property
    def _steps(self) -> np.ndarray:
        """Probabilities (C, n) in steps of 1 / (N_CHANCES - 1), as uint8."""
        rng = np.random.default_rng(0) if self._rounding is None else self._rounding
        shares = self.probabilities * np.float32(N_CHANCES - 1)
        shares += rng.random(shares.shape, dtype=np.float32)
        return np.ascontiguousarray(np.minimum(shares.astype(np.uint8), N_CHANCES - 1).T)


def pool_size(n_rows: int) -> int:
    """Rows of the pool of n training rows: each of them equally often."""
    n_samples = max(_FEWEST_SAMPLES, min(MOST_SAMPLES, _SAMPLES_PER_ROW * n_rows))
    return n_rows * max(1, -(-n_samples // n_rows))


def measure_doubt(logits: Tensor, factor: float) -> float:
    """How far the likeliest class is from being sure: 1 - its probability, in the mean."""
    return float((1 - functional.softmax(factor * logits, dim=1).amax(1)).mean())


@torch.no_grad()
def match_doubt(
    classifiers: Posterior, rows: Tensor, noise: float, factor: float, doubt: float, seed: int
) -> float:
    """The largest noise with which rows are as doubtful as `doubt` says, found by halving.

    The smallest is `noise`, that of the classifiers' training.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randint(len(rows), (_DOUBT_SAMPLE,), generator=generator)
    sample = scale_to_one_norm(rows[order.to(rows.device)])
    shares, draws = _draw_noise(sample, generator)
    low, high = noise, _MOST_NOISE * noise
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        logits = classifiers.logits(sample + (noise + shares * (middle - noise)) * draws).mean(1)
        low, high = (middle, high) if measure_doubt(logits, factor) < doubt else (low, middle)
    return low


@torch.no_grad()
def draw_pool(
    classifiers: Posterior,
    rows: Tensor,
    noises: tuple[float, float],
    factor: float,
    seed: int,
) -> SamplePool:
    """Rows with noise between two limits, again and again, and their tempered posteriors."""
    smallest, largest = noises
    generator = torch.Generator().manual_seed(seed)
    inputs, probabilities = [], []
    for _ in range(pool_size(len(rows)) // len(rows)):
        for start in range(0, len(rows), _BLOCK):
            x = scale_to_one_norm(rows[start : start + _BLOCK])
            shares, draws = _draw_noise(x, generator)
            logits = classifiers.logits(x + (smallest + shares * (largest - smallest)) * draws)
            logits = logits.mean(1)
            inputs.append(class_beliefs(logits))
            probabilities.append(functional.softmax(factor * logits, dim=1).cpu())
    return SamplePool(torch.cat(inputs), torch.cat(probabilities).numpy())


def _draw_noise(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Where the noise of each row lies between the limits, (n, 1), and standard noise, (n, d)."""
    shares = torch.rand((len(x), 1), generator=generator)
    draws = torch.randn(x.shape, generator=generator)
    return shares.to(x.device), draws.to(x.device)
