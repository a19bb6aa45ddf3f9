"""One cell: a method learns codes of one length, and every query is asked in every way.

For each kind of query there is one list of the nearest items by code. Its head is scored as it is,
and every pool is scored after its items are put in order by the original vectors.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankbits.compress._candidates import Coder, create_hasher
from rankbits.compress._lessons import learning_parts, others, teach
from rankbits.compress._lists import NO_POOL, ends_inside, score_pools, without_own
from rankbits.compress._searching import QUERY_KINDS, CodeSearch, build_search
from rankbits.compress._task import Task
from rankbits.compress._truth import Truth
from rankbits.errors import InputError
from rankbits.evaluation import evaluate

TIMED_QUERIES = 32
_REPEATS = 3
_QUERIES_AT_ONCE = 128


def measure_coder(
    coder: Coder,
    n_bytes: int,
    task: Task,
    truth: Truth,
    training: np.ndarray,
    pools: Sequence[int],
    model: Path,
    seed: int,
    n_threads: int | None,
) -> dict[str, Any]:
    """Everything about one way to make codes of one length, ready for JSON.

    Parameters
    ----------
    coder : Coder
        The way.
    n_bytes : int
        Bytes of a code.
    task, truth : Task and Truth
        What is asked, and what the answers are judged by.
    training : ndarray of int64
        Rows of the items to learn from.
    pools : sequence of int
        How many items are re-ranked, beside none.
    model : Path
        Where the model is saved; one that is there is loaded instead of being learned again.
    seed : int
        Seed of the method.
    n_threads : int or None
        Threads of the searches; None takes all.
    """
    started = time.perf_counter()
    fit = partial(fit_or_load, coder, n_bytes, task, training, seed=seed, n_threads=n_threads)
    try:
        hasher = fit(model)
        is_taught = coder.lesson == "judgements"
        parts = learning_parts(len(task.queries), seed) if is_taught else []
        unseen = [
            (fit(model.with_name(f"part{k}-{model.name}"), others(part, len(task.queries))), part)
            for k, part in enumerate(parts)
        ]
    except InputError as error:
        return {"left_out": str(error)}
    fitted = time.perf_counter()
    search = build_search(hasher, task.items, task.similarity, n_threads)
    encoded = time.perf_counter()
    values = {
        kind: score_parts(unseen, kind, task, truth, pools, n_threads)
        if is_taught
        else score_kind(search, kind, task, truth, pools, n_threads)
        for kind in QUERY_KINDS
    }
    kinds = {
        kind: {
            "values": values[kind],
            "microseconds": time_pools(search, kind, task, pools, truth.depth),
        }
        for kind in QUERY_KINDS
    }
    return {
        "bits": hasher.n_bits_,
        "model": model.name,
        "model_bytes": sum(file.stat().st_size for file in model.iterdir()),
        "kinds": kinds,
        "seconds": {
            "fit": fitted - started,
            "encode": encoded - fitted,
            "measure": time.perf_counter() - encoded,
        },
    }


def fit_or_load(
    coder: Coder,
    n_bytes: int,
    task: Task,
    training: np.ndarray,
    model: Path,
    learners: np.ndarray | None = None,
    *,
    seed: int,
    n_threads: int | None,
) -> Any:
    """The fitted method, which is saved; a model that was saved before is the same one."""
    from rankbits import methods

    if model.exists():
        return methods.load(model)
    hasher = create_hasher(coder, n_bytes, seed, n_threads)
    teach(hasher, coder, task, training, learners)
    hasher.save(model)
    return methods.load(model)  # what is measured is what a user will load


Values = dict[str, dict[str, list[float]]]  # of every query, by pool and metric


def score_parts(
    unseen: Sequence[tuple[Any, np.ndarray]],
    kind: str,
    task: Task,
    truth: Truth,
    pools: Sequence[int],
    n_threads: int | None,
) -> Values:
    """Values of every query by the model that did not learn from it."""
    columns: dict[str, dict[str, np.ndarray]] = {}
    for hasher, part in unseen:
        some = task.of_queries(part)
        search = build_search(hasher, task.items, task.similarity, n_threads)
        values = score_kind(
            search, kind, some, truth.of_queries(part, some.relevance), pools, n_threads
        )
        for pool, by_metric in values.items():
            for metric, column in by_metric.items():
                place = columns.setdefault(pool, {})
                place.setdefault(metric, np.empty(len(task.queries)))[part] = column
    return {
        pool: {metric: column.tolist() for metric, column in by_metric.items()}
        for pool, by_metric in columns.items()
    }


def measure_kind(
    search: CodeSearch,
    kind: str,
    task: Task,
    truth: Truth,
    pools: Sequence[int],
    n_threads: int | None,
) -> dict[str, Any]:
    """Values of every query by pool and metric, and the microseconds of a query by pool."""
    return {
        "values": score_kind(search, kind, task, truth, pools, n_threads),
        "microseconds": time_pools(search, kind, task, pools, truth.depth),
    }


def score_kind(
    search: CodeSearch,
    kind: str,
    task: Task,
    truth: Truth,
    pools: Sequence[int],
    n_threads: int | None,
) -> Values:
    """Values of every query by pool and metric."""
    depth = max([*pools, 4 * truth.depth])
    depth = min(depth + int((task.own >= 0).any()), len(task.items))
    distances, ids = _in_parts(task.queries, lambda part: search.nearest(part, kind, depth,
                                                                         n_threads))  # fmt: skip
    distances, ids = without_own(distances, ids, task.own)
    n_ranked = len(task.items) - int((task.own >= 0).any())
    heads = None
    if not ends_inside(distances, truth.depth, n_ranked):  # ties longer than the lists
        heads = _score_all_items(search, kind, task, truth, n_threads)
    return score_pools(truth, task, distances, ids, pools, heads)


def time_pools(
    search: CodeSearch, kind: str, task: Task, pools: Sequence[int], k: int
) -> dict[str, float]:
    """Microseconds of a query from its vector to its answer, on one thread, by pool.

    Queries come together, as many as `TIMED_QUERIES`; the best of several times counts.
    """
    queries = task.queries[:TIMED_QUERIES]
    times = {}
    for pool in (None, *pools):
        best = np.inf
        for _ in range(_REPEATS):
            started = time.perf_counter()
            search.search(queries, k, kind, pool, n_threads=1)
            best = min(best, time.perf_counter() - started)
        times[str(pool or NO_POOL)] = 1e6 * best / len(queries)
    return times


def _score_all_items(
    search: CodeSearch, kind: str, task: Task, truth: Truth, n_threads: int | None
) -> dict[str, np.ndarray]:
    """Exact values of rankings by code, however long their ties are."""
    hasher = search.hasher
    queries = hasher.encode_queries(task.queries) if kind == "bits" else None
    return evaluate(
        queries,
        search.index.codes(),
        truth.affinity,
        truth.metrics,
        query_weights=None if kind == "bits" else hasher.project_queries(task.queries),
        reference=truth.nearest,
        exclude_self=truth.own,
        n_threads=n_threads,
    ).per_query


def _in_parts(
    queries: np.ndarray, search: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Lists of all queries, some at a time."""
    parts = [
        search(queries[start : start + _QUERIES_AT_ONCE])
        for start in range(0, len(queries), _QUERIES_AT_ONCE)
    ]
    distances, ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return distances, ids
