"""One cell: a method learns codes of one length, and every query is asked in every way.

For each kind of query there is one list of the nearest items by code. Its head is scored as it is,
and every pool is scored after its items are put in order by the original vectors.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankbits.compress._candidates import Coder
from rankbits.compress._lists import NO_ITEM, NO_POOL, ends_inside, score_pools, without_own
from rankbits.compress._models import learn_models
from rankbits.compress._searching import CodeSearch, build_search, plan_of
from rankbits.compress._task import Task
from rankbits.compress._truth import Truth
from rankbits.errors import InputError
from rankbits.evaluation import evaluate
from rankbits.index import Matches

TIMED_QUERIES = 32
_REPEATS = 3
_QUERIES_AT_ONCE = 128

Values = dict[str, dict[str, list[float]]]  # of every query, by pool and metric


class Exam(NamedTuple):
    """What every candidate is asked.

    Attributes
    ----------
    task, truth : Task and Truth
        The questions, and what the answers are judged by.
    pools : sequence of int
        How many items are re-ranked, beside none.
    n_threads : int or None
        Threads of the searches; None takes all.
    """

    task: Task
    truth: Truth
    pools: Sequence[int]
    n_threads: int | None

    def of_queries(self, rows: np.ndarray) -> "Exam":
        """The same for some of the queries."""
        task = self.task.of_queries(rows)
        return self._replace(task=task, truth=self.truth.of_queries(rows, task.relevance))

    def open_search(self, hasher: Any) -> CodeSearch:
        """Codes of all items by this model."""
        return build_search(hasher, self.task.items, self.n_threads)


def measure_coder(
    coder: Coder, n_bytes: int, exam: Exam, training: np.ndarray, model: Path, seed: int
) -> dict[str, Any]:
    """Everything about one way to make codes of one length, ready for JSON.

    Parameters
    ----------
    coder : Coder
        The way.
    n_bytes : int
        Bytes of a code.
    exam : Exam
        What is asked.
    training : ndarray of int64
        Rows of the items to learn from.
    model : Path
        Where the model is saved; one that is there is loaded instead of being learned again.
    seed : int
        Seed of the method.
    """
    moments = [time.perf_counter()]
    try:
        models = learn_models(coder, n_bytes, exam.task, training, model, seed, exam.n_threads)
    except InputError as error:
        return {"left_out": str(error)}
    moments.append(time.perf_counter())
    search = exam.open_search(models.hasher)
    moments.append(time.perf_counter())
    score = partial(score_parts, models.unseen) if models.unseen else partial(score_kind, search)
    kinds = {
        kind: {"values": score(kind, exam), "microseconds": time_pools(search, kind, exam)}
        for kind in models.hasher.query_kinds
    }
    moments.append(time.perf_counter())
    return {
        "bits": models.hasher.n_bits_,
        "model": model.name,
        "model_bytes": sum(file.stat().st_size for file in model.iterdir()),
        "kinds": kinds,
        "seconds": dict(zip(("fit", "encode", "measure"), np.diff(moments).tolist(), strict=True)),
    }


def score_parts(unseen: Sequence[tuple[Any, np.ndarray]], kind: str, exam: Exam) -> Values:
    """Values of every query by the model that did not learn from it."""
    columns: dict[str, dict[str, np.ndarray]] = {}
    for hasher, part in unseen:
        values = score_kind(exam.open_search(hasher), kind, exam.of_queries(part))
        for pool, by_metric in values.items():
            for metric, column in by_metric.items():
                place = columns.setdefault(pool, {})
                place.setdefault(metric, np.empty(len(exam.task.queries)))[part] = column
    return {
        pool: {metric: column.tolist() for metric, column in by_metric.items()}
        for pool, by_metric in columns.items()
    }


def score_kind(search: CodeSearch, kind: str, exam: Exam) -> Values:
    """Values of every query by pool and metric."""
    task, truth, pools, n_threads = exam
    n_own = int((task.own >= 0).any())
    depth = min(max([*pools, 4 * truth.depth]) + n_own, len(task.items))
    plan = plan_of(kind, None, task.similarity)
    nearest = partial(search.search, k=depth, plan=plan, n_threads=n_threads)
    distances, ids = without_own(*_in_parts(task.queries, nearest), task.own)
    heads = None
    if not ends_inside(distances, truth.depth, len(task.items) - n_own):  # ties longer than lists
        heads = _score_all_items(search, kind, exam)
    return score_pools(truth, task, distances, ids, pools, heads)


def time_pools(search: CodeSearch, kind: str, exam: Exam) -> dict[str, float]:
    """Microseconds of a query from its vector to its answer, on one thread, by pool.

    Queries come together, as many as `TIMED_QUERIES`; the best of several times counts.
    """
    queries = exam.task.queries[:TIMED_QUERIES]
    times = {}
    for pool in (None, *exam.pools):
        best, plan = np.inf, plan_of(kind, pool, exam.task.similarity)
        for _ in range(_REPEATS):
            started = time.perf_counter()
            search.search(queries, exam.truth.depth, plan, n_threads=1)
            best = min(best, time.perf_counter() - started)
        times[str(pool or NO_POOL)] = 1e6 * best / len(queries)
    return times


def _score_all_items(search: CodeSearch, kind: str, exam: Exam) -> dict[str, np.ndarray]:
    """Exact values of rankings by code, however long their ties are."""
    hasher, queries, truth = search.hasher, exam.task.queries, exam.truth
    return evaluate(
        hasher.encode_queries(queries) if kind == "bits" else None,
        search.index.codes(),
        truth.affinity,
        truth.metrics,
        query_weights=None if kind == "bits" else hasher.project_queries(queries),
        reference=truth.nearest,
        exclude_self=truth.own,
        n_threads=exam.n_threads,
    ).per_query


def _in_parts(
    queries: np.ndarray, search: Callable[[np.ndarray], Matches]
) -> tuple[np.ndarray, np.ndarray]:
    """Distances and ids for all queries, some at a time; infinite where there is no item."""
    parts = [
        search(queries[start : start + _QUERIES_AT_ONCE])
        for start in range(0, len(queries), _QUERIES_AT_ONCE)
    ]
    ids = np.concatenate([part.ids for part in parts])
    distances = np.concatenate([part.distances for part in parts]).astype(np.float64)
    return np.where(ids == NO_ITEM, np.inf, distances), ids
