"""What the RSH paper claims, on digits: lists teach better codes, and they are learned fast.

Wang et al., "Learning hash codes with listwise supervision", ICCV 2013, Fig. 2: NDCG of the Hamming
ranking is highest for RSH at every length; its conclusion: several tables should improve search.
Digits of a kind (round ones, straight ones, others) are weakly relevant to each other, as classes
of one superclass are in the paper.
"""

import time

import numpy as np
import pytest

from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.index import TablesIndex

KINDS = np.array([0, 1, 2, 2, 1, 2, 0, 1, 0, 0])


@pytest.fixture(scope="module")
def data():
    found = digits()
    tags = [
        np.hstack([np.eye(10)[y], np.eye(3)[KINDS[y]]]) for y in (found.query_y, found.database_y)
    ]
    return found, *tags


@pytest.mark.parametrize("n_bits", [8, 16, 24])
def test_ndcg_of_rsh_is_above_that_of_codes_that_learn_without_lists(data, n_bits):
    found, query_tags, tags = data
    levels = affinity.tags(query_tags, tags, graded=True)
    scores = {}
    for name in ("lsh", "pcah", "itq", "sign", "rsh"):
        hasher = methods.get(name, n_bits=n_bits)
        if name != "sign":
            hasher.set_params(random_state=0)
        hasher.fit(found.database_x[:600], tags[:600])
        codes = hasher.encode(found.query_x), hasher.encode(found.database_x)
        scores[name] = evaluate(*codes, levels, ["nDCG(rsh)"]).mean["nDCG(rsh)"]
    best = scores.pop("rsh")
    assert best > max(scores.values()) + 0.01


def test_four_tables_find_more_of_what_is_relevant_within_a_radius_and_rank_it_better(data):
    found, query_tags, tags = data
    hasher = methods.get("rsh", n_bits=16, n_tables=4, random_state=0)
    hasher.fit(found.database_x[:600], tags[:600])
    queries, database = map(hasher.encode_tables, (found.query_x, found.database_x))
    relevant = query_tags @ tags.T == 2
    recalls, precisions = [], []
    for n in (1, 4):
        index = TablesIndex(n_bits=16, n_tables=n)
        index.add(database[:n])
        near = index.within(queries[:n], radius=3)
        rows = np.repeat(np.arange(len(relevant)), np.diff(near.offsets))
        recalls.append(relevant[rows, near.ids].sum() / relevant.sum())
        _, ids = index.search(queries[:n], k=20)
        precisions.append(np.take_along_axis(relevant, ids, axis=1).mean())
    assert recalls[1] > recalls[0] + 0.1
    assert precisions[1] > precisions[0]


def test_a_fit_of_the_papers_size_takes_seconds_not_minutes(rng):
    rows, y = rng.standard_normal((1100, 512)), rng.integers(0, 20, 1100)
    rows[:, :20] += 2 * np.eye(20)[y]
    started = time.process_time()
    methods.get("rsh", n_bits=32, n_queries=100, random_state=0).fit(rows, y)
    assert time.process_time() - started < 10
