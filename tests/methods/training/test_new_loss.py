"""A method of one's own, as the recipes show it: a loss, its parameters, and nothing else."""

import inspect
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import rankbits
from rankbits import affinity
from rankbits.errors import InputError
from rankbits.methods.parameters.docstrings import split_entries, split_sections
from rankbits.methods.parameters.fields import number, parameter
from rankbits.methods.training.estimator import GradientHasher

Y = np.arange(240) % 4
RNG = np.random.default_rng(3)
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))


class MeanDistanceLoss(nn.Module):
    """Mean over pairs of d/b for relevant rows, and of max(0, margin - d/b) for others."""

    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, logits, batch):
        phi = torch.tanh(batch.alpha * logits)
        share = (1 - phi @ phi.T / phi.shape[1]) / 2
        return torch.where(batch.levels > 0, share, torch.relu(self.margin - share)).mean()


class MeanDistance(GradientHasher):
    """Codes that put relevant rows near and others far, in the mean.

    Parameters
    ----------
    margin : float, default=0.5
        Share of the bits in which rows that are not relevant should differ.
    """

    margin: float = parameter(0.5, number(0.0, 1.0))

    def _build_loss(self, supervision):
        return MeanDistanceLoss(self.margin)


QUICK = {"encoder": "linear", "n_threads": 1, "random_state": 0, "device": "cpu"}


def test_it_learns_to_rank():
    hasher = MeanDistance(16, **QUICK).fit(X, Y)
    codes = hasher.encode(X)
    mean = rankbits.evaluate(codes, codes, affinity.classes(Y, Y), ["AP"], exclude_self=True).mean
    assert mean["AP"] > 0.95
    assert hasher.report_["loss"] == {"margin": 0.5}


def test_it_is_built_once_and_a_weight_of_its_own_starts_from_the_seed():
    n_built = []

    class Scaled(MeanDistance):
        def _build_loss(self, supervision):
            n_built.append(1)
            loss = MeanDistanceLoss(self.margin)
            loss.weight = nn.Parameter(torch.rand(()))
            return loss

    fits = [Scaled(8, epochs=2, n_restarts=2, **QUICK).fit(X, Y) for _ in range(2)]
    assert len(n_built) == 2
    assert np.array_equal(fits[0].project(X), fits[1].project(X))


def test_it_has_the_common_parameters_beside_its_own_and_documents_both():
    hasher = MeanDistance(margin=0.25, epochs=2)
    assert (hasher.n_bits, hasher.margin, hasher.epochs, hasher.encoder) == (32, 0.25, 2, "auto")
    entries = split_entries(split_sections(inspect.getdoc(MeanDistance))["Parameters"])
    assert list(entries)[:3] == ["n_bits", "margin", "queries"]
    assert set(entries) == set(hasher.get_params())


def test_it_is_cloned_pickled_and_checked_as_the_others():
    hasher = MeanDistance(8, margin=0.25, epochs=1, **QUICK)
    assert clone(hasher).get_params() == hasher.get_params()
    again = pickle.loads(pickle.dumps(hasher.fit(X, Y)))
    assert np.array_equal(again.transform(X), hasher.transform(X))
    with pytest.raises(InputError, match="margin must be a number from 0 and below 1, got 2"):
        MeanDistance(margin=2.0).fit(X, Y)
    with pytest.raises(InputError, match=r"only a method of rankbits can be saved"):
        hasher.save("nowhere")
