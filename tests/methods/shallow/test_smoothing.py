"""Rows averaged with their neighbors."""

import numpy as np
import pytest

from rankbits.methods.shallow import smoothing
from rankbits.methods.shallow.smoothing import smooth_rows


def smooth_row_by_row(units, n_neighbors):
    """The definition, one row at a time."""
    rows = []
    for row in units:
        cosines = units @ row
        nearest = np.argsort(-cosines, kind="stable")[: n_neighbors + 1]
        total = sum(max(cosines[i], 0.0) ** 3 * units[i] for i in nearest)
        rows.append(total / np.linalg.norm(total))
    return np.array(rows)


@pytest.fixture
def units(rng):
    rows = rng.standard_normal((60, 5))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("n_neighbors", [1, 7, 59, 1000])
@pytest.mark.parametrize("block_bytes", [1, 1 << 26])
def test_rows_are_averaged_as_defined_whatever_the_blocks(
    monkeypatch, units, n_neighbors, block_bytes
):
    monkeypatch.setattr(smoothing, "_BLOCK_BYTES", block_bytes)
    expected = smooth_row_by_row(units, n_neighbors)
    np.testing.assert_allclose(smooth_rows(units, n_neighbors), expected, atol=1e-5)


def test_without_neighbors_rows_stay_as_they_are(units):
    assert smooth_rows(units, 0) is units
    assert smooth_rows(units[:1], 5).tolist() == units[:1].tolist()


def test_a_row_of_zeros_stays():
    assert smooth_rows(np.array([[0.0, 0.0], [1.0, 0.0]]), 1).tolist()[0] == [0.0, 0.0]
