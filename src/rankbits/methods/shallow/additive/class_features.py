"""Features for collections whose classes grow: what rows are like, and which known class they have.

    z = [u, √w p]        u = M'(x - mean) at length 1

x is a row at length 1, M a metric in which directions that tell known classes apart count more, and
p the class posterior of some small networks. The inner product of two such rows is a cosine plus
w p.p: rows of new classes are told apart by the first term, those of known classes by the second. A
query counts its own p by its confidence, the sum of p², and more than w, since codes keep p well:

    z(q) = [u, √w g (sum of p²) p]

Where rows without a label are given too, the networks learn them as one class more, which is left
out of p: p is then small for rows that are of no known class. Such rows may be of a known class
after all, so every network sees other ones of them, and few: a network would remember those that it
saw. Since p says by itself that a query is of a new class, g is larger.

S is the covariance of rows within their classes, E and A are the principal directions of rows that
S^(-1/2) has whitened and their variances, and M = S^(-1/2) E A^(1/8). w and g were chosen on
training classes that were played as new.
"""

import math
import warnings
from dataclasses import dataclass, field

import numpy as np

from rankbits.methods.shallow.shared.groups import draw_rows
from rankbits.methods.shallow.shared.units import scale_to_units
from rankbits.methods.shallow.shared.within_classes import whiten_within_classes

POSTERIOR_WEIGHT = 0.1  # w
_QUERY_GAIN, _QUERY_GAIN_OF_OTHERS = 4.0, 16.0  # g, without and with rows that have no label
_OTHERS = 0.2  # rows without a label that a network sees, as a share of the labelled ones
_SPREAD = 0.25  # exponent of the variances that scales the whitened directions
_N_NETWORKS, _N_HIDDEN, _N_EPOCHS, _BATCH = 5, 512, 25, 256
_DECAY = 1e-3


@dataclass(frozen=True)
class ClassFeatures:
    """The metric and the networks of the class posterior; k of them, of h hidden units.

    Attributes
    ----------
    center : (d,), mean of the training rows
    metric : (d, d), M
    hidden, hidden_offsets : (k, d, h) and (k, h)
        What the hidden units read of x - center.
    outputs, output_offsets : (k, h, c) and (k, c)
    has_others : whether the last output is for rows without a label
    """

    center: np.ndarray
    metric: np.ndarray
    hidden: np.ndarray
    hidden_offsets: np.ndarray
    outputs: np.ndarray
    output_offsets: np.ndarray
    has_others: bool = field(default=False, kw_only=True)

    @property
    def n_classes(self) -> int:
        """Known classes."""
        return int(self.output_offsets.shape[1]) - self.has_others

    @property
    def query_gain(self) -> float:
        """How much more than w the posterior of a query counts, g."""
        return _QUERY_GAIN_OF_OTHERS if self.has_others else _QUERY_GAIN

    def probabilities(self, units: np.ndarray) -> np.ndarray:
        """Class posteriors p (n, known classes): the mean of the networks."""
        centered, total = units - self.center, np.zeros((len(units), self.outputs.shape[2]))
        networks = zip(
            self.hidden, self.hidden_offsets, self.outputs, self.output_offsets, strict=True
        )
        for hidden, hidden_offsets, outputs, output_offsets in networks:
            logits = np.maximum(centered @ hidden + hidden_offsets, 0) @ outputs + output_offsets
            chances = np.exp(logits - logits.max(axis=1, keepdims=True))
            total += chances / chances.sum(axis=1, keepdims=True)
        mean: np.ndarray = total[:, : self.n_classes] / len(self.hidden)
        return mean

    def of_items(self, units: np.ndarray) -> np.ndarray:
        """Features z (n, d + c) of rows at length 1."""
        likeness = scale_to_units((units - self.center) @ self.metric)
        chances = math.sqrt(POSTERIOR_WEIGHT) * self.probabilities(units)
        return np.concatenate([likeness, chances], axis=1)

    def of_queries(self, units: np.ndarray) -> np.ndarray:
        """The same of queries, whose posteriors count by their confidence."""
        features = self.of_items(units)
        chances = features[:, units.shape[1] :]
        confidence = (chances**2).sum(axis=1, keepdims=True) / POSTERIOR_WEIGHT
        chances *= self.query_gain * confidence
        return features


def learn_class_features(
    units: np.ndarray, classes: np.ndarray, others: np.ndarray, rng: np.random.RandomState
) -> ClassFeatures:
    """The metric and the networks from rows at length 1 and their class labels.

    `others` are rows at length 1 without a label, or none.
    """
    center = units.mean(axis=0)
    whitening = whiten_within_classes(units, classes)
    whitened = (units - center) @ whitening
    variances, vectors = np.linalg.eigh(whitened.T @ whitened / len(whitened))
    metric = whitening @ vectors * np.maximum(variances, 0) ** (_SPREAD / 2)
    numbers = np.unique(classes, return_inverse=True)[1]
    networks = []
    for _ in range(_N_NETWORKS):
        drawn = draw_rows(others, math.ceil(_OTHERS * len(units)), rng)
        rows = np.concatenate([units, drawn]) - center
        labels = np.concatenate([numbers, np.full(len(drawn), numbers.max() + 1)])
        networks.append(train_network(rows, labels, rng))
    parts = (np.stack(part) for part in zip(*networks, strict=True))
    return ClassFeatures(center, metric, *parts, has_others=len(others) > 0)


def train_network(
    rows: np.ndarray, classes: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights and offsets of a network of one hidden layer: of its hidden units, its outputs."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier  # slow to import, and only fitting needs it
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    scale = rows.std()
    network = MLPClassifier(
        (_N_HIDDEN,),
        alpha=_DECAY,
        max_iter=_N_EPOCHS,
        batch_size=min(_BATCH, len(rows)),
        random_state=rng.randint(1 << 31),
    )
    # One thread: the sums of several would depend on their number.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few epochs are what is wanted
        network.fit(rows / scale, classes)
    (hidden, outputs), (hidden_offsets, output_offsets) = network.coefs_, network.intercepts_
    if outputs.shape[1] == 1:  # two classes have one logit; that of the first is 0
        outputs, output_offsets = (
            np.concatenate([np.zeros_like(part), part], axis=-1)
            for part in (outputs, output_offsets)
        )
    return hidden / scale, hidden_offsets, outputs, output_offsets
