"""Directions of rows: as many as the rows vary in."""

import numpy as np
import pytest

from rankbits.methods.shallow.shared.principal import span_rows


@pytest.mark.parametrize(("n", "d"), [(20, 90), (90, 20)])
def test_coordinates_are_as_many_as_directions_in_which_rows_vary(rng, n, d):
    x = rng.standard_normal((n, 7)) @ rng.standard_normal((7, d))
    parts, basis = span_rows(x)
    assert parts.shape == (n, 7)
    np.testing.assert_allclose(parts @ basis.T, x, atol=1e-9)
    np.testing.assert_allclose(basis.T @ basis, np.eye(7), atol=1e-12)


def test_rows_that_span_their_space_have_their_own_coordinates(rng):
    x = rng.standard_normal((30, 4))
    parts, basis = span_rows(x)
    assert parts is x
    assert np.array_equal(basis, np.eye(4))
