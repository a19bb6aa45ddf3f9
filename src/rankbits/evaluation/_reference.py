"""Metrics that compare with a reference ranking, beside those that read an affinity.

The first k items of the reference are the relevant ones of `overlap@k`. So each cutoff has an
affinity of its own, and what scores a ranking is called once for each affinity.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity import Affinity, Judgements, judgements
from rankbits.errors import InputError
from rankbits.evaluation._result import Evaluation
from rankbits.metrics import NamedMetric

NO_ITEM = -1  # in lists of ids: nothing more was returned

Score = Callable[[Affinity, Sequence[NamedMetric]], Evaluation]


def score_all(
    requests: Sequence[NamedMetric],
    affinity: Affinity | None,
    reference: Any,
    shape: tuple[int, int],
    score: Score,
) -> Evaluation:
    """Score the ordinary metrics by the affinity, and the others by the reference.

    `affinity` may be None if no metric reads it; `shape` is (queries, items).
    """
    ordinary = [request for request in requests if not request.metric.reads_reference]
    readers = [request for request in requests if request.metric.reads_reference]
    jobs: list[tuple[Affinity, list[NamedMetric]]] = []
    if ordinary:
        jobs.append((_required(affinity, ordinary), ordinary))
    if readers:
        ids = _reference_ids(readers[0].name, reference, shape)
        for k in dict.fromkeys(request.k for request in readers):
            of_cutoff = [request for request in readers if request.k == k]
            jobs.append((_head(ids, k or 1, of_cutoff[0].name, shape[1]), of_cutoff))
    parts = [score(*job) for job in jobs]
    values = {name: column for part in parts for name, column in part.per_query.items()}
    per_query = {request.name: values[request.name] for request in requests}
    return replace(parts[0], per_query=per_query, requests=tuple(requests))


def refuse_reference(requests: Sequence[NamedMetric]) -> None:
    """Refuse metrics that read a reference ranking where there can be none."""
    for request in requests:
        if request.metric.reads_reference:
            raise InputError(
                f"metric {request.name!r} needs a reference ranking, which a histogram does not "
                "have; call evaluate() with codes and reference="
            )


def ranked_ids(name: str, values: Any, n_items: int) -> np.ndarray:
    """Lists of item ids as int64 of shape (queries, k): -1 for none, no item twice in a list."""
    ids = _check.array_2d(name, values, columns="k")
    if ids.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be integers of shape (queries, k), got {_check.describe(ids)}"
        )
    ids = ids.astype(np.int64)
    is_unknown = (ids < NO_ITEM) | (ids >= n_items)
    if is_unknown.any():
        row = int(np.argmax(is_unknown.any(axis=1)))
        unknown = ids[row][is_unknown[row]][0]
        raise InputError(
            f"{name} must name items from 0 to {n_items - 1}, or -1 for none, got {unknown} for "
            f"query {row}"
        )
    ordered = np.sort(ids, axis=1)
    is_twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_ITEM)
    if is_twice.any():
        row = int(np.argmax(is_twice.any(axis=1)))
        item = ordered[row, 1:][is_twice[row]][0]
        raise InputError(f"{name} must name an item once, query {row} has item {item} twice")
    return ids


def _required(affinity: Affinity | None, ordinary: Sequence[NamedMetric]) -> Affinity:
    if affinity is None:
        raise InputError(
            f"affinity must be given, since metric {ordinary[0].name!r} reads it; only metrics of "
            "a reference ranking, such as overlap@10, do without"
        )
    return affinity


def _reference_ids(name: str, reference: Any, shape: tuple[int, int]) -> np.ndarray:
    if reference is None:
        raise InputError(
            f"reference must be given for metric {name!r}: the ids of each query's first items in "
            "the reference ranking, of shape (queries, k)"
        )
    ids = ranked_ids("reference", reference, shape[1])
    if len(ids) != shape[0]:
        raise InputError(
            f"reference must have a row for each of {shape[0]} queries, got {len(ids)} rows"
        )
    return ids


def _head(ids: np.ndarray, k: int, name: str, n_items: int) -> Judgements:
    """The first k items of each reference ranking as the relevant ones."""
    if ids.shape[1] < min(k, n_items):
        raise InputError(
            f"metric {name!r} needs the first {k} items of each reference ranking, reference has "
            f"{ids.shape[1]}"
        )
    queries, places = np.nonzero(ids[:, :k] != NO_ITEM)
    rows = np.column_stack([queries, ids[queries, places], np.ones(len(queries), np.int64)])
    return judgements(rows, len(ids), n_items)
