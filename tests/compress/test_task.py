"""What is told about queries and items, and what is done about it."""

import numpy as np
import pytest

from compressing import task_of
from rankbits.compress._task import prepare_task
from rankbits.compress._truth import float_levels


def prepared(items, queries=None, **relevance):
    names = ("judged", "query_labels", "item_labels")
    given = (relevance.get(name) for name in names)
    return prepare_task(items, queries, *given, "cosine", None, 0, None)


def test_items_that_ask_are_not_learned_from(vectors):
    task = prepared(vectors["items"])
    assert task.asked_by == "held-out items"
    np.testing.assert_array_equal(task.own, task.query_rows)
    assert not np.isin(task.training_rows(10_000, 0), task.own).any()
    assert len(task.training_rows(50, 0)) == 50
    assert "no queries were given" in task.notes[0]


def test_copies_among_queries_are_asked_once_and_told(vectors):
    queries = np.concatenate([vectors["queries"], vectors["queries"][:7]])
    task = prepared(vectors["items"], queries)
    assert len(task.queries) == len(vectors["queries"])
    assert "7 queries are copies of others; each is asked once" in task.notes


def test_a_query_that_is_an_item_does_not_rank_it(vectors):
    queries = np.concatenate([vectors["queries"], vectors["items"][[5, 9]]])
    task, truth = task_of({**vectors, "queries": queries})
    assert task.own[-2:].tolist() == [5, 9]
    assert (task.own[:-2] == -1).all()
    assert not (truth.nearest[-2:] == [[5], [9]]).any()
    assert any("2 queries are equal to an item" in note for note in task.notes)


def test_judged_queries_keep_their_items(vectors):
    queries = vectors["items"][:30]
    task = prepared(vectors["items"], queries, judged=[(row, row, 1) for row in range(30)])
    assert (task.own == -1).all()
    assert any("ranked as judged" in note for note in task.notes)


def test_queries_with_nothing_relevant_are_left_out_and_told(vectors):
    judged = [(query, query, 2) for query in range(5, 60)]
    task = prepared(vectors["items"], vectors["queries"], judged=judged)
    assert task.query_rows.tolist() == list(range(5, 60))
    assert task.relevance.judged[:, 0].tolist() == list(range(55))
    assert any("5 queries have nothing relevant" in note for note in task.notes)


def test_labels_of_items_are_those_of_the_items_that_ask(vectors):
    task = prepared(vectors["items"], item_labels=vectors["item_labels"])
    expected = vectors["item_labels"][task.query_rows]
    np.testing.assert_array_equal(task.relevance.labels[0], expected)


def test_many_queries_are_sampled_and_told():
    rng = np.random.default_rng(0)
    task = prepared(rng.standard_normal((300, 8)), rng.standard_normal((1200, 8)))
    assert len(task.queries) == 1000
    assert task.notes == ("1000 of 1200 queries ask, drawn at random",)


def test_zero_items_are_told(vectors):
    items = vectors["items"].copy()
    items[3] = 0
    assert "1 item is zero" in prepared(items, vectors["queries"]).notes[0]


def test_levels_follow_the_rank_in_the_float_ranking():
    levels = float_levels(np.arange(300)[None], 400).indices(slice(None), slice(None))[0]
    assert levels[[0, 9, 10, 49, 50, 199, 200, 399]].tolist() == [3, 3, 2, 2, 1, 1, 0, 0]


@pytest.mark.parametrize("part", [slice(0, 20), slice(30, 60)])
def test_a_part_of_the_queries_has_the_same_truth(vectors, part):
    labels = {name: vectors[name] for name in ("query_labels", "item_labels")}
    task, truth = task_of(vectors, **labels)
    rows = np.arange(60)[part]
    some = task.of_queries(rows)
    affinity = some.relevance.affinity(len(rows), 600)
    every = slice(None)
    np.testing.assert_array_equal(
        affinity.indices(every, every), truth.affinity.indices(every, every)[rows]
    )


def test_queries_of_another_length_are_told(vectors):
    assert not prepared(vectors["items"], vectors["queries"]).notes
    task = prepared(vectors["items"], 0.1 * vectors["queries"])
    assert "times as long as items in the median" in task.notes[0]
    by_product = prepare_task(
        vectors["items"], 0.1 * vectors["queries"], None, None, None, "ip", None, 0, None
    )
    assert not by_product.notes


def test_queries_without_a_direction_are_left_out_and_told(vectors):
    queries = vectors["queries"].copy()
    queries[[2, 9]] = 0
    task = prepared(vectors["items"], queries)
    assert len(task.queries) == len(queries) - 2
    assert not np.isin([2, 9], task.query_rows).any()
    assert any("2 queries are zero" in note for note in task.notes)


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_small_numbers_rank_as_what_they_stand_for(vectors, dtype):
    """int8 and float16 are ranked by their own values, not by those of a wider copy."""
    scale = 127 / np.abs(vectors["items"]).max() if dtype == "int8" else 1.0
    narrow = {
        name: np.round(scale * vectors[name], 3).astype(dtype) for name in ("items", "queries")
    }
    wide = {name: rows.astype(np.float64) for name, rows in narrow.items()}
    _, truth = task_of({**vectors, **narrow})
    _, expected = task_of({**vectors, **wide})
    np.testing.assert_array_equal(truth.nearest, expected.nearest)
