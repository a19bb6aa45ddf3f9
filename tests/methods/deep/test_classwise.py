"""CSQ, OrthoHash, DPN and GreedyHash as estimators: what their y may be, resumed, refused."""

import numpy as np
import pytest
import torch

import rankbits
from rankbits import affinity, methods
from rankbits.errors import InputError
from rankbits.methods.supervision import supervise
from rankbits.methods.training import recipes
from rankbits.methods.training.batches import Batch

NAMES = ("csq", "orthohash", "dpn", "greedyhash")
AIMED = NAMES[:3]  # at centres
READ_ROWS = ("csq", "dpn")  # unless asked for a posterior
RNG = np.random.default_rng(11)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))
TAGS = np.eye(5, dtype=int)[Y] + np.eye(5, dtype=int)[(Y + 1) % 5]
QUICK = {"n_bits": 8, "epochs": 4, "hidden": (8,), "n_threads": 1, "random_state": 0}

every_name = pytest.mark.parametrize("name", NAMES)


def made(name, **params):
    return methods.get(name, **{**QUICK, **params})


def mean_ap(hasher, x, relation):
    codes = hasher.encode(x)
    counts = rankbits.count_ties(codes, codes, relation, exclude_self=True)
    return float(np.nanmean(rankbits.metrics.average_precision(counts)))


@every_name
@pytest.mark.parametrize("encoder", ["mlp", "linear"])
def test_defaults_rank_separable_classes_perfectly(name, encoder):
    hasher = methods.get(name, n_bits=12, encoder=encoder, n_threads=1, random_state=0).fit(X, Y)
    fresh = X + 0.3 * RNG.normal(size=X.shape)
    assert mean_ap(hasher, X, affinity.classes(Y, Y)) > 0.99
    assert mean_ap(hasher, fresh, affinity.classes(Y, Y)) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(READ_ROWS)))
def test_codes_read_a_posterior_whose_labels_are_drawn(name):
    y = np.arange(600) % 3
    x = (RNG.normal(size=(3, 6)) * 2)[y] + RNG.normal(size=(600, 6))
    hasher = methods.get(name, n_bits=9, epochs=2, n_threads=1, random_state=0).fit(x, y)
    assert hasher.report_["encoder"]["posterior"] == 3
    assert mean_ap(hasher, x, affinity.classes(y, y)) > 0.9


@every_name
def test_the_recipe_by_size_of_the_training_set_is_that_of_the_method(name):
    rows, y = np.zeros((600, 2)), np.arange(600) % 3
    hasher = made(name, hidden="auto")
    recipe = recipes.choose_recipe(hasher, supervise(rows, y), hasher._recipes)
    assert (recipe["posterior"] == 0) == (name in READ_ROWS)


@every_name
def test_tags_lower_the_loss_and_rank_better_than_chance(name):
    hasher = made(name, epochs=15, learning_rate=0.02, batch_size=80, dropout=0.0, ema=0.0)
    hasher.fit(X, TAGS)
    losses = [record["loss"] for record in hasher.history_]
    assert losses[-1] < losses[0] - 0.1
    chance = (TAGS @ TAGS.T > 0).mean()  # of any pair to be relevant
    assert mean_ap(hasher, X, affinity.tags(TAGS, TAGS)) > chance + 0.2


@every_name
@pytest.mark.parametrize(
    "y",
    [None, affinity.levels(2 * (Y[:, None] == Y)), affinity.judgements([(0, 4, 1)], 240, 240)],
    ids=["none", "levels", "judgements"],
)
def test_y_without_classes_or_tags_is_refused_with_what_is_taken(name, y):
    with pytest.raises(InputError, match="y must be class labels or a multi-hot matrix for"):
        made(name).fit(X, y)


