"""SDH: each part has its closed form, and no step raises the loss."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankbits
from oracles import sdh as oracle
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.shallow.sdh import Problem, solve_in_turns

DATA = digits()
X, Y = DATA.database_x[:400], DATA.database_y[:400]


def fitted(x=X, y=Y, **params):
    return methods.get("sdh", **{"n_bits": 8, "n_anchors": 60, "random_state": 0} | params).fit(
        x, y
    )


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y, Y)
    return evaluate(hasher.encode(DATA.query_x), hasher.encode(X), relevant).mean["AP"]


@pytest.fixture
def problem(rng):
    return Problem(np.eye(3)[np.arange(20) % 3], rng.random((20, 4)), 0.7, 0.3, 0.1)


@pytest.fixture
def bits(rng):
    return np.where(rng.standard_normal((20, 5)) > 0, 1.0, -1.0)


def test_the_loss_is_the_sum_written_out(problem, bits, rng):
    W, P = rng.standard_normal((5, 3)), rng.standard_normal((4, 5))
    ridge = 0.1 * np.mean(np.sum(problem.features**2, axis=0))
    expected = oracle.loss(problem.targets, problem.features, bits, W, P, 0.7, 0.3, ridge)
    assert problem.loss(bits, W, P) == pytest.approx(expected)


def test_classifier_and_map_are_ridge_regressions(problem, bits):
    plain = Ridge(alpha=0.7, fit_intercept=False).fit(bits, problem.targets)
    np.testing.assert_allclose(problem.solve_classifier(bits), plain.coef_.T, atol=1e-9)
    plain = Ridge(alpha=problem.ridge, fit_intercept=False).fit(problem.features, bits)
    np.testing.assert_allclose(problem.solve_map(bits), plain.coef_.T, atol=1e-9)


def test_no_change_of_a_bit_lowers_the_loss_after_the_step_of_the_bits(problem, bits, rng):
    W, P = rng.standard_normal((5, 3)), rng.standard_normal((4, 5))
    better = problem.solve_bits(bits, W, P)
    least = problem.loss(better, W, P)
    assert least < problem.loss(bits, W, P)
    for i in range(20):
        for k in range(5):
            flipped = better.copy()
            flipped[i, k] *= -1
            assert problem.loss(flipped, W, P) >= least - 1e-12


@pytest.mark.parametrize("map_weight", [1e-5, 1e-2, 1.0])
def test_the_loss_never_rises(map_weight):
    losses = fitted(map_weight=map_weight, n_bits=12).losses_
    assert len(losses) > 4
    assert all(np.diff(losses) <= 1e-9 * losses[0])
    assert losses[-1] < losses[0]


def test_the_last_classifier_and_map_are_those_of_the_last_bits(problem, bits):
    W, P, losses = solve_in_turns(problem, bits, 100)
    settled = problem.solve_bits(bits, problem.solve_classifier(bits), problem.solve_map(bits))
    for _ in range(100):
        settled = problem.solve_bits(
            settled, problem.solve_classifier(settled), problem.solve_map(settled)
        )
    np.testing.assert_allclose(W, problem.solve_classifier(settled))
    np.testing.assert_allclose(P, problem.solve_map(settled))
    assert losses[-1] == pytest.approx(problem.loss(settled, W, P))


def test_the_classifier_tells_the_classes_of_new_rows_from_their_bits():
    hasher = fitted(n_bits=32)
    signs = np.where(hasher.project(DATA.query_x) > 0, 1.0, -1.0)
    assert np.mean((signs @ hasher.classifier_).argmax(axis=1) == DATA.query_y) > 0.85


@pytest.mark.parametrize("n_bits", [8, 32])
def test_it_ranks_held_out_digits_better_than_methods_without_labels(n_bits):
    ours = held_out_ap(fitted(n_bits=n_bits))
    for name in ("lsh", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=n_bits, random_state=0).fit(X)) + 0.05


def test_classes_and_tags_that_say_the_same_learn_the_same():
    expected = fitted().transform(X)
    for y in (Y.astype(str), np.eye(10, dtype=int)[Y]):
        assert np.array_equal(fitted(y=y).transform(X), expected)


def test_rows_may_have_several_tags_or_none():
    tags = np.column_stack([Y % 2 == 0, Y % 3 == 0, Y > 4]).astype(int)
    assert (tags.sum(axis=1) == 0).any()
    codes = fitted(y=tags, n_bits=16).encode(X)
    relevant = affinity.tags(tags, tags)
    near = evaluate(codes, codes, relevant, exclude_self=True).mean["AP"]
    plain = methods.get("itq", n_bits=16, random_state=0).fit(X).encode(X)
    assert near > evaluate(plain, plain, relevant, exclude_self=True).mean["AP"] + 0.1


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (None, "sdh requires y to be passed, but the target y is None; ksh, bre and mlh work with"),
        (affinity.classes(Y, Y), "sdh, which learns a classifier, got an affinity; ksh, bre and m"),
        (np.zeros(400, int), "y must have at least two classes, got one"),
    ],
)
def test_y_without_classes_is_refused(y, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted(y=y)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"classifier_penalty": 0}, "classifier_penalty must be a finite number above 0"),
        ({"map_weight": -1.0}, "map_weight must be a finite number above 0"),
        ({"map_penalty": "small"}, "map_penalty must be a finite number above 0"),
        ({"max_rounds": 0}, "max_rounds must be an integer >= 1"),
        ({"n_anchors": 0}, "n_anchors must be an integer >= 1"),
    ],
)
def test_parameters_out_of_range_are_refused(params, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted(**params)


def test_what_it_learned_is_saved_and_checked(tmp_path):
    hasher = fitted()
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    np.testing.assert_array_equal(again.classifier_, hasher.classifier_)
    np.testing.assert_array_equal(again.losses_, hasher.losses_)
    arrays, facts = hasher._state()
    with pytest.raises(FileFormatError, match=r"classifier must be finite float64 of shape \(8, "):
        hasher._restore({**arrays, "classifier": arrays["classifier"][1:]}, facts)


def test_the_module_for_export_computes_the_same_logits():
    torch = pytest.importorskip("torch")
    hasher = fitted()
    logits = hasher._torch_module()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(logits, hasher.project(X), atol=1e-6 * np.abs(logits).max())
