"""LGAP and the use of the code space, against their definitions on unpacked bits."""

from collections import Counter
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import ranking
from rankbits import BinaryCodes, affinity, count_ties, metrics
from rankbits.histogram import largest_codes


def bit_rows(n_bits):
    return st.lists(st.tuples(*[st.integers(0, 1)] * n_bits), min_size=1, max_size=12)


@given(bit_rows(4), bit_rows(4), st.integers(0, 4), st.randoms(use_true_random=False))
def test_lgap_equals_its_definition(queries, database, radius, random):
    query_labels = [random.randrange(2) for _ in queries]
    labels = [random.randrange(2) for _ in database]
    codes = BinaryCodes.from_bits(queries), BinaryCodes.from_bits(database)
    values = metrics.lgap(*codes, affinity.classes(query_labels, labels), radius)
    expected = [
        ranking.lgap(query, database, [label == own_label for label in labels], radius)
        for query, own_label in zip(queries, query_labels, strict=True)
    ]
    assert values.tolist() == pytest.approx(expected, abs=1e-12)


@given(bit_rows(3).filter(lambda rows: len(rows) > 1), st.integers(0, 3), st.booleans())
def test_lgap_leaves_out_the_query_itself(rows, radius, shifted):
    """Shifted: the own item has another code than the query."""
    labels = [sum(row) % 2 for row in rows]
    own = np.roll(np.arange(len(rows)), 1) if shifted else np.arange(len(rows))
    codes = BinaryCodes.from_bits(rows)
    same = affinity.classes(labels, labels)
    values = metrics.lgap(codes, codes, same, radius, exclude_self=own if shifted else True)
    for query, item in enumerate(own):
        others = [i for i in range(len(rows)) if i != item]
        relevant = [labels[i] == labels[query] for i in others]
        expected = ranking.lgap(rows[query], [rows[i] for i in others], relevant, radius)
        assert values[query] == pytest.approx(expected, abs=1e-12)


def test_lgap_of_long_codes_does_not_overflow(rng):
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (5, 4096)))
    same = affinity.classes([0] * 5, [0] * 5)
    values = metrics.lgap(codes, codes, same, radius=4096)
    assert values.tolist() == pytest.approx([1.0 / 4097] * 5, rel=1e-3)


def test_lgap_from_counts_is_lgap(rng):
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (40, 5)))
    labels = rng.integers(0, 3, 40)
    same = affinity.classes(labels, labels)
    h, largest = count_ties(codes, codes, same), largest_codes(codes, codes)
    values = metrics.lgap_from_counts(h, largest, 3)
    assert values.tolist() == metrics.lgap(codes, codes, same, 3).tolist()


@given(bit_rows(5))
def test_code_use_equals_plain_counting(rows):
    use = metrics.code_use(BinaryCodes.from_bits(rows))
    counts, n = Counter(rows), len(rows)
    assert (use.n_items, use.n_distinct) == (n, len(counts))
    assert use.share_of_space == len(counts) / 32
    assert use.collision_rate == pytest.approx(sum(c for c in counts.values() if c > 1) / n)
    assert use.entropy_bits == pytest.approx(
        -sum(c / n * log2(c / n) for c in counts.values()), abs=1e-12
    )
    assert use.bit_balance.tolist() == pytest.approx(np.mean(rows, axis=0))
    if n > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = np.nan_to_num(np.corrcoef(np.array(rows, float), rowvar=False))
        np.testing.assert_allclose(use.bit_correlation, expected, atol=1e-12)


def test_code_use_of_one_code_is_silent_and_complete():
    use = metrics.code_use(BinaryCodes.from_bits(np.ones((7, 2000))))
    assert (use.entropy_bits, use.collision_rate, use.share_of_space) == (0.0, 1.0, 0.0)
    assert not use.bit_correlation.any()


def test_code_use_goes_by_in_blocks(rng, monkeypatch):
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (300, 10)))
    whole = metrics.code_use(codes).to_dict()
    monkeypatch.setattr("rankbits.metrics._code_use._CELLS", 70)
    assert metrics.code_use(codes).to_dict() == whole
    assert list(whole) == [
        "n_items",
        "n_distinct",
        "share_of_space",
        "collision_rate",
        "entropy_bits",
        "bit_balance",
        "bit_correlation",
    ]


@pytest.mark.parametrize("n_bits", [1, 9])
def test_independent_bits_correlate_little(rng, n_bits):
    use = metrics.code_use(BinaryCodes.from_bits(rng.integers(0, 2, (20_000, n_bits))))
    np.testing.assert_allclose(use.bit_correlation, np.eye(n_bits), atol=0.04)
    np.testing.assert_allclose(use.bit_balance, 0.5, atol=0.02)
