"""BRE: the search of a weight finds the least loss of all its values, and the loss never rises."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import rankbits
from oracles import bre as oracle
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import InputError
from rankbits.methods.shallow.bre import draw_weights, pairs_by_distance
from rankbits.methods.shallow.bre.descent import TargetPairs, best_value, descend_weights

DATA = digits()
X, Y = DATA.database_x[:300], DATA.database_y[:300]


def fitted(x=X, y=Y, **params):
    quick = {"n_bits": 8, "n_points": 10, "n_partners": 20, "max_sweeps": 3, "random_state": 0}
    return methods.get("bre", **quick | params).fit(x, y)


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y, Y)
    return evaluate(hasher.encode(DATA.query_x), hasher.encode(X), relevant).mean["AP"]


@pytest.fixture
def problem(rng):
    """Features of both signs, some of them 0, weights of 3 bits, and all pairs."""
    features = np.round(rng.standard_normal((15, 4)), 1)
    features[3] = 0
    first, second = np.triu_indices(15, 1)
    targets = (rng.random(len(first)) < 0.5).astype(float)
    return features, rng.standard_normal((4, 3)), TargetPairs(first, second, targets)


def loss_of(features, weights, pairs):
    return oracle.loss(features @ weights > 0, pairs.first, pairs.second, pairs.targets)


def test_the_loss_and_the_savings_are_those_counted_pair_by_pair(problem):
    features, weights, pairs = problem
    bits = features @ weights > 0
    distances = pairs.count_differing(bits)
    assert pairs.loss(distances, 3) == pytest.approx(loss_of(features, weights, pairs))
    savings = pairs.savings(distances, 5)
    expected = (pairs.targets - distances / 5) ** 2 - (pairs.targets - (distances + 1) / 5) ** 2
    np.testing.assert_allclose(savings, expected, atol=1e-12)


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("point", range(4))
def test_a_weight_takes_the_value_of_the_least_loss(problem, k, point):
    features, weights, pairs = problem
    plain = oracle.least_loss_of_a_weight(
        features, weights, point, k, pairs.first, pairs.second, pairs.targets
    )
    bits = features @ weights > 0
    others = pairs.count_differing(np.delete(bits, k, axis=1))
    rest = features @ weights[:, k] - weights[point, k] * features[:, point]
    weights[point, k] = best_value(rest, features[:, point], pairs, pairs.savings(others, 3))
    assert loss_of(features, weights, pairs) == pytest.approx(plain)


def test_a_point_that_is_0_for_all_rows_changes_nothing(problem):
    features, weights, pairs = problem
    features[:, 2] = 0
    before = weights.copy()
    list(descend_weights(features, weights, pairs, 2, 0.0))
    assert np.array_equal(weights[2], before[2])


def test_no_sweep_raises_the_loss_and_the_last_one_finds_no_better_weight(problem):
    features, weights, pairs = problem
    losses = list(descend_weights(features, weights, pairs, 100, 0.0))
    assert all(np.diff(losses) <= 0)
    assert losses[-1] < losses[0]
    assert losses[-1] == pytest.approx(loss_of(features, weights, pairs))
    best = min(
        oracle.least_loss_of_a_weight(
            features, weights, point, k, pairs.first, pairs.second, pairs.targets
        )
        for point in range(4)
        for k in range(3)
    )
    assert best == pytest.approx(losses[-1])


def test_weights_that_are_0_at_first_stay_0():
    hasher = fitted(n_anchors=40)
    assert hasher.planes_.shape == (40, 8)
    assert ((hasher.planes_ != 0).sum(axis=0) == 10).all()


@pytest.mark.parametrize("y", [Y, None])
def test_the_losses_of_a_fit_never_rise(y):
    losses = fitted(y=y).losses_
    assert 2 <= len(losses) <= 4
    assert all(np.diff(losses) <= 0)
    assert losses[-1] < 0.9 * losses[0]


def test_it_ranks_held_out_digits_better_than_methods_without_labels():
    ours = held_out_ap(fitted(n_bits=16, n_points=20, n_partners=40))
    for name in ("lsh", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=16, random_state=0).fit(X)) + 0.05


def test_without_y_hamming_distances_follow_the_distances_of_rows():
    correlations = {}
    for name, hasher in {
        "bre": fitted(y=None, n_bits=16),
        "lsh": methods.get("lsh", n_bits=16, random_state=0).fit(X),
    }.items():
        apart = pdist(hasher.encode(DATA.query_x).bits(), "hamming")
        correlations[name] = np.corrcoef(apart, pdist(DATA.query_x, "sqeuclidean"))[0, 1]
    assert correlations["bre"] > correlations["lsh"] + 0.05


def test_pairs_by_distance_have_each_pair_once_and_a_mean_target_of_a_half(rng):
    rows = rng.standard_normal((40, 3))
    pairs = pairs_by_distance(rows, 5, rng)
    assert (pairs.first < pairs.second).all()
    assert len({(i, j) for i, j in zip(pairs.first, pairs.second, strict=True)}) == len(pairs.first)
    assert set(pairs.first) | set(pairs.second) == set(range(40))
    squares = np.array(
        [((rows[i] - rows[j]) ** 2).sum() for i, j in zip(pairs.first, pairs.second, strict=True)]
    )
    np.testing.assert_allclose(pairs.targets, squares / squares.mean() / 2)


def test_first_weights_are_those_of_a_few_points():
    weights = draw_weights(9, 4, 3, np.random.RandomState(0))
    assert ((weights != 0).sum(axis=0) == 3).all()
    assert (draw_weights(2, 4, 3, np.random.RandomState(0)) != 0).all()


def test_classes_tags_and_affinities_that_say_the_same_learn_the_same():
    expected = fitted().transform(X)
    for y in (Y.astype(str), np.eye(10, dtype=int)[Y], affinity.levels(3 * (Y[:, None] == Y))):
        assert np.array_equal(fitted(y=y).transform(X), expected)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_points": 0}, "n_points must be an integer >= 1"),
        ({"n_partners": 1}, "n_partners must be an integer >= 2"),
        ({"n_rows": 1}, "n_rows must be an integer >= 2"),
        ({"n_rows": 1, "y": None}, "n_rows must be an integer >= 2"),
        ({"max_sweeps": 0}, "max_sweeps must be an integer >= 1"),
        ({"verbose": 2}, "verbose must be True, False or 'auto'"),
        ({"y": np.zeros(300, int)}, "y must have at least two classes, got one"),
    ],
)
def test_parameters_out_of_range_are_refused(params, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted(**params)


@pytest.mark.parametrize("y", [Y, None])
def test_some_of_the_rows_may_teach(y):
    some, again = (fitted(y=y, n_rows=100).transform(X) for _ in range(2))
    assert np.array_equal(some, again)
    assert not np.array_equal(some, fitted(y=y).transform(X))


def test_losses_are_saved_and_the_kernel_exported(tmp_path):
    hasher = fitted()
    hasher.save(tmp_path / "model")
    np.testing.assert_array_equal(rankbits.load(tmp_path / "model").losses_, hasher.losses_)
    torch = pytest.importorskip("torch")
    logits = hasher._torch_module()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(logits, hasher.project(X), atol=1e-9 * np.abs(logits).max())


def test_progress_is_shown_when_asked(capsys):
    fitted(verbose=True)
    assert "loss" in capsys.readouterr().err
