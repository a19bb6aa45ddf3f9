"""Relative error stays far below 1e-9 with 10^7 items ranked before the first positive."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp as mp_exp
from mpmath import harmonic, loggamma, mp, mpf
from mpmath import log as mp_log

from rankbits import TieHistogram, metrics

FAR = 10**7


def two_ties(near, far):
    """One query; each tie given as (irrelevant, positive)."""
    return TieHistogram(np.array([[near, far]]), np.array([0, 1]))


def exact_tie(N, P, n, p, m=None):
    """Expected sum of precisions within m places, with harmonic numbers of 60 digits."""
    with mp.workdps(60):
        m = n if m is None else m
        span = harmonic(N + m) - harmonic(N)
        rho = mpf(p - 1) / max(n - 1, 1)
        return mpf(p) / n * ((P + 1 - rho * (N + 1)) * span + rho * m)


@pytest.mark.parametrize(
    ("n", "p"), [(1, 1), (2, 1), (2, 2), (3, 2), (1000, 1), (1000, 999), (10**6, 10**6), (FAR, 2)]
)
def test_average_precision_behind_ten_million_items(n, p):
    h = two_ties((FAR, 0), (n - p, p))
    expected = float(exact_tie(FAR, 0, n, p) / p)
    assert metrics.average_precision(h)[0] == pytest.approx(expected, rel=1e-12, abs=0.0)
    worst, best = metrics.average_precision_bounds(h)
    with mp.workdps(60):
        top = p - FAR * (harmonic(FAR + p) - harmonic(FAR))
        last = FAR + n - p
        bottom = p - last * (harmonic(last + p) - harmonic(last))
    assert best[0] == pytest.approx(float(top / p), rel=1e-12, abs=0.0)
    assert worst[0] == pytest.approx(float(bottom / p), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("discount", ["log2", "rsh"])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_ndcg_behind_ten_million_items(n, discount):
    h = two_ties((FAR, 0), (n - 1, 1))
    with mp.workdps(30):
        shift = 1 if discount == "log2" else 0
        ranks = range(FAR + 1 + shift, FAR + n + 1 + shift)
        expected = float(sum(mp_log(2) / mp_log(rank) for rank in ranks) / n)
    assert metrics.ndcg(h, discount=discount)[0] == pytest.approx(expected, rel=1e-12, abs=0.0)


def weights(n, p, m, reach=4000):
    """Hypergeometric chances, as (r, w) pairs around the mean, in 50 digits."""
    middle = m * p // n
    first, last = max(0, m - (n - p), middle - reach), min(m, p, middle + reach)

    def log_comb(a, b):
        return loggamma(a + 1) - loggamma(b + 1) - loggamma(a - b + 1)

    w = mp_exp(log_comb(p, first) + log_comb(n - p, m - first) - log_comb(n, m))
    for r in range(first, last + 1):
        yield r, w
        w *= mpf((p - r) * (m - r)) / ((r + 1) * (n - p - m + r + 1))


@pytest.mark.parametrize(
    ("near", "n", "p", "m"),
    [
        ((0, 0), 10**6, 3 * 10**5, 4 * 10**5),
        ((FAR, 0), 10**6, 10**5, 500_000),
        ((5, 3), 10**6, 2, 10),
        ((1000, 7), 10**6, 999_999, 10**6 - 1),
        ((0, 0), 10**6, 10, 999_000),
        ((FAR, 1), 10**6, 1000, 1),
    ],
)
def test_average_precision_cut_inside_a_tie_of_a_million(near, n, p, m):
    (misses, P), h = near, two_ties(near, (n - p, p))
    N = misses + P
    with mp.workdps(50):
        above = exact_tie(0, 0, N, P) if P else mpf(0)
        span = harmonic(N + m) - harmonic(N)
        ramp = m - (N + 1) * span
        retrieved = mpf(0)
        for r, w in weights(n, p, m):
            tie = mpf(r) / m * ((P + 1) * span + mpf(r - 1) / max(m - 1, 1) * ramp)
            retrieved += w * (above + tie) / max(P + r, 1)
        total = (above + exact_tie(N, P, n, p, m)) / (P + p)
    assert metrics.average_precision(h, N + m)[0] == pytest.approx(
        float(retrieved), rel=1e-11, abs=0.0
    )
    assert metrics.average_precision(h, N + m, "total")[0] == pytest.approx(
        float(total), rel=1e-12, abs=0.0
    )


@pytest.mark.parametrize(
    ("n", "p", "m"), [(10**6, 3, 7), (10**6, 1000, 1000), (10**6, 1, 10**6 - 1), (5000, 4000, 900)]
)
def test_hit_rate_inside_a_large_tie(n, p, m):
    expected = 1 - Fraction(comb(n - p, m), comb(n, m))
    assert metrics.hit_rate(two_ties((9, 0), (n - p, p)), 9 + m)[0] == pytest.approx(
        float(expected), rel=1e-13, abs=0.0
    )


def exact_reciprocal_rank(n, p, N):
    """From one positive to p of them: multiply C(n - j, p - 2) by (n - j - p + 2) / (p - 1)."""
    with mp.workdps(50 + 6 * p):
        values = (harmonic(N + n) - harmonic(N)) / n
        for q in range(2, p + 1):
            values = mpf(q) / ((q - 1) * (n - q + 1)) * ((N + n - q + 2) * values - 1)
        return float(values)


@pytest.mark.parametrize("N", [0, 50, FAR])
@pytest.mark.parametrize(
    ("n", "p"),
    [(n, p) for n in (600, 2051, 2300, 20_000, 10**6, 10**9) for p in (1, 2, 3, 4, 16, 17, 100)],
)
def test_reciprocal_rank_in_a_large_tie(n, p, N):
    values = metrics.reciprocal_rank(two_ties((N, 0), (n - p, p)))
    assert values[0] == pytest.approx(exact_reciprocal_rank(n, p, N), rel=1e-12, abs=0.0)


def summed_reciprocal_rank(n, p, N, m):
    """The first m terms one by one, in 40 digits: w(j + 1) = w(j) (1 - (p - 1) / (n - j))."""
    with mp.workdps(40):
        weight, total = mpf(p) / n, mpf(0)
        for j in range(1, min(m, n - p + 1) + 1):
            total += weight / (N + j)
            weight *= 1 - mpf(p - 1) / max(n - j, 1)
        return float(total)


@pytest.mark.parametrize("N", [0, 50, FAR])
@pytest.mark.parametrize("m", [1, 700, 2047, 2048, 2049, 2100, 9000])
@pytest.mark.parametrize(
    ("n", "p"), [(2300, 3), (10**6, 1), (10**6, 2), (10**6, 3), (10**6, 16), (10**9, 17)]
)
def test_reciprocal_rank_cut_inside_a_large_tie(n, p, N, m):
    value = metrics.reciprocal_rank(two_ties((N, 0), (n - p, p)), N + m)
    expected = summed_reciprocal_rank(n, p, N, m)
    assert value[0] == pytest.approx(expected, rel=1e-12, abs=0.0)


COUNTS = st.integers(0, 3) | st.integers(0, 2000) | st.integers(0, 10**7)


@settings(max_examples=200)
@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=2, max_size=5), st.data())
def test_worst_expected_and_best_are_in_order(ties, data):
    h = TieHistogram(np.array([ties]), np.array([0, 1, 3]))
    total = int(h.counts.sum())
    k = data.draw(st.none() | st.integers(1, max(total, 1) + 5))
    cases = [
        (metrics.average_precision_bounds(h, k, n), metrics.average_precision(h, k, n))
        for n in ("retrieved", "min", "total")
    ]
    cases += [
        (metrics.ndcg_bounds(h, k, g, d), metrics.ndcg(h, k, g, d))
        for g in ("exp", "linear")
        for d in ("log2", "rsh")
    ]
    for (worst, best), expected in cases:
        if h.positives.sum() == 0:
            assert np.isnan([worst, expected, best]).all()
            continue
        assert worst <= expected * (1 + 1e-12)
        assert expected <= best * (1 + 1e-12)
        assert 0 <= worst <= best * (1 + 1e-12) <= 1 + 1e-11
