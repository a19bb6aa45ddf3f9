"""Anchor graph hashing: smooth vectors, and second thresholds that cut them best."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import rankbits
from oracles.anchor_graph import cut, similarities, weights_of
from rankbits import methods
from rankbits.errors import FileFormatError, InputError


@pytest.fixture
def rows(rng):
    centers = 3 * rng.standard_normal((4, 5))
    return centers[rng.integers(0, 4, 150)] + rng.standard_normal((150, 5))


def fit(rows, **params):
    return methods.get("agh", n_anchors=20, random_state=0, **params).fit(rows)


def table_of(hasher, rows):
    return weights_of(rows, hasher.anchors_, hasher.gamma_[0], hasher.n_nearest_)


def test_logits_of_training_rows_are_orthogonal_eigenvectors(rows):
    hasher = fit(rows, n_bits=10, n_layers=1)
    logits, graph = hasher.project(rows), similarities(table_of(hasher, rows))
    np.testing.assert_allclose(logits.T @ logits, 150 * np.eye(10), atol=1e-7)
    np.testing.assert_allclose(graph @ logits, logits * hasher.eigenvalues_, atol=1e-8)
    assert (np.diff(hasher.eigenvalues_) <= 0).all()
    assert hasher.eigenvalues_[0] <= 1 + 1e-9


def test_two_layers_take_two_bits_of_half_as_many_vectors(rows):
    one, two = fit(rows, n_bits=7, n_layers=1), fit(rows, n_bits=13)
    logits = two.project(rows)
    np.testing.assert_allclose(logits[:, :7], one.project(rows), atol=1e-8)
    for k in range(6):
        low, high = two.thresholds_[7 + k]
        expected = [abs(y) > (high if y > 0 else low) for y in logits[:, k]]
        assert np.array_equal(logits[:, 7 + k] > 0, expected)


def test_second_thresholds_have_the_least_cut_of_all_that_balance(rows):
    hasher = fit(rows, n_bits=8)
    graph, logits = similarities(table_of(hasher, rows)), hasher.project(rows)
    n_crossing = 0
    for k in range(4):
        y, thresholds = logits[:, k], hasher.thresholds_[4 + k]
        n_positive, total = (y > 0).sum(), np.abs(y).sum()

        def balanced(high, n_positive=n_positive, total=total):
            return (total - n_positive * high) / (150 - n_positive), high

        best = minimize_scalar(lambda high, y=y: cut(y, balanced(high), graph))
        assert cut(y, thresholds, graph) == pytest.approx(best.fun, abs=1e-8)
        if cut(y, balanced(best.x + 1), graph) > best.fun + 1e-6:  # else any difference is as good
            assert thresholds[1] == pytest.approx(best.x, abs=1e-5)
            assert thresholds[0] == pytest.approx(balanced(best.x)[0], abs=1e-5)
            n_crossing += 1
        assert logits[:, 4 + k].sum() == pytest.approx(0, abs=1e-8)
    assert n_crossing >= 2


def test_sides_without_an_edge_between_them_have_their_means_as_thresholds(rng):
    rows = np.concatenate([rng.standard_normal((60, 2)), rng.standard_normal((60, 2)) + 500])
    hasher = fit(rows, n_bits=2)
    y = np.abs(hasher.project(rows)[:, 0])
    is_positive = hasher.project(rows)[:, 0] > 0
    assert is_positive.sum() == 60
    expected = y[~is_positive].mean(), y[is_positive].mean()
    np.testing.assert_allclose(hasher.thresholds_[1], expected, atol=1e-9)


def test_bits_follow_clusters_that_are_not_convex(rng):
    angles = rng.uniform(0, 2 * np.pi, 600)
    radii = np.repeat([1.0, 4.0], 300)
    rings = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)
    rings += 0.05 * rng.standard_normal(rings.shape)
    hasher = methods.get("agh", n_bits=1, n_layers=1, n_anchors=60, random_state=0).fit(rings)
    bits = hasher.encode(rings).bits()[:, 0]
    assert (bits[:300] == bits[0]).all()
    assert (bits[300:] != bits[0]).all()


def test_gamma_is_measured_as_in_every_method(rows):
    hasher = fit(rows, n_bits=4)
    squares = np.square(rows[:, None] - hasher.anchors_).sum(axis=2)
    assert hasher.gamma_[0] == pytest.approx(1 / np.median(squares[squares > 1e-9]))
    assert fit(rows, n_bits=4, gamma=0.25).gamma_[0] == 0.25


def test_more_bits_than_vectors_are_refused_with_what_to_do(rows):
    sentence = (
        r"n_bits must be at most 38, 2 for each of the 19 vectors .* 20 anchors, got 39; take"
    )
    with pytest.raises(InputError, match=sentence):
        fit(rows, n_bits=39)
    with pytest.raises(InputError, match=r"at most 19, 1 for each .* got 20; .* n_anchors"):
        fit(rows, n_bits=20, n_layers=1)
    assert fit(rows, n_bits=38).n_bits_ == 38


def test_few_distinct_rows_are_the_anchors(rng):
    rows = np.repeat(rng.standard_normal((6, 2)), 10, axis=0)
    hasher = methods.get("agh", n_bits=3, random_state=0).fit(rows)
    assert np.array_equal(hasher.anchors_, np.unique(rows, axis=0))
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get("agh", n_bits=2).fit(np.ones((9, 3)))


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_layers": 3}, "n_layers must be an integer from 1 to 2, got 3"),
        ({"n_anchors": 1}, "n_anchors must be an integer >= 2"),
        ({"n_nearest": 0}, "n_nearest must be an integer >= 1"),
        ({"gamma": -1}, "gamma must be a positive number or None"),
    ],
)
def test_parameters_without_a_meaning_are_refused(rows, params, sentence):
    with pytest.raises(InputError, match=sentence):
        methods.get("agh", n_bits=4, random_state=0, **params).fit(rows)


def test_arrays_that_do_not_belong_together_are_refused(rows):
    hasher = fit(rows, n_bits=8)
    arrays, facts = hasher._state()
    for broken, other_facts, sentence in (
        ({**arrays, "thresholds": np.zeros((9, 2))}, facts, "one or two bits for each vector"),
        ({**arrays, "thresholds": np.zeros((3, 2))}, facts, "got 3 for 4"),
        ({**arrays, "thresholds": np.zeros((8, 3))}, facts, r"of shape \(8, 2\), got"),
        (arrays, {"n_nearest": 21}, "n_nearest must be from 1 to 20, its anchors, got 21"),
    ):
        with pytest.raises(FileFormatError, match=sentence):
            hasher._restore(broken, other_facts)


def test_what_was_fitted_counts_whatever_the_parameters_become(rows, tmp_path):
    hasher = fit(rows, n_bits=8)
    logits = hasher.project(rows)
    hasher.set_params(n_nearest=5, n_layers=1, n_bits=4).save(tmp_path / "model")
    assert np.array_equal(hasher.project(rows), logits)
    assert np.array_equal(rankbits.load(tmp_path / "model").project(rows), logits)
