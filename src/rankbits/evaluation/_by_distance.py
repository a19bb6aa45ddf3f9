"""Evaluation of rankings by real numbers: ties counted query by query, metrics read from them."""

from collections.abc import Sequence

import numpy as np

from rankbits.affinity import Affinity
from rankbits.errors import InputError
from rankbits.evaluation._result import Evaluation, apply_policy
from rankbits.evaluation._shards import Progress
from rankbits.histogram import DistanceSource, TieHistogram, count_ranked
from rankbits.metrics import NamedMetric


def evaluate_by_distance(
    source: DistanceSource,
    affinity: Affinity,
    requests: Sequence[NamedMetric],
    empty: str,
    *,
    ranked_by: str,
    n_bits: int | None = None,
    exclude_self: bool | np.ndarray = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Score the rankings of a distance source; see `evaluate` for the rest."""
    refuse_radius(requests, ranked_by)
    values = {request.name: np.empty(source.shape[0]) for request in requests}
    n_items, n_relevant = np.empty((2, source.shape[0]), np.int64)
    ranked = count_ranked(
        source,
        affinity,
        exclude_self,
        depth=depth_of(requests),
        n_threads=n_threads,
        progress=progress,
    )
    for queries, hist in ranked:
        for request in requests:
            values[request.name][queries] = request.values(_first_ties(hist, request.k))
        n_items[queries] = hist.counts.reshape(len(queries), -1).sum(axis=1)
        n_relevant[queries] = n_items[queries] - hist.counts[:, :, 0].sum(axis=1)
    return Evaluation(
        apply_policy(values, n_relevant, empty),
        empty,
        ranked_by,
        int(n_items.max()),
        affinity.levels,
        n_bits,
        tuple(requests),
    )


def _first_ties(hist: TieHistogram, k: int | None) -> TieHistogram:
    """The ties that a cut at rank k leaves apart, and all others as one behind them.

    A metric that reads the first k ranks needs no more, and a ranking may have 10^5 ties. Empty
    ties stand at the end of a ranking only, so the first k + 1 hold its first k ranks.
    """
    if k is None or hist.n_bits <= k + 1:
        return hist
    first, others = np.split(hist.counts, [k + 1], axis=1)
    # Level by level: NumPy is slow where the last axis is short.
    rest = np.stack([others[:, :, v].sum(axis=1) for v in range(len(hist.levels))], axis=1)
    return TieHistogram(np.concatenate([first, rest[:, None]], axis=1), hist.levels)


def refuse_radius(requests: Sequence[NamedMetric], ranked_by: str) -> None:
    """Refuse metrics that read Hamming distances or codes."""
    for request in requests:
        if request.radius is not None or request.needs_codes:
            raise InputError(
                f"metric {request.name!r} needs Hamming distances, and items are ranked by "
                f"{ranked_by} here; cut by a rank instead, as in P@100"
            )


def depth_of(requests: Sequence[NamedMetric]) -> int | None:
    """The deepest rank that any metric reads; None if one reads the whole ranking."""
    cuts = [request.k for request in requests]
    return None if None in cuts else max(k for k in cuts if k is not None)
