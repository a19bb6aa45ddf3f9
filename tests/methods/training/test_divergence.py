"""A diverged fit is an error that names the loss, the step and the learning rate."""

import re

import numpy as np
import pytest
import torch

from rankbits import methods
from rankbits.errors import FitError
from rankbits.methods.registry import METHODS
from rankbits.methods.supervision import supervise
from rankbits.methods.training.divergence import DivergenceGuard, require_several_codes

GRADIENT = [name for name, entry in METHODS.items() if entry.needs_torch]


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 120)
    return (rng.normal(size=(120, 12)) + 2 * np.eye(4, 12)[y]).astype(np.float32), y


class Computed(torch.nn.Module):
    """A module whose outputs a function computes."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def hasher(name, **params):
    return methods.get(name, n_bits=12, random_state=0, device="cpu", **params)


@pytest.mark.parametrize("epochs", [1, 3, "auto"])
@pytest.mark.parametrize("encoder", ["mlp", "linear"])
@pytest.mark.parametrize("name", GRADIENT)
def test_a_learning_rate_of_1e20_is_an_error(blobs, name, encoder, epochs):
    diverging = hasher(name, learning_rate=1e20, encoder=encoder, epochs=epochs)
    with pytest.raises(FitError, match=r"diverged.*lower learning_rate \(now 1e\+20\)") as error:
        diverging.fit(*blobs)
    assert re.search(rf"(loss|training) of {name}\b", str(error.value))


@pytest.mark.parametrize("name", GRADIENT)
def test_the_usual_learning_rate_is_none(blobs, name):
    codes = hasher(name, epochs=3).fit(*blobs).encode(blobs[0])
    assert len(np.unique(codes.packed, axis=0)) > 1


def test_the_error_says_the_loss_of_the_first_step_and_of_the_last(blobs):
    with pytest.raises(
        FitError,
        match=r"^training diverged at step 1: a weight has become 1e\+17 under the loss of "
        r"hashnet; the loss was \d.* at step 1; lower",
    ):
        hasher("hashnet", learning_rate=1e20).fit(*blobs)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("rate", [1e3, 1e10, 1e30, 1e38])
def test_a_fit_at_any_rate_is_an_error_or_gives_several_codes(blobs, rate, optimizer):
    for name in ("talr-ap", "hashnet", "csq"):
        diverging = hasher(name, learning_rate=rate, epochs=2, optimizer=optimizer)
        try:
            codes = diverging.fit(*blobs).encode(blobs[0])
        except FitError:
            continue
        assert len(np.unique(codes.packed, axis=0)) > 1


@pytest.mark.parametrize("n_rows", [3, 120, 5000])
def test_one_code_for_all_rows_is_an_error_where_they_should_differ(n_rows):
    x, y = torch.arange(n_rows)[:, None] * 1.0, np.arange(n_rows) % 2
    history = [{"loss": 0.75}, {"loss": 0.5}]

    def check(x, logits_of):
        guard = DivergenceGuard("hashnet", learning_rate=0.1)
        require_several_codes(guard, Computed(logits_of), x, supervise(x.numpy(), y), history)

    def one_code(rows, n_bits=8):
        return torch.ones(len(rows), n_bits)

    says = f"hashnet diverged: all {n_rows} .* after 2 epochs, the loss went from 0.75 to 0.5;"
    with pytest.raises(FitError, match=says):
        check(x, one_code)
    check(x, lambda rows: one_code(rows, 2))  # so few bits may be equal
    check(torch.ones_like(x), one_code)  # all rows are the same
    check(x, lambda rows: torch.where(rows == n_rows - 2, -1.0, one_code(rows)))
    with pytest.raises(FitError, match=r"not finite; lower learning_rate \(now 0.1\)"):
        check(x, lambda rows: one_code(rows) * torch.nan)
