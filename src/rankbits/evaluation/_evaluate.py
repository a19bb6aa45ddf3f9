"""Evaluation: count ties once, read every metric from the counts, average over queries.

Averaging is where queries with nothing relevant matter, so the choice is explicit: `skip` leaves
them out and counts them, `zero` scores them 0, `error` refuses them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.evaluation._shards import Progress
from rankbits.histogram import TieHistogram, count_ties
from rankbits.metrics import NamedMetric, empty_balls, parse_metrics

EMPTY = ("skip", "zero", "error")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics of each query, and what made them.

    Attributes
    ----------
    per_query : dict from metric name to ndarray of float64, shape (queries,)
        NaN where a query has no such value and the policy is "skip"; 0 there under "zero".
    histogram : TieHistogram
        The counts behind the values, from which further metrics can be computed.
    empty : {"skip", "zero", "error"}
        The policy for queries with nothing relevant, as given to `evaluate`.
    requests : tuple of NamedMetric
        The metrics that were asked for, parsed from their names.
    """

    per_query: dict[str, np.ndarray]
    histogram: TieHistogram
    empty: str
    requests: tuple[NamedMetric, ...] = field(repr=False)

    @property
    def mean(self) -> dict[str, float]:
        """Mean over the queries that have a value; NaN if none has."""
        return {name: _mean(values) for name, values in self.per_query.items()}

    @property
    def n_skipped(self) -> int:
        """Queries left out of a mean because nothing is relevant to them; 0 under "zero"."""
        undefined = np.zeros(self.histogram.n_queries, bool)
        for values in self.per_query.values():
            undefined |= np.isnan(values)
        return int(undefined.sum())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the per-query values, ready for JSON: a mean over no queries is None.

        `database` is the number of items a query ranks, its own left out where it was excluded.
        """
        from rankbits import __version__

        hist = self.histogram
        return {
            "metrics": {metric.name: self._summary(metric) for metric in self.requests},
            "bits": hist.n_bits,
            "queries": hist.n_queries,
            "database": int(hist.items.sum(axis=1).max(initial=0)),
            "levels": hist.levels.tolist(),
            "empty": self.empty,
            "skipped": self.n_skipped,
            "version": __version__,
        }

    def _summary(self, metric: NamedMetric) -> dict[str, Any]:
        """The mean of one metric with the counts and the conventions behind it."""
        values = self.per_query[metric.name]
        n_skipped = int(np.isnan(values).sum())
        has_mean = n_skipped < len(values)
        summary: dict[str, Any] = {
            "mean": _mean(values) if has_mean else None,
            "queries": len(values) - n_skipped,
            "skipped": n_skipped,
        }
        if metric.radius is not None:
            summary["empty_balls"] = float(np.mean(empty_balls(self.histogram, metric.radius)))
        summary["conventions"] = metric.conventions(self.empty)
        return summary


def evaluate(
    queries: BinaryCodes,
    database: BinaryCodes,
    affinity: Affinity,
    metrics: Iterable[str] | str = ("AP",),
    empty: str = "skip",
    *,
    exclude_self: bool | np.ndarray = False,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Rank the database by Hamming distance for each query and score it, exactly under ties.

    Parameters
    ----------
    queries, database : BinaryCodes of one length
    affinity : from `rankbits.affinity`, over these queries and items
    metrics : names such as "AP", "AP(min)@1000", "nDCG@100", "P@r2"
    empty : "skip", "zero" or "error"
        What a query with nothing relevant does to a mean: left out and counted, 0, or an error.
    exclude_self, n_threads, progress : as in `rankbits.count_ties`

    >>> codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    >>> from rankbits.affinity import classes
    >>> evaluate(codes[:1], codes, classes([7], [7, 8, 7]), ["AP", "P@1"]).mean
    {'AP': 0.8333333333333333, 'P@1': 1.0}
    """
    _check.choice("empty", empty, EMPTY)
    n_bits = queries.n_bits if isinstance(queries, BinaryCodes) else None
    requests = parse_metrics(metrics, n_bits)
    hist = count_ties(
        queries, database, affinity, exclude_self, n_threads=n_threads, progress=progress
    )
    counters = {request.metric: request.metric.count_codes for request in requests}
    code_counts = {
        metric: count_codes(queries, database, exclude_self, n_threads=n_threads)
        for metric, count_codes in counters.items()
        if count_codes is not None
    }
    values = {
        request.name: request.values(hist, code_counts.get(request.metric)) for request in requests
    }
    return _evaluation(values, requests, hist, empty)


def evaluate_histogram(
    hist: TieHistogram, metrics: Iterable[str] | str = ("AP",), empty: str = "skip"
) -> Evaluation:
    """Score a tie histogram that was merged from shards, or saved and loaded; see `evaluate`.

    LGAP needs the codes themselves and is refused.

    Parameters
    ----------
    hist : TieHistogram
        Counts of database items by Hamming distance and affinity level, of at least one query.
    metrics : str or iterable of str, default=("AP",)
        Names of the metrics, such as "AP", "AP(min)@1000", "nDCG@100" or "P@r2".
    empty : {"skip", "zero", "error"}, default="skip"
        What to do with a query that has nothing relevant: leave it out of the mean and count it,
        score it 0, or raise an error.
    """
    _check.choice("empty", empty, EMPTY)
    if not isinstance(hist, TieHistogram):
        raise InputError(f"hist must be a TieHistogram, got {_check.describe(hist)}")
    if hist.n_queries == 0:
        raise InputError("hist must have at least one query, it has none")
    requests = parse_metrics(metrics, hist.n_bits)
    for request in requests:
        if request.needs_codes:
            raise InputError(
                f"metric {request.name!r} needs the codes themselves, a histogram does not have "
                "them; call evaluate() with codes"
            )
    values = {request.name: request.values(hist) for request in requests}
    return _evaluation(values, requests, hist, empty)


def _evaluation(
    values: dict[str, np.ndarray], requests: Sequence[NamedMetric], hist: TieHistogram, empty: str
) -> Evaluation:
    """Apply the policy for queries with nothing relevant."""
    empty_queries = np.flatnonzero(hist.positives.sum(axis=1) == 0)
    if empty == "error" and empty_queries.size:
        raise InputError(
            f"query {empty_queries[0]} has no relevant item, {empty_queries.size} of "
            f"{hist.n_queries} queries in all; pass empty='skip' or empty='zero' to go on"
        )
    if empty == "zero":
        values = {name: np.nan_to_num(column, nan=0.0) for name, column in values.items()}
    return Evaluation(values, hist, empty, tuple(requests))


def _mean(values: np.ndarray) -> float:
    """Mean of what is not NaN; NaN if nothing is left."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
