"""Eigenvectors: the largest eigenvalues first, with signs that do not depend on the library."""

import numpy as np

from rankbits.methods.shallow.shared.eigenproblems import leading_eigenvectors


def test_eigenvectors_come_by_falling_eigenvalue_with_a_fixed_sign(rng):
    half = rng.standard_normal((9, 9))
    matrix = half + half.T
    vectors, values = leading_eigenvectors(matrix, 4)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-10)
    np.testing.assert_allclose(values, np.sort(np.linalg.eigvalsh(matrix))[::-1][:4])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)
    assert (np.take_along_axis(vectors, np.abs(vectors).argmax(0)[None], 0) > 0).all()
