"""Sums over runs of ranks keep their digits at any rank."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import harmonic, li, log, mp, mpf

from rankbits.metrics._sums.discount import discount_spans
from rankbits.metrics._sums.harmonic import span, span_and_ramp

RUNS = [(0, 1), (0, 31), (0, 40), (3, 2), (30, 2), (31, 1), (31, 2), (32, 1), (33, 2), (60, 7)]
FAR_RUNS = [(10**7, 1), (10**7, 2), (10**7, 999), (10**9, 3), (10**12, 2)]
LONG_RUNS = [(0, 10**7), (100, 9), (100, 11), (100, 10**6), (10**7, 10**6 - 7), (10**7, 10**8)]


def exact_span(N, n):
    if n <= 2000:
        return float(sum(Fraction(1, N + j) for j in range(1, n + 1)))
    with mp.workdps(60):
        return float(harmonic(N + n) - harmonic(N))


def exact_ramp(N, n):
    if n <= 2000:
        return float(sum(Fraction(j - 1, N + j) for j in range(1, n + 1)))
    with mp.workdps(60):
        return float(n - (N + 1) * (harmonic(N + n) - harmonic(N)))


@pytest.mark.parametrize(("N", "n"), RUNS + FAR_RUNS + LONG_RUNS)
def test_span_and_ramp_equal_exact_sums(N, n):
    (spans,), (ramps,) = span_and_ramp(np.array([float(N)]), np.array([float(n)]))
    assert spans == pytest.approx(exact_span(N, n), rel=1e-13, abs=0.0)
    assert ramps == pytest.approx(exact_ramp(N, n), rel=1e-12, abs=1e-13 * spans)


@given(st.integers(0, 10**9), st.integers(0, 300))
def test_a_span_splits_anywhere(N, n):
    N, cut, n = float(N), float(n // 3), float(n)
    parts = span(np.array([N, N + cut]), np.array([cut, n - cut])).sum()
    assert parts == pytest.approx(span(np.array([N]), np.array([n]))[0], rel=1e-13, abs=0.0)


@pytest.mark.parametrize("start", [0, 1, 2, 100, 4095, 4096, 5000, 2**20 - 3, 2**20, 10**7, 10**9])
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_discount_spans_equal_a_plain_sum(start, n):
    with mp.workdps(30):
        ranks = range(start + 1, start + n + 1)
        log2 = float(sum(log(2) / log(rank + 1) for rank in ranks))
        rsh = float(sum(log(2) / log(max(rank, 2)) for rank in ranks))
    edges = np.array([start, start + n])
    assert discount_spans(edges, "log2")[0] == pytest.approx(log2, rel=1e-12, abs=0.0)
    assert discount_spans(edges, "rsh")[0] == pytest.approx(rsh, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("stop", [2**21, 10**8, 10**10])
def test_a_long_run_of_discounts_equals_the_logarithmic_integral(stop):
    start = 2**20 + 5
    with mp.workdps(40):
        low, high = mpf(start) + 1.5, mpf(stop) + 1.5
        slopes = 1 / (low * log(low) ** 2) - 1 / (high * log(high) ** 2)
        expected = float(log(2) * (li(high) - li(low) - slopes / 24))
    assert discount_spans(np.array([start, stop]), "log2")[0] == pytest.approx(
        expected, rel=1e-14, abs=0.0
    )


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3 * 10**6), min_size=3, max_size=6))
def test_runs_of_discounts_add(edges):
    edges = np.sort(np.array(edges))
    for discount in ("log2", "rsh"):
        whole = discount_spans(edges[[0, -1]], discount)[0]
        assert discount_spans(edges, discount).sum() == pytest.approx(whole, rel=1e-12, abs=0.0)
