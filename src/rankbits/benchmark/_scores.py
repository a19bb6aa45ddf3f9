"""Scores of codes under a protocol: the metrics of `evaluate`, and two of the TALR authors' code.

That code keeps levels as 8-bit integers, so 2^v stops at 127 and the gain 2^v - 1 at 126, from
level 7 on; and it scores a query with nothing relevant 1. Its NDCG is the tie-aware one otherwise.

    nDCG(8-bit)     gains stop at 126; a query with nothing relevant is left out
    nDCG(released)  gains stop at 126; a query with nothing relevant scores 1
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankbits import metrics
from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.evaluation import evaluate
from rankbits.histogram import TieHistogram, distinct_codes
from rankbits.metrics import parse_metric, parse_metrics

_EIGHT_BITS, _RELEASED = "nDCG(8-bit)", "nDCG(released)"
_OF_RELEASE = (_EIGHT_BITS, _RELEASED)
_LARGEST = 127  # of an 8-bit integer


def checked_metrics(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once; one that is unknown is refused."""
    usual = [name for name in names if name not in _OF_RELEASE]
    if usual:
        parse_metrics(usual)
    return tuple(dict.fromkeys(names))


def metrics_for(queries: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those metrics of a protocol that queries of this kind have: weights have no radius.

    >>> metrics_for("real", ("AP", "P@r2", "LGAP@r2"))
    ('AP',)
    """
    if queries == "bits":
        return names
    return tuple(name for name in names if name in _OF_RELEASE or not _reads_distances(name))


def _reads_distances(name: str) -> bool:
    metric = parse_metric(name)
    return metric.radius is not None or metric.needs_codes


def scores(
    queries: BinaryCodes | np.ndarray,
    database: BinaryCodes,
    affinity: Affinity,
    names: tuple[str, ...],
    n_threads: int | None = None,
    kinds: Mapping[str, np.ndarray] | None = None,
) -> dict[str, dict[str, Any]]:
    """Mean, queries, queries left out, and conventions of each metric, ready for JSON.

    Queries are codes, or real weights of the bits. `kinds` are places of queries, by name: metrics
    of `evaluate` are then given for each kind too, as "AP of new classes".
    """
    usual = [name for name in names if name not in _OF_RELEASE]
    codes, weights = (queries, None) if isinstance(queries, BinaryCodes) else (None, queries)
    if codes is None and len(usual) < len(names):
        raise InputError(
            f"{_EIGHT_BITS} and {_RELEASED} are of rankings by Hamming distance; queries must be "
            "bits for them"
        )
    evaluation = evaluate(
        codes,
        database,
        affinity,
        usual or ["nDCG"],
        query_weights=weights,
        n_threads=n_threads,
    )
    metrics_by_name: dict[str, dict[str, Any]] = evaluation.to_dict()["metrics"]
    saturated = None
    for name in names:
        if name not in metrics_by_name:
            saturated = ndcg_of_bytes(evaluation.histogram) if saturated is None else saturated
            metrics_by_name[name] = _summary(saturated, scores_empty=name == _RELEASED)
    for name in names:
        if metrics_by_name[name]["mean"] is None:
            raise InputError(f"{name} has no value: nothing is relevant to any query")
    of_kinds = {
        f"{name} of {kind}": {
            **_summarize(evaluation.per_query[name][rows]),
            "conventions": metrics_by_name[name]["conventions"],
        }
        for kind, rows in (kinds or {}).items()
        for name in usual
    }
    return {name: metrics_by_name[name] for name in names} | of_kinds


def describe_code_use(database: BinaryCodes) -> dict[str, Any]:
    """How the items share the codes, ready for JSON.

    `occupancy` has a pair for each number of items that share one code: that number, and how many
    codes hold it. It says everything about the distribution but which code is which.

    >>> describe_code_use(BinaryCodes.from_bits([[0, 1], [0, 1], [1, 1], [1, 0]]))["occupancy"]
    [[1, 2], [2, 1]]
    """
    use = metrics.code_use(database)
    n_items, n_codes = np.unique(distinct_codes(database)[1], return_counts=True)
    return {
        "n_items": use.n_items,
        "n_distinct": use.n_distinct,
        "share_of_space": use.share_of_space,
        "collision_rate": use.collision_rate,
        "entropy_bits": use.entropy_bits,
        "occupancy": np.stack([n_items, n_codes], axis=1).tolist(),
    }


def ndcg_of_bytes(hist: TieHistogram) -> np.ndarray:
    """NDCG of each query with gains min(2^v, 127) - 1; NaN where nothing is relevant.

    Gains as levels of a linear gain: levels whose gains are equal become one.

    >>> h = TieHistogram(np.array([[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]), np.array([0, 7, 9]))
    >>> ndcg_of_bytes(h).round(4).tolist()
    [0.6934]
    """
    gains = np.exp2(np.minimum(hist.levels, 7)).clip(max=_LARGEST).astype(np.int64) - 1
    levels, place = np.unique(gains, return_inverse=True)
    counts = np.zeros((*hist.counts.shape[:2], len(levels)), np.int64)
    for column, target in enumerate(place):
        counts[:, :, target] += hist.counts[:, :, column]
    return metrics.ndcg(TieHistogram(counts, levels), gain="linear")


def _summarize(values: np.ndarray) -> dict[str, Any]:
    """Mean over those queries that have a value, and how many have one or none."""
    has_value = ~np.isnan(values)
    return {
        "mean": float(values[has_value].mean()) if has_value.any() else None,
        "queries": int(has_value.sum()),
        "skipped": int((~has_value).sum()),
    }


def _summary(values: np.ndarray, scores_empty: bool) -> dict[str, Any]:
    n_empty = int(np.isnan(values).sum())
    counted_values = np.nan_to_num(values, nan=1.0) if scores_empty else values[~np.isnan(values)]
    empty = "scores 1" if scores_empty else "is left out of the mean and counted"
    return {
        "mean": float(counted_values.mean()) if len(counted_values) else None,
        "queries": len(counted_values),
        "skipped": 0 if scores_empty else n_empty,
        "conventions": {
            "cutoff": "none",
            "ties": "expectation over all orders of tied items",
            "gain": "min(2^v, 127) - 1, as 8-bit integers have it",
            "discount": "log2: 1 / log2(rank + 1)",
            "empty_query": f"a query with nothing relevant {empty}",
        },
    }
