"""Queries as rows of their own: levels, batches and scores against plain loops."""

import numpy as np
import pytest
import torch
from torch import nn

import rankbits
from rankbits import affinity, objectives
from rankbits.errors import InputError
from rankbits.methods.query_log import read_query_log
from rankbits.methods.training.batches import build_log_sampler
from rankbits.methods.training.validation import HardScore

N_QUERIES, N_ITEMS = 23, 70


@pytest.fixture
def triples():
    rng = np.random.default_rng(1)
    pairs = rng.choice(N_QUERIES * N_ITEMS, 90, replace=False)
    return np.column_stack([pairs // N_ITEMS, pairs % N_ITEMS, rng.integers(1, 4, 90)])


@pytest.fixture
def log(triples):
    return read_query_log(affinity.judgements(triples, N_QUERIES, N_ITEMS), N_QUERIES, N_ITEMS)


def level_table(triples):
    table = np.zeros((N_QUERIES, N_ITEMS), int)
    for query, item, level in triples:
        table[query, item] = level
    return table


def test_levels_are_those_of_the_judgements_whichever_queries_are_taken(log, triples):
    table, rng = level_table(triples), np.random.default_rng(2)
    some = rng.permutation(N_QUERIES)[:9]
    queries, items = rng.integers(0, 9, 5), rng.permutation(N_ITEMS)[:31]
    assert np.array_equal(log.levels(some, items), table[np.ix_(some, items)])
    assert np.array_equal(
        log.take(some).levels(queries, items), table[np.ix_(some[queries], items)]
    )
    assert log.density() == pytest.approx((table > 0).mean())


def test_positives_are_the_items_with_a_level(log, triples):
    table = level_table(triples)
    offsets, items = log.positives()
    for query in range(N_QUERIES):
        relevant = items[offsets[query] : offsets[query + 1]]
        assert relevant.tolist() == np.flatnonzero(table[query]).tolist()
    offsets, items = log.positives(most=2)
    assert np.diff(offsets).tolist() == np.minimum((table > 0).sum(1), 2).tolist()


@pytest.mark.parametrize("name", ["plain", "anchors"])
def test_an_epoch_has_every_query_once_and_no_item_twice_in_a_step(log, triples, name):
    table = level_table(triples)
    steps = build_log_sampler(name, log, 24)(np.random.default_rng(0))
    queries = np.concatenate([step.queries for step in steps])
    has_positive = (table > 0).any(1)
    expected = np.flatnonzero(has_positive) if name == "anchors" else np.arange(N_QUERIES)
    assert sorted(queries) == expected.tolist()
    for step in steps:
        assert not step.are_same
        assert len(step.queries) <= 6
        assert len(np.unique(step.items)) == len(step.items) == 24
        if name == "anchors":
            assert (table[np.ix_(step.queries, step.items)] > 0).any(1).all()


def test_held_out_queries_are_scored_against_all_items(log, triples):
    rng = np.random.default_rng(4)
    items, queries = (torch.from_numpy(rng.standard_normal((n, 8))) for n in (N_ITEMS, N_QUERIES))
    held_out = np.array([2, 3, 7, 11, 20])
    score = HardScore(items, log, held_out, objectives.relaxed_ap, query_inputs=queries)
    codes = [rankbits.BinaryCodes.from_logits(rows.numpy()) for rows in (queries[held_out], items)]
    relation = affinity.levels(level_table(triples)[held_out])
    expected = rankbits.evaluate(*codes, relation).mean["AP"]
    assert score(nn.Identity()) == pytest.approx(expected, abs=1e-6)


def test_one_level_for_all_pairs_says_nothing():
    everything = affinity.levels(np.ones((3, 4), int))
    with pytest.raises(InputError, match="one level for all pairs"):
        read_query_log(everything, 3, 4)
