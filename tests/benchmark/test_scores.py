"""The scores of the TALR authors' code, against that code's steps written out."""

import numpy as np
import pytest

from rankbits import BinaryCodes, TieHistogram, affinity, metrics
from rankbits.benchmark._scores import checked_metrics, ndcg_of_bytes, scores
from rankbits.errors import InputError

RNG = np.random.default_rng(5)
QUERIES = BinaryCodes.from_bits(RNG.integers(0, 2, (6, 5)))
ITEMS = BinaryCodes.from_bits(RNG.integers(0, 2, (40, 5)))
LEVELS = RNG.choice([0, 0, 1, 2, 5, 7, 10], (6, 40))
LEVELS[4] = 0  # nothing is relevant to this query


def saturated(values):
    """8-bit integers that stop at their ends instead of wrapping, as the authors' language has."""
    return np.clip(values, -128, 127)


def by_hand(query):
    """DCG over the ideal, item by item: an item gets the mean discount of its tie's ranks."""
    apart = (QUERIES.bits()[query] != ITEMS.bits()).sum(axis=1)
    gains = saturated(saturated(2.0 ** LEVELS[query]) - 1)
    discount = 1 / np.log2(np.arange(1, 41) + 1)
    dcg = 0.0
    for distance in range(6):
        tie = apart == distance
        first = (apart < distance).sum()
        if tie.any():
            dcg += gains[tie].sum() * discount[first : first + tie.sum()].mean()
    ideal = (np.sort(gains)[::-1] * discount).sum()
    return dcg / ideal if ideal else np.nan


def test_gains_stop_at_126_and_an_empty_query_counts_1_or_is_left_out():
    wanted = np.array([by_hand(query) for query in range(6)])
    names = ("nDCG", "nDCG(8-bit)", "nDCG(released)")
    found = scores(QUERIES, ITEMS, affinity.levels(LEVELS), names)
    assert list(found) == list(names)
    assert found["nDCG(8-bit)"]["mean"] == pytest.approx(np.nanmean(wanted), abs=1e-12)
    assert (found["nDCG(8-bit)"]["queries"], found["nDCG(8-bit)"]["skipped"]) == (5, 1)
    assert found["nDCG(released)"]["mean"] == pytest.approx(
        np.nan_to_num(wanted, nan=1.0).mean(), abs=1e-12
    )
    assert (found["nDCG(released)"]["queries"], found["nDCG(released)"]["skipped"]) == (6, 0)
    assert found["nDCG"]["skipped"] == 1
    assert abs(found["nDCG"]["mean"] - found["nDCG(8-bit)"]["mean"]) > 0.01


def test_levels_up_to_6_are_scored_as_usual():
    counts = RNG.integers(0, 5, (8, 9, 7))
    hist = TieHistogram(counts, np.arange(7))
    np.testing.assert_allclose(ndcg_of_bytes(hist), metrics.ndcg(hist), rtol=1e-14)


def test_the_released_score_alone_and_beside_another_metric():
    relation = affinity.levels(LEVELS)
    alone = scores(QUERIES, ITEMS, relation, ("nDCG(released)",))
    beside = scores(QUERIES, ITEMS, relation, ("P@3", "nDCG(released)"))
    assert list(alone) == ["nDCG(released)"]
    assert alone["nDCG(released)"] == beside["nDCG(released)"]
    assert "8-bit" in alone["nDCG(released)"]["conventions"]["gain"]


def test_unknown_metrics_and_data_without_anything_relevant_are_refused():
    assert checked_metrics(("AP", "nDCG(8-bit)", "AP")) == ("AP", "nDCG(8-bit)")
    with pytest.raises(InputError, match="unknown metric 'mAP'"):
        checked_metrics(("nDCG(8-bit)", "mAP"))
    nothing = affinity.levels(np.zeros((6, 40), int))
    with pytest.raises(InputError, match="AP has no value: nothing is relevant"):
        scores(QUERIES, ITEMS, nothing, ("AP",))
