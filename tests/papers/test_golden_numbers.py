"""Numbers printed in the papers, and relations that their figures show."""

import numpy as np
import pytest

from rankbits import BinaryCodes, affinity, count_ties, metrics


def test_ten_tied_items_five_relevant_range_from_0_3544_to_1():
    """Ding et al., mLGAP, Fig. 2: one code for all, so the order of items decides."""
    codes = BinaryCodes.from_bits(np.zeros((11, 4)))
    same = affinity.classes([1], [1] * 5 + [0] * 5)
    h = count_ties(codes[:1], codes[1:], same)
    (worst,), (best,) = metrics.average_precision_bounds(h)
    assert round(worst, 4) == 0.3544
    assert best == 1.0
    assert metrics.average_precision(h)[0] == pytest.approx(
        0.5 + (0.5 - 4 / 9) * (2.9289683 - 1), abs=1e-6
    )


def test_lgap_at_2_with_4_bits_is_0_5424():
    """Ding et al., mLGAP, Eq. 12-15: balls of 1, 6 and 10 items with 1, 4 and 5 relevant."""
    near = [("0000", 1)]
    ring_1 = [("1000", 1), ("1000", 1), ("0100", 1), ("0100", 0), ("0010", 0)]
    ring_2 = [("1100", 1), ("1100", 0), ("0011", 0), ("0110", 0)]
    items = near + ring_1 + ring_2
    bits = [[int(bit) for bit in code] for code, _ in items]
    database, query = BinaryCodes.from_bits(bits), BinaryCodes.from_bits([[0, 0, 0, 0]])
    same = affinity.classes([1], [label for _, label in items])
    h = count_ties(query, database, same)
    assert h.items.cumsum(axis=1)[0, :3].tolist() == [1, 6, 10]
    assert h.positives.cumsum(axis=1)[0, :3].tolist() == [1, 4, 5]
    assert round(metrics.lgap(query, database, same, radius=2)[0], 4) == 0.5424


def test_expected_ap_lies_between_the_bounds_and_agrees_with_a_random_order(rng):
    """He et al., TALR: 0.762 < 0.800 < 0.827 on CIFAR-10, and 0.799 for a random tie order."""
    n_classes, n_bits, n_items, n_queries = 10, 16, 4000, 60
    centres = rng.integers(0, 2, (n_classes, n_bits))
    labels = rng.integers(0, n_classes, n_items)
    bits = centres[labels] ^ (rng.random((n_items, n_bits)) < 0.18)
    codes = BinaryCodes.from_bits(bits)
    same = affinity.classes(labels[:n_queries], labels)
    h = count_ties(codes[:n_queries], codes, same)
    expected = metrics.average_precision(h)
    worst, best = metrics.average_precision_bounds(h)
    assert (worst < expected).all()
    assert (expected < best).all()
    assert best.mean() - worst.mean() > 0.02
    order = rng.permutation(n_items)
    distance = (bits[:n_queries, None] != bits[None, order]).sum(axis=2)
    hits = labels[:n_queries, None] == labels[order][distance.argsort(axis=1, kind="stable")]
    precise = hits.cumsum(axis=1) / np.arange(1, n_items + 1)
    drawn = (precise * hits).sum(axis=1) / hits.sum(axis=1)
    assert expected.mean() == pytest.approx(drawn.mean(), abs=0.003)
