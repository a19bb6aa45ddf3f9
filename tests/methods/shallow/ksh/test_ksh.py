"""KSH: each bit fits the residual of the earlier ones, and no worse than the eigenvector does."""

import numpy as np
import pytest
from scipy.optimize import check_grad

import rankbits
from oracles import ksh as oracle
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import InputError
from rankbits.methods.shallow.ksh.bits import Residual, SmoothFit, whiten
from rankbits.methods.shallow.shared.similarity import similarity_of
from rankbits.methods.supervision import supervise

DATA = digits()
X, Y = DATA.database_x[:400], DATA.database_y[:400]


def fitted(x=X, y=Y, **params):
    defaults = {"n_bits": 8, "n_anchors": 60, "max_steps": 30, "random_state": 0}
    return methods.get("ksh", **defaults | params).fit(x, y)


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y, Y)
    return evaluate(hasher.encode(DATA.query_x), hasher.encode(X), relevant).mean["AP"]


@pytest.fixture
def small(rng):
    y = np.arange(40) % 3
    return 2 * rng.standard_normal((3, 5))[y] + rng.standard_normal((40, 5)), y


def test_without_descent_the_bits_are_those_of_the_generalized_eigenproblem(small):
    x, y = small
    hasher = fitted(x, y, n_bits=6, n_anchors=9, max_steps=0)
    K = oracle.features(x, hasher.anchors_.rows, hasher.anchors_.gamma)
    expected = oracle.greedy_spectral_bits(K, oracle.similarity_table(y[:, None] == y), 6)
    bits = np.where(hasher.project(x) > 0, 1, -1)
    assert np.array_equal(bits * bits[0], expected)


def test_the_history_has_the_loss_of_the_codes_after_every_bit(small):
    x, y = small
    hasher = fitted(x, y, n_bits=5, n_anchors=12)
    bits = np.where(hasher.project(x) > 0, 1.0, -1.0)
    S = oracle.similarity_table(y[:, None] == y)
    reported = [entry["loss"] for entry in hasher.history_]
    np.testing.assert_allclose(reported, oracle.losses(bits, S, 5), rtol=1e-9)
    residual = 5 * S
    for entry, bit in zip(hasher.history_, bits.T, strict=True):
        chosen = max(entry["spectral"], entry["smooth"])
        assert bit @ residual @ bit / (5 * 40**2) == pytest.approx(chosen)
        residual = residual - np.outer(bit, bit)


def test_the_descent_fits_the_similarities_better_than_the_eigenvectors():
    spectral, smooth = (fitted(max_steps=steps) for steps in (0, 30))
    assert smooth.history_[-1]["loss"] < spectral.history_[-1]["loss"] - 0.02
    assert [entry["smooth"] for entry in spectral.history_] == [
        entry["spectral"] for entry in spectral.history_
    ]


def test_the_gradient_of_the_smooth_fit_is_that_of_finite_differences(small, rng):
    x, y = small
    residual = Residual(similarity_of(supervise(x, y)), 4)
    residual.remove(np.where(rng.standard_normal(40) > 0, 1.0, -1.0))
    function = SmoothFit(x, residual)
    point = rng.standard_normal(5)
    assert check_grad(function.value, lambda a: function.at(a)[1], point) < 1e-6
    assert function.at(point)[0] == function.value(point)


def test_whitened_rows_have_variance_1_and_are_not_correlated(rng):
    flat = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 6))
    rows = flat - flat.mean(axis=0)
    white = rows @ whiten(rows)
    np.testing.assert_allclose(white.T @ white / 50, np.eye(3), atol=1e-8)


@pytest.mark.parametrize("n_bits", [8, 32])
def test_it_ranks_held_out_digits_better_than_methods_without_labels(n_bits):
    ours = held_out_ap(fitted(n_bits=n_bits))
    for name in ("lsh", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=n_bits, random_state=0).fit(X)) + 0.1


def test_classes_tags_and_affinities_that_say_the_same_learn_the_same():
    same = Y[:, None] == Y
    expected = fitted().transform(X)
    for y in (Y.astype(str), np.eye(10, dtype=int)[Y], affinity.levels(3 * same)):
        assert np.array_equal(fitted(y=y).transform(X), expected)


def test_without_y_near_rows_are_similar(rng):
    label = np.repeat(np.arange(20), 5)
    x = 10 * np.eye(20)[label] + 0.1 * rng.standard_normal((100, 20))
    codes = fitted(x, None, n_bits=32).encode(x)
    assert evaluate(codes, codes, affinity.classes(label, label)).mean["AP"] > 0.95


def test_more_rows_than_n_rows_are_drawn_by_the_seed():
    some, again, every = (fitted(n_rows=n).transform(X) for n in (100, 100, None))
    assert np.array_equal(some, again)
    assert not np.array_equal(some, every)
    assert np.array_equal(every, fitted(n_rows=400).transform(X))


def test_rows_that_are_drawn_without_a_similar_pair_are_refused(rng):
    x, y = rng.standard_normal((60, 3)), np.r_[0, 0, np.arange(1, 59)]
    with pytest.raises(InputError, match=r"n_rows must be large enough .* got 2 of 60 rows; take"):
        fitted(x, y, n_rows=2)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_rows": 1}, "n_rows must be an integer >= 2, got 1"),
        ({"max_steps": -1}, "max_steps must be an integer >= 0"),
        ({"n_anchors": 0}, "n_anchors must be an integer >= 1"),
        ({"gamma": 0}, "gamma must be a positive number or None"),
        ({"verbose": "yes"}, "verbose must be True, False or 'auto', got 'yes'"),
    ],
)
def test_parameters_out_of_range_are_refused(params, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted(**params)


def test_equal_rows_and_one_class_are_refused():
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        fitted(np.full((9, 3), 0.1), np.arange(9) % 2)
    with pytest.raises(InputError, match="y must have at least two classes, got one"):
        fitted(y=np.zeros(400, int))


def test_a_constant_feature_changes_nothing():
    widened = np.column_stack([X, np.full(len(X), 7.0)])
    assert np.array_equal(fitted(widened).transform(widened), fitted().transform(X))


def test_its_history_is_saved(tmp_path):
    hasher = fitted()
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").history_ == hasher.history_


def test_the_module_for_export_computes_the_same_logits():
    torch = pytest.importorskip("torch")
    hasher = fitted()
    logits = hasher._torch_module()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(logits, hasher.project(X), atol=1e-9)


def test_progress_is_shown_when_asked(capsys):
    fitted(verbose=True)
    assert "8/8" in capsys.readouterr().err
    fitted(verbose="auto")
    assert capsys.readouterr().err == ""
