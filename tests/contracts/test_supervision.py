"""What the losses of pairs, triplets and mutual information learn from: any kind of y."""

import numpy as np
import pytest

pytest.importorskip("torch")

from rankbits import affinity, methods

RNG = np.random.default_rng(13)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))
PARAMS = {
    "n_bits": 8,
    "hidden": (8,),
    "dropout": 0.0,
    "ema": 0.0,
    "init": "random",
    "epochs": 12,
    "batch_size": 80,
    "learning_rate": 0.01,
    "alpha_end": None,  # losses at different slopes do not compare
    "n_threads": 1,
    "random_state": 0,
}
KINDS = {
    "classes": Y,
    "tags": np.eye(4, dtype=int)[Y] + np.eye(4, dtype=int)[(Y + 1) % 4],
    "distances": None,
    "levels": affinity.levels(2 * (Y[:, None] == Y)),
    "judgements": affinity.judgements([(i, i + 4, 1 + i % 3) for i in range(99)], 240, 240),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gallery", ["batch", "memory"])
@pytest.mark.parametrize("name", ["dpsh", "dtsh", "hashnet", "mihash"])
def test_every_kind_of_y_lowers_the_loss(name, gallery, kind):
    hasher = methods.get(name, gallery=gallery, **PARAMS).fit(X, KINDS[kind])
    losses = [record["loss"] for record in hasher.history_]
    assert np.mean(losses[-3:]) < losses[0] - 0.1 * abs(losses[0])