@every_name
def test_a_batch_without_labels_costs_nothing_and_has_a_path_back(name):
    loss = made(name)._build_loss(supervise(X, TAGS))
    for logits in (torch.randn(3, 8), torch.zeros(3, 8)):
        logits.requires_grad_()
        batch = Batch(np.arange(3), torch.zeros(3, 3), 1.0, tags=torch.zeros(3, 5).byte())
        value = loss(logits, batch)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(logits.grad).all()
        if name in AIMED:  # absent tags teach a classifier, too
            assert value.item() == 0.0


@every_name
def test_huge_and_zero_logits_cost_a_finite_amount(name):
    loss = made(name)._build_loss(supervise(X, Y))
    batch = Batch(np.arange(4), torch.zeros(4, 4), 16.0, classes=torch.arange(4))
    for size in (1e4, 0.0):
        logits = (size * torch.ones(4, 8)).requires_grad_()
        value = loss(logits, batch)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(logits.grad).all()


@every_name
def test_making_a_loss_leaves_the_callers_generators_alone(name):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    made(name)._build_loss(supervise(X, Y))
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.random.get_state()[1].tolist() == numpy_state  # noqa: NPY002


@every_name
def test_two_losses_of_the_same_settings_are_the_same(name):
    one, other = (made(name)._build_loss(supervise(X, Y)).state_dict() for _ in range(2))
    assert one.keys() == other.keys()
    assert len(one) == 2
    assert all(torch.equal(one[key], other[key]) for key in one)


class StoppedError(Exception):
    pass


def scoring_that_stops_at(epoch):
    scored = []

    def score(encoder):
        scored.append(encoder)
        if len(scored) == epoch:
            raise StoppedError
        return float(len(scored))

    return score


@every_name
def test_a_stopped_run_is_resumed_with_the_same_loss_and_ends_alike(name, tmp_path):
    settings = {"checkpoint_epochs": 1, "epochs": 6, "batch_size": 60}
    whole = made(name, scoring=lambda encoder: 0.0, patience=99, **settings).fit(X, Y)
    stopped = made(name, checkpoint=tmp_path, scoring=scoring_that_stops_at(4), **settings)
    with pytest.raises(StoppedError):
        stopped.fit(X, Y)
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002 - the global generators must not matter
    resumed = made(name, checkpoint=tmp_path, scoring=lambda encoder: 0.0, **settings).fit(X, Y)
    assert resumed.report_["epochs_resumed"] == 3
    losses = [[record["loss"] for record in h.history_] for h in (resumed, whole)]
    assert losses[0] == losses[1]


@every_name
def test_the_parameters_of_the_loss_are_reported_and_tell_runs_apart(name, tmp_path):
    parameter = {"csq": "quantization", "greedyhash": "penalty"}.get(name, "margin")
    first = made(name, checkpoint=tmp_path, **{parameter: 0.25}).fit(X, Y)
    assert first.report_["loss"][parameter] == 0.25
    with pytest.raises(InputError, match="belongs to another training"):
        made(name, checkpoint=tmp_path, **{parameter: 0.5}).fit(X, Y)
    with pytest.raises(InputError, match=f"{parameter} must be a finite number"):
        made(name, **{parameter: -0.5}).fit(X, Y)


@pytest.mark.parametrize("name", AIMED)
def test_another_seed_of_the_centres_is_another_loss(name):
    one, other = (made(name, center_seed=seed)._build_loss(supervise(X, Y)) for seed in (0, 1))
    assert not one.targets.centers.equal(other.targets.centers)
    with pytest.raises(InputError, match="center_seed must be an integer >= 0, got -1"):
        made(name, center_seed=-1).fit(X, Y)


@every_name
@pytest.mark.parametrize("n_bits", [1, 2, 13, 33])
def test_more_classes_than_codes_and_any_length_are_taken(name, n_bits):
    y = np.arange(240) % 40
    hasher = made(name, n_bits=n_bits, epochs=2).fit(X, y)
    assert hasher.encode(X).n_bits == n_bits
    assert np.isfinite(hasher.project(X)).all()
