"""Kernelized LSH: hyperplanes in feature space that are as good as random."""

import numpy as np
import pytest
from scipy.linalg import pinvh, sqrtm

from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.shallow.klsh import center_kernel, draw_subsets
from rankbits.methods.shallow.shared.eigenproblems import inverse_square_root


@pytest.fixture
def rows(rng):
    return rng.standard_normal((80, 4))


def kernel(x, y, gamma):
    return np.exp(-gamma * np.square(x[:, None] - y).sum(axis=2))


def test_logits_are_those_of_kernels_that_are_centered_by_definition(rows, rng):
    hasher = methods.get("klsh", n_bits=9, n_anchors=25, subset_size=6, gamma=0.3, random_state=0)
    hasher.fit(rows)
    anchors, new = hasher.anchors_.rows, rng.standard_normal((10, 4))
    between = kernel(anchors, anchors, 0.3)
    centering = np.eye(25) - 1 / 25
    centered = centering @ between @ centering
    root = np.real(sqrtm(pinvh(centered, rtol=1e-10)))
    weights = hasher.planes_ / np.sqrt(24 / 6)
    indicators = np.round(centered @ root @ weights + 6 / 25, 6)  # K^(1/2) w, e but for its mean
    np.testing.assert_allclose(root @ indicators, weights, atol=1e-4)
    assert set(np.unique(np.abs(indicators))) == {0, 1}
    assert (indicators.sum(axis=0) == 6).all()
    own = kernel(new, anchors, 0.3)
    of_new = own - own.mean(axis=1, keepdims=True) - between.mean(axis=0) + between.mean()
    np.testing.assert_allclose(hasher.project(new), of_new @ hasher.planes_, atol=1e-9)


def test_anchors_agree_in_1_minus_their_angle_in_feature_space_over_pi():
    rows = np.random.default_rng(3).standard_normal((120, 3))
    hasher = methods.get("klsh", n_bits=4096, n_anchors=120, random_state=0).fit(rows)
    anchors = hasher.anchors_.rows
    centered = center_kernel(kernel(anchors, anchors, hasher.anchors_.gamma))
    lengths = np.sqrt(np.diag(centered))
    angles = np.arccos(np.clip(centered / np.outer(lengths, lengths), -1, 1))
    signs = np.where(hasher.encode(anchors).bits(), 1.0, -1.0)
    agreement = (1 + signs @ signs.T / 4096) / 2
    above = np.triu_indices(120, 1)
    errors = (agreement - (1 - angles / np.pi))[above]
    assert abs(errors.mean()) < 0.01
    assert np.abs(errors).max() < 0.06  # the planes are sums of 30 anchors, not quite normal


def test_a_centered_kernel_is_that_of_centered_features(rng):
    features = rng.standard_normal((7, 4))
    centered = features - features.mean(axis=0)
    np.testing.assert_allclose(center_kernel(features @ features.T), centered @ centered.T)


def test_the_inverse_root_of_a_matrix_without_full_rank(rng):
    half = rng.standard_normal((6, 3))
    root = inverse_square_root(half @ half.T)
    np.testing.assert_allclose(root @ root, np.linalg.pinv(half @ half.T), atol=1e-8)


def test_subsets_have_their_size_and_are_equally_likely():
    subsets = draw_subsets(6, 2, 6000, np.random.RandomState(0))
    assert set(np.unique(subsets)) == {0, 1}
    assert (subsets.sum(axis=0) == 2).all()
    pairs = np.unique(subsets, axis=1, return_counts=True)[1]
    assert len(pairs) == 15
    assert np.abs(pairs - 400).max() < 4 * np.sqrt(400)


def test_few_rows_are_all_anchors_and_half_of_them_a_subset(rng):
    hasher = methods.get("klsh", n_bits=50, random_state=0).fit(rng.standard_normal((5, 3)))
    assert len(hasher.anchors_.rows) == 5
    assert np.linalg.matrix_rank(hasher.planes_) == 4
    assert np.isfinite(hasher.planes_).all()


def test_bad_input_is_refused(rows):
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get("klsh", n_bits=2).fit(np.ones((9, 3)))
    for name, value, least in (("n_anchors", 1, 2), ("subset_size", 0, 1)):
        with pytest.raises(InputError, match=f"{name} must be an integer >= {least}"):
            methods.get("klsh", n_bits=2, **{name: value}).fit(rows)
