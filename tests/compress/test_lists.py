"""Lists and pools against brute force: sort everything, look at the first ten."""

import numpy as np
import pytest

from compressing import task_of
from rankbits import evaluate, methods
from rankbits.compress._lists import (
    ends_inside,
    pools_of,
    rerank,
    score_lists,
    without_own,
)
from rankbits.compress._measuring import Exam, score_kind
from rankbits.compress._searching import build_search


def overlap_by_sorting(task, scores, pool):
    """Share of the float top 10 among the first ten of a pool that is put in order by cosine."""
    units = task.items / np.linalg.norm(task.items, axis=1, keepdims=True)
    queries = task.queries / np.linalg.norm(task.queries, axis=1, keepdims=True)
    shares = []
    for query, row in zip(queries, scores, strict=True):
        cosines = units.astype(np.float64) @ query.astype(np.float64)
        order = np.argsort(-row, kind="stable")
        order = order if pool is None else sorted(order[:pool], key=lambda i: -cosines[i])
        shares.append(np.isin(np.argsort(-cosines)[:10], order[:10]).mean())
    return np.array(shares)


@pytest.mark.parametrize("kind", ["real", "bits"])
def test_every_pool_is_the_head_of_one_list_in_order_of_the_vectors(vectors, kind):
    task, truth = task_of(vectors)
    hasher = methods.get("itq", n_bits=32, random_state=0).fit(task.items)
    search = build_search(hasher, task.items, 1)
    values = score_kind(search, kind, Exam(task, truth, [20, 50], 1))
    signs = 2.0 * hasher.encode(task.items).bits() - 1
    weights = hasher.project_queries(task.queries)
    scores = (weights if kind == "real" else np.where(weights > 0, 1.0, -1.0)) @ signs.T
    for pool in (20, 50):
        expected = overlap_by_sorting(task, scores, pool)
        np.testing.assert_allclose(values[str(pool)]["overlap@10"], expected, atol=1e-12)
    if kind == "real":  # distances in bits have ties, which a sort would break
        expected = overlap_by_sorting(task, scores, None)
        np.testing.assert_allclose(values["none"]["overlap@10"], expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["real", "bits"])
def test_codes_without_re_ranking_are_scored_as_evaluate_scores_them(vectors, kind):
    """Codes of one byte: ties are longer than any list."""
    task, truth = task_of(vectors)
    hasher = methods.get("itq", n_bits=8, random_state=0).fit(task.items)
    search = build_search(hasher, task.items, 1)
    measured = score_kind(search, kind, Exam(task, truth, [20], 1))["none"]
    weights = hasher.project_queries(task.queries) if kind == "real" else None
    expected = evaluate(
        hasher.encode_queries(task.queries) if kind == "bits" else None,
        hasher.encode(task.items),
        truth.affinity,
        truth.metrics,
        query_weights=weights,
        reference=truth.nearest,
    ).per_query
    for name in truth.metrics:
        np.testing.assert_allclose(measured[name], expected[name], atol=1e-12)


def test_a_pool_of_all_items_scores_as_the_float_ranking(vectors):
    task, truth = task_of(vectors)
    hasher = methods.get("sign", n_bits=16).fit(task.items)
    search = build_search(hasher, task.items, 1)
    values = score_kind(search, "real", Exam(task, truth, [len(task.items)], 1))
    for name in truth.metrics:
        np.testing.assert_allclose(values[str(len(task.items))][name], truth.reference[name])


def test_a_held_out_item_does_not_find_itself(vectors):
    task, truth = task_of({**vectors, "queries": None})
    hasher = methods.get("itq", n_bits=32, random_state=0).fit(task.items)
    search = build_search(hasher, task.items, 1)
    values = score_kind(search, "real", Exam(task, truth, [599], 1))["599"]
    np.testing.assert_allclose(values["overlap@10"], truth.reference["overlap@10"])
    assert not (truth.nearest == task.own[:, None]).any()


def test_lists_lose_their_own_item_or_their_last():
    distances, ids = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]), np.array([[5, 6, 7], [1, 2, 3]])
    shorter, left = without_own(distances, ids, np.array([6, -1]))
    assert left.tolist() == [[5, 7], [1, 2]]
    assert shorter.tolist() == [[0.0, 2.0], [0.0, 1.0]]


def test_equal_distances_are_ordered_by_id():
    exact, ids = rerank(np.array([[2.0, 1.0, 1.0]]), np.array([[4, 9, 3]]), 3)
    assert ids.tolist() == [[3, 9, 4]]
    assert exact.tolist() == [[1.0, 1.0, 2.0]]


def test_a_tie_must_end_inside_a_list():
    assert ends_inside(np.array([[1.0, 2.0, 3.0]]), 2, n_items=9)
    assert not ends_inside(np.array([[1.0, 2.0, 2.0]]), 2, n_items=9)
    assert ends_inside(np.array([[1.0, 2.0, 2.0]]), 2, n_items=3)


def test_pools_lie_between_what_metrics_read_and_all_items():
    assert pools_of([10, 1000, 50, 50], depth=10, n_items=600) == [50]


def test_tied_items_count_in_expectation(vectors):
    """Two items at one distance, one of them relevant, at the last place: half of it."""
    task, truth = task_of(vectors)
    ids = np.tile(np.arange(11), (len(task.queries), 1))
    distances = np.tile(np.r_[np.arange(9.0), 9.0, 9.0], (len(task.queries), 1))
    ids[:, :10] = truth.nearest[:, :10]
    ids[:, 10] = [np.setdiff1d(np.arange(600), row)[0] for row in truth.nearest]
    values = score_lists(truth, distances, ids)
    np.testing.assert_allclose(values["overlap@10"], 0.95)
