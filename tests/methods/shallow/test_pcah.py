"""PCA hashing: directions are scikit-learn's, by falling variance."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from rankbits import methods
from rankbits.errors import InputError


@pytest.fixture(scope="module")
def rows():
    return load_digits().data


def test_directions_and_mean_are_those_of_scikit_learn(rows):
    pcah = methods.get("pcah", n_bits=20, random_state=0).fit(rows)
    pca = PCA(20, svd_solver="full").fit(rows)
    cosines = np.abs(np.einsum("kd,dk->k", pca.components_, pcah.planes_))
    np.testing.assert_allclose(cosines, 1, atol=1e-8)
    np.testing.assert_allclose(pcah.mean_, pca.mean_, atol=1e-12)
    np.testing.assert_allclose(pcah.project(rows).var(axis=0, ddof=1), pca.explained_variance_)


def test_directions_are_eigenvectors_of_the_covariance(rows):
    planes = methods.get("pcah", n_bits=12).fit(rows).planes_
    covariance = np.cov(rows.T)
    values = np.einsum("dk,de,ek->k", planes, covariance, planes)
    np.testing.assert_allclose(covariance @ planes, planes * values, atol=1e-8)
    np.testing.assert_allclose(planes.T @ planes, np.eye(12), atol=1e-10)
    assert (np.diff(values) < 0).all()


def test_bits_are_the_sides_of_the_mean(rows):
    pcah = methods.get("pcah", n_bits=9).fit(rows)
    expected = (rows - rows.mean(axis=0)) @ pcah.planes_ > 0
    assert np.array_equal(pcah.encode(rows).bits(), expected)


@pytest.mark.parametrize(("shape", "n_bits", "most"), [((50, 4), 5, 4), ((6, 20), 7, 6)])
@pytest.mark.parametrize("name", ["pcah", "itq"])
def test_more_bits_than_directions_are_refused(rng, name, shape, n_bits, most):
    with pytest.raises(InputError, match=f"n_bits must be at most {most}, .* got {n_bits}; take"):
        methods.get(name, n_bits=n_bits).fit(rng.standard_normal(shape))


@pytest.mark.parametrize("name", ["pcah", "itq"])
def test_bits_that_would_be_rounding_errors_are_refused(rng, name):
    flat = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 10)) + 100
    methods.get(name, n_bits=3).fit(flat)
    with pytest.raises(InputError, match="n_bits must be at most 3, the directions in which"):
        methods.get(name, n_bits=4).fit(flat)


@pytest.mark.parametrize("name", ["pcah", "itq"])
def test_rows_that_do_not_vary_are_refused(name):
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get(name, n_bits=2).fit(np.full((9, 3), 0.1))
    with pytest.raises(InputError, match="X must have at least 2 rows"):
        methods.get(name, n_bits=1).fit([[1.0, 2.0]])
