"""What is learned from, and that nothing is measured on queries that were learned from."""

import numpy as np
import pytest

from rankbits import methods
from rankbits.compress._candidates import Coder, coders
from rankbits.compress._lessons import N_PARTS, learning_parts, others, teach
from rankbits.compress._measuring import Exam, measure_coder, score_kind
from rankbits.compress._task import prepare_task
from rankbits.compress._truth import check_metrics, rank_by_vectors, truth_of
from rankbits.errors import InputError


class Recorder:
    """Has the arguments of `fit`."""

    def fit(self, *rows, **lesson):
        self.rows, self.lesson = rows, lesson


def judged_task(vectors):
    """Relevant to query i are two items of its cluster; judgements of level 0 say nothing."""
    rng = np.random.default_rng(0)
    judged = [(query, 599, 0) for query in range(60)]
    for query, label in enumerate(vectors["query_labels"]):
        same = np.flatnonzero(vectors["item_labels"] == label)
        judged += [(query, int(item), 1 + query % 2) for item in rng.choice(same, 2, replace=False)]
    return prepare_task(
        vectors["items"], vectors["queries"], judged, None, None, "cosine", None, 0, None
    )


def test_every_query_is_in_one_part():
    parts = learning_parts(50, seed=3)
    assert len(parts) == N_PARTS
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(50))
    for part in parts:
        assert not np.isin(others(part, 50), part).any()
        assert len(part) + len(others(part, 50)) == 50


def test_judgements_of_others_are_not_learned(vectors):
    task, hasher = judged_task(vectors), Recorder()
    learners, training = np.array([4, 7, 30]), np.arange(0, 600, 50)
    coder = Coder("judged", "talr-ndcg", lesson="judgements")
    teach(hasher, coder, task, training, learners)
    np.testing.assert_array_equal(hasher.lesson["query_X"], task.queries[learners])
    rows = hasher.lesson["judgements"].rows
    triples = task.relevance.judged
    expected = {
        (query, tuple(task.items[item]), level)
        for query, item, level in triples[np.isin(triples[:, 0], learners) & (triples[:, 2] > 0)]
    }
    items = hasher.rows[0]
    assert {(learners[q], tuple(items[item]), level) for q, item, level in rows} == expected
    assert {tuple(row) for row in task.items[training]} <= {tuple(row) for row in items}


def test_labels_are_those_of_the_training_rows(vectors):
    labels = vectors["query_labels"], vectors["item_labels"]
    task = prepare_task(
        vectors["items"], vectors["queries"], None, *labels, "cosine", None, 0, None
    )
    hasher, training = Recorder(), np.array([5, 9, 300])
    teach(hasher, Coder("labelled", "talr-ndcg", lesson="labels"), task, training)
    np.testing.assert_array_equal(hasher.rows[1], vectors["item_labels"][training])


def test_a_judged_query_is_asked_of_a_model_that_did_not_learn_from_it(vectors, tmp_path):
    pytest.importorskip("torch")
    task = judged_task(vectors)
    requests = check_metrics(None, "judgements")
    ranking = rank_by_vectors(
        task.items, task.queries, task.own, task.relevance, requests, "cosine", 1
    )
    truth = truth_of(ranking, task.own, task.relevance, requests, len(task.items))
    quick = {"encoder": "linear", "epochs": 2}
    coder = Coder("judged", "talr-ndcg", quick, lesson="judgements")
    training = np.arange(0, 600, 3)
    exam = Exam(task, truth, (20,), 1)
    cell = measure_coder(coder, 2, exam, training, tmp_path / "x.model", seed=1)
    for k, part in enumerate(learning_parts(60, seed=1)):
        hasher = methods.load(tmp_path / f"part{k}-x.model")
        assert hasher.report_["supervision"]["queries"] == 60 - len(part)
        some = task.of_queries(part)
        its_truth = truth.of_queries(part, some.relevance)
        alone = score_kind(exam.open_search(hasher), "real", Exam(some, its_truth, (20,), 1))
        for pool, by_metric in cell["kinds"]["real"]["values"].items():
            for metric, values in by_metric.items():
                np.testing.assert_array_equal(np.array(values)[part], alone[pool][metric])


def test_what_is_usual_depends_on_the_truth():
    names = {truth: {coder.name for coder in coders(None, truth, with_slow=True)}
             for truth in ("labels", "judgements", "float ranking")}  # fmt: skip
    of_items = {"additive", "distilled", "itq", "pca-rr", "sign", "sign-raw"}
    common = of_items | {"talr-ndcg", "talr-ndcg-own"}
    assert names["float ranking"] == common
    assert names["labels"] == common | {"distilled-groups", "talr-ndcg-labels"}
    assert names["judgements"] == common | {"talr-ndcg-judged"}
    assert {coder.name for coder in coders(None, "labels")} == common - {
        "talr-ndcg",
        "talr-ndcg-own",
    } | {"distilled-groups"}
    with pytest.raises(InputError, match="talr-ndcg-judged learns from judgements"):
        coders(["talr-ndcg-judged"], "float ranking")
