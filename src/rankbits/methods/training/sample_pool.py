"""What bits behind a class posterior are trained on: noisy rows, labels drawn from the posterior.

Notation: C classes, T the factor of the logits that labels are drawn with.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rankbits import affinity
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.layers import ClassPosterior, class_beliefs, scale_to_one_norm

_MOST_SAMPLES, _FEWEST_SAMPLES, _SAMPLES_PER_ROW = 60_000, 20_000, 12
_BLOCK = 4096


@dataclass(frozen=True)
class SamplePool:
    """Noisy rows as the bits see them, and the probabilities of their classes."""

    inputs: Tensor  # (n, 2 C)
    probabilities: np.ndarray  # (n, C) float32


class DrawnClasses(Supervision):
    """Classes drawn from their probabilities, anew every epoch, so that no label can be learned."""

    def __init__(self, probabilities: np.ndarray, classes: np.ndarray | None = None) -> None:
        if classes is None:
            classes = probabilities.argmax(axis=1)  # until the first draw
        rows = np.arange(len(classes))
        super().__init__("classes", affinity.classes(classes, classes), rows, classes)
        self.probabilities = probabilities

    def redrawn(self, rng: np.random.Generator) -> "DrawnClasses":
        """The same rows with classes of a new draw."""
        limits = self.probabilities.cumsum(axis=1)
        marks = rng.random((len(limits), 1), dtype=np.float32) * limits[:, -1:]
        return DrawnClasses(self.probabilities, (marks > limits[:, :-1]).sum(axis=1))


def pool_size(n_rows: int) -> int:
    """Rows of the pool of n training rows: each of them equally often."""
    n_samples = max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, _SAMPLES_PER_ROW * n_rows))
    return n_rows * max(1, -(-n_samples // n_rows))


@torch.no_grad()
def draw_pool(
    classifiers: ClassPosterior, rows: Tensor, noise: float, factor: float, seed: int
) -> SamplePool:
    """Rows with noise, again and again, and their tempered posteriors."""
    generator = torch.Generator().manual_seed(seed)
    inputs, probabilities = [], []
    for _ in range(pool_size(len(rows)) // len(rows)):
        for start in range(0, len(rows), _BLOCK):
            x = scale_to_one_norm(rows[start : start + _BLOCK])
            x = x + noise * torch.randn(x.shape, generator=generator).to(x.device)
            logits = classifiers.logits(x).mean(1)
            inputs.append(class_beliefs(logits))
            probabilities.append(functional.softmax(factor * logits, dim=1).cpu())
    return SamplePool(torch.cat(inputs), torch.cat(probabilities).numpy())
