"""One clear sentence for every argument that cannot be used."""

import numpy as np
import pytest

from rankbits import BinaryCodes, TieHistogram, affinity, metrics
from rankbits.errors import InputError

H = TieHistogram(np.array([[[1, 1], [0, 1]]]), np.array([0, 1]))
CODES = BinaryCodes.from_bits([[0, 1], [1, 1]])
SAME = affinity.classes([0, 1], [0, 1])


def levels(*values, count=1):
    counts = np.full((1, 2, len(values)), count)
    return TieHistogram(counts, np.array(values))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.average_precision(H, 0), "k must be an integer >= 1, got 0"),
        (lambda: metrics.average_precision(H, 2.0), "k must be an integer >= 1"),
        (lambda: metrics.average_precision(H, True), "k must be an integer >= 1"),
        (lambda: metrics.average_precision_bounds(H, -3), "k must be an integer >= 1, got -3"),
        (lambda: metrics.average_precision(H, 1, "mean"), "normalise must be one of retrieved"),
        (lambda: metrics.average_precision(H.counts), "h must be a TieHistogram, got int64"),
        (lambda: metrics.ndcg(H, gain="exponential"), "gain must be one of exp, linear"),
        (lambda: metrics.ndcg(H, discount="ln"), "discount must be one of log2, rsh"),
        (lambda: metrics.ndcg_bounds(H, 0), "k must be an integer >= 1"),
        (lambda: metrics.ndcg(levels(0, 1024)), "levels must be at most 1023 .* got 1024"),
        (lambda: metrics.ndcg(levels(0, 1023, count=9)), "levels up to 1023 are too large"),
        (lambda: metrics.precision(H), "exactly one of k and radius"),
        (lambda: metrics.recall(H, k=1, radius=1), "exactly one of k and radius"),
        (lambda: metrics.f1(H, k=0), "k must be"),
        (lambda: metrics.precision(H, radius=2), "radius must be an integer from 0 to 1, got 2"),
        (lambda: metrics.cumulative_gain(H, -1), "radius must be an integer from 0 to 1, got -1"),
        (lambda: metrics.empty_balls(H, 1.5), "radius must be an integer"),
        (lambda: metrics.hit_rate(H, 0), "k must be an integer >= 1"),
        (lambda: metrics.hit_rate(H, None), "k must be an integer >= 1"),
        (lambda: metrics.reciprocal_rank(None), "h must be a TieHistogram"),
        (lambda: metrics.reciprocal_rank(H, 0), "k must be an integer >= 1, got 0"),
        (lambda: metrics.precision_recall_by_rank(H, []), "ranks must be a list of integers >= 1"),
        (lambda: metrics.recall_curve(H, [1, 0]), "ranks must be a list of integers >= 1"),
        (lambda: metrics.precision_curve(H, 5), "ranks must be a list of integers >= 1"),
        (lambda: metrics.lgap(CODES, CODES, SAME, radius=3), "radius must be .* from 0 to 2"),
        (lambda: metrics.lgap_from_counts(H, np.zeros((1, 3)), 1), "largest must have shape"),
        (lambda: metrics.code_use(CODES.packed), r"got uint8 .*BinaryCodes\(packed, n_bits\)"),
        (lambda: metrics.code_use(CODES[:0]), "database must not be empty"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_huge_levels_are_exact_while_they_fit():
    h = levels(0, 1, 1021)
    assert np.isfinite(metrics.ndcg(h)).all()
    values = metrics.ndcg(levels(0, 2**62), gain="linear")
    assert values[0] == pytest.approx(metrics.ndcg(levels(0, 1))[0], rel=1e-15)
