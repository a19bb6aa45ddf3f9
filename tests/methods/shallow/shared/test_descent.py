"""Bits by descent: margins, minima and decoders against E by its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits.methods.shallow.shared.descent import (
    ALONG,
    descend,
    fit_planes,
    learn_decoder,
    regress_codes,
)
from rankbits.methods.shallow.shared.units import scale_to_units


def error(row, mean, planes, code):
    """E by its definition, for one row."""
    off = row - mean - planes @ code
    return off @ off + ALONG * (row @ off) ** 2


def all_codes(n_bits):
    return np.array(np.meshgrid(*[[-1.0, 1.0]] * n_bits)).reshape(n_bits, -1).T


def problem(seed, n=12, n_features=5, n_bits=6):
    rng = np.random.default_rng(seed)
    rows = scale_to_units(rng.standard_normal((n, n_features)) + 0.4)
    planes = 0.4 * rng.standard_normal((n_features, n_bits))
    codes = np.where(rng.random((n, n_bits)) > 0.5, 1.0, -1.0)
    return rows, rows.mean(axis=0), planes, codes


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_turning_a_bit_adds_four_times_its_margin(seed, n_sweeps):
    rows, mean, planes, start = problem(seed)
    codes, margins = descend(rows, mean, planes, start, n_sweeps)
    for row, code, of_row in zip(rows, codes, margins, strict=True):
        for k in range(len(code)):
            turned = code.copy()
            turned[k] *= -1
            added = error(row, mean, planes, turned) - error(row, mean, planes, code)
            assert added == pytest.approx(4 * code[k] * of_row[k], abs=1e-10)


@given(st.integers(0, 10_000))
def test_a_sweep_never_raises_the_error_and_the_last_one_ends_where_no_bit_lowers_it(seed):
    rows, mean, planes, codes = problem(seed)
    before = [error(row, mean, planes, code) for row, code in zip(rows, codes, strict=True)]
    for _ in range(3):
        codes, _ = descend(rows, mean, planes, codes, 1)
        after = [error(row, mean, planes, code) for row, code in zip(rows, codes, strict=True)]
        assert (np.array(after) <= np.array(before) + 1e-12).all()
        before = after
    codes, margins = descend(rows, mean, planes, codes, 200)
    assert (codes * margins >= 0).all()


def test_planes_at_right_angles_to_each_other_and_to_the_row_leave_nothing_better(rng):
    """Bits do not interact then, so a sweep finds the best of all codes."""
    row = np.array([[0.0, 0.0, 0.0, 1.0]])
    planes, mean = np.diag([0.5, 0.2, 0.1, 0.0])[:, :3], np.array([0.3, -0.1, 0.0, 0.0])
    codes, _ = descend(row, mean, planes, np.ones((1, 3)), 1)
    best = min(all_codes(3), key=lambda code: error(row[0], mean, planes, code))
    assert error(row[0], mean, planes, codes[0]) == pytest.approx(error(row[0], mean, planes, best))


def test_the_decoder_is_the_least_squares_solution_of_all_equations(rng):
    """One equation a number of r, one for x'r times the root of eta, one a ridged entry."""
    rows, mean, _, codes = problem(3, n=40)
    n_features, n_bits = rows.shape[1], codes.shape[1]
    left, right = [np.eye(n_features * n_bits)], [np.zeros(n_features * n_bits)]
    for row, code in zip(rows, codes, strict=True):
        decoded = np.kron(np.eye(n_features), code)  # U code, of U's entries row by row
        left += [decoded, np.sqrt(ALONG) * (row @ decoded)[None]]
        right += [row - mean, [np.sqrt(ALONG) * row @ (row - mean)]]
    expected = np.linalg.lstsq(np.concatenate(left), np.concatenate(right), rcond=None)[0]
    planes = fit_planes(rows, mean, codes)
    np.testing.assert_allclose(planes.ravel(), expected, atol=1e-6)


def test_turns_lower_the_error_of_the_first_codes(rng):
    rows = scale_to_units(rng.standard_normal((300, 10)) * np.arange(1, 11))
    first = np.where(rows @ rng.standard_normal((10, 16)) > 0, 1.0, -1.0)

    def mean_error(planes, codes):
        pairs = zip(rows, codes, strict=True)
        return np.mean([error(row, rows.mean(axis=0), planes, code) for row, code in pairs])

    decoder = learn_decoder(rows, first)
    start = np.where(rows @ decoder.start_planes + decoder.start_offsets > 0, 1.0, -1.0)
    codes, _ = descend(rows, decoder.mean, decoder.planes, start, 4)
    before = mean_error(fit_planes(rows, rows.mean(axis=0), first), first)
    assert mean_error(decoder.planes, codes) < 0.8 * before


def test_codes_that_are_linear_in_the_rows_are_regressed_exactly(rng):
    rows = rng.standard_normal((200, 4))
    planes, offsets = rng.standard_normal((4, 3)), np.array([1.0, -2.0, 0.5])
    start_planes, start_offsets = regress_codes(rows, rows @ planes + offsets)
    np.testing.assert_allclose(start_planes, planes, atol=1e-3)
    np.testing.assert_allclose(start_offsets, offsets, atol=1e-3)
