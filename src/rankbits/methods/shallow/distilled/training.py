"""The list loss of distilled maps, its gradient, and the loop that follows it.

Every step draws queries and a list of items among the training rows. A query's exact scores over
the list, and its scores by the maps, each become chances by a softmax; the loss is the
cross-entropy of the second given the first, to which the top of the list contributes most:

    P = softmax(q'x / T)    P̂ = softmax(a <U'q + e, s(x)>)    L = - mean over q of sum P log P̂

The signs s = sign(l) of the logits l = V'x + c have no gradient, so they take that of tanh(l). The
temperature T is a share of the standard deviation of the scores; the scale a is learned.
"""

import math
from dataclasses import dataclass

import numpy as np

from rankbits.methods.shallow.shared.rotation import itq_planes

N_QUERIES, N_ITEMS = 256, 2000  # of a step
EXCLUDED = -1e4  # a score whose chance is 0
_RATE, _SCALE_RATE = 0.1, 0.01  # of a step: by the size of an entry of V, and of log a
_WARM_UP = 20
_TIMES_A_QUERY = 12


@dataclass
class Maps:
    """The map of the items and that of the queries."""

    planes: np.ndarray  # V (d, b)
    offsets: np.ndarray  # c (b,)
    query_planes: np.ndarray  # U (d, b)
    query_offsets: np.ndarray  # e (b,)

    def arrays(self) -> list[np.ndarray]:
        """All arrays, in this order."""
        return [self.planes, self.offsets, self.query_planes, self.query_offsets]


def train_maps(
    units: np.ndarray,
    start: Maps,
    temperature: float,
    n_steps: int | None,
    rng: np.random.RandomState,
) -> Maps:
    """The maps after so many steps from the start; None makes every row a query twelve times.

    The temperature is a share of the standard deviation of the cosines of rows.
    """
    if n_steps is None:
        n_steps = -(-_TIMES_A_QUERY * len(units) // N_QUERIES)
    temperature = temperature * measure_deviation(units)
    units = units.astype(np.float32)
    maps = Maps(*(array.astype(np.float32) for array in start.arrays()))
    rate = _RATE * float(np.sqrt(np.mean(maps.planes**2)))
    adams, scale_adam = [Adam(rate) for _ in maps.arrays()], Adam(_SCALE_RATE)
    log_scale = np.log(first_scale(maps.planes) / temperature)
    for step in range(n_steps):
        queries = rng.permutation(len(units))[:N_QUERIES]
        items = rng.permutation(len(units))[:N_ITEMS]
        exact = units[queries] @ units[items].T / temperature
        exact[queries[:, None] == items] = EXCLUDED  # a row does not rank itself
        _, grads, grad_scale = list_loss(
            exact, units[queries], units[items], maps, math.exp(log_scale)
        )
        pace = schedule(step, n_steps)
        for array, adam, grad in zip(maps.arrays(), adams, grads.arrays(), strict=True):
            array -= pace * adam.step(grad)
        log_scale -= pace * float(scale_adam.step(np.array(grad_scale)))
    return Maps(*(array.astype(np.float64) for array in maps.arrays()))


def start_from_itq(units: np.ndarray, n_bits: int, rng: np.random.RandomState) -> Maps:
    """ITQ's planes as both maps.

    Queries are not centered: what the mean adds to their scores is the same for every item.
    """
    planes, offsets = itq_planes(units, n_bits, rng)
    return Maps(planes, offsets, planes.copy(), np.zeros(n_bits))


def list_loss(
    exact: np.ndarray, queries: np.ndarray, items: np.ndarray, maps: Maps, scale: float
) -> tuple[float, Maps, float]:
    """The loss, its gradients by the maps, and that by the logarithm of the scale a.

    `exact` are the exact scores (queries, items) over the temperature.
    """
    logits = items @ maps.planes + maps.offsets
    signs = np.where(logits > 0, 1, -1).astype(logits.dtype)
    weights = queries @ maps.query_planes + maps.query_offsets
    scores = scale * (weights @ signs.T)
    scores[exact == EXCLUDED] = EXCLUDED
    chances, log_chances = np.exp(log_softmax(exact)), log_softmax(scores)
    loss = -float(np.vdot(chances, log_chances)) / len(queries)
    grad_scores = (np.exp(log_chances) - chances) / len(queries)
    grad_weights = scale * (grad_scores @ signs)
    grad_logits = scale * (grad_scores.T @ weights) * (1 - np.tanh(logits) ** 2)
    grads = Maps(
        items.T @ grad_logits,
        grad_logits.sum(axis=0),
        queries.T @ grad_weights,
        grad_weights.sum(axis=0),
    )
    return loss, grads, float(np.vdot(grad_scores, scores))


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Logarithms of the softmax of each row."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    result: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def measure_deviation(units: np.ndarray) -> float:
    """Standard deviation of the inner product of two rows less their mean: |covariance|."""
    centered = units - units.mean(axis=0)
    return float(np.linalg.norm(centered.T @ centered / len(units)))


def first_scale(planes: np.ndarray) -> float:
    """The scale a at which <V'q, sign(V'x)> is nearest to q'x, for orthogonal planes.

    Columns of length r with logits of mean size 1 make V sign(V'x) / r² the estimate of x.
    """
    return float(planes.shape[1] / np.vdot(planes, planes))


def schedule(step: int, n_steps: int) -> float:
    """The share of the full rate at a step: a short rise, then half a cosine."""
    return min(1.0, (step + 1) / _WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / n_steps))


class Adam:
    """Adam's steps for one array; D. Kingma, J. Ba, ICLR 2015."""

    def __init__(self, rate: float, decays: tuple[float, float] = (0.9, 0.999)) -> None:
        self.rate, self.decays, self.n_steps = rate, decays, 0
        self.mean: np.ndarray | float = 0.0
        self.square: np.ndarray | float = 0.0

    def step(self, grad: np.ndarray) -> np.ndarray:
        """What to take off the array."""
        first, second = self.decays
        self.n_steps += 1
        self.mean = first * self.mean + (1 - first) * grad
        self.square = second * self.square + (1 - second) * grad**2
        mean = self.mean / (1 - first**self.n_steps)
        square = self.square / (1 - second**self.n_steps)
        result: np.ndarray = self.rate * mean / (np.sqrt(square) + 1e-12)
        return result
