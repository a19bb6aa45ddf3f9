"""What an evaluation gives: the values of each query, their means, and what they rest on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankbits.errors import InputError
from rankbits.histogram import TieHistogram
from rankbits.metrics import NamedMetric, empty_balls

EMPTY = ("skip", "zero", "error")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics of each query, and what made them.

    Attributes
    ----------
    per_query : dict from metric name to ndarray of float64, shape (queries,)
        NaN where a query has no such value and the policy is "skip"; 0 there under "zero".
    empty : {"skip", "zero", "error"}
        The policy for queries with nothing relevant, as given to `evaluate`.
    ranked_by : str
        What the items were ranked by, such as "Hamming distance".
    n_items : int
        Number of items a query ranks, its own left out where it was excluded.
    levels : ndarray of int64, shape (V,)
        Levels of the affinity, ascending from 0.
    n_bits : int or None
        Code length, None if no codes were ranked.
    requests : tuple of NamedMetric
        The metrics that were asked for, parsed from their names.
    counts : TieHistogram or None
        The counts by Hamming distance, None if items were ranked by something else.
    """

    per_query: dict[str, np.ndarray]
    empty: str
    ranked_by: str
    n_items: int
    levels: np.ndarray
    n_bits: int | None
    requests: tuple[NamedMetric, ...] = field(repr=False)
    counts: TieHistogram | None = field(default=None, repr=False)

    @property
    def histogram(self) -> TieHistogram:
        """The counts by Hamming distance, from which further metrics can be computed."""
        if self.counts is None:
            raise InputError(
                f"an evaluation by {self.ranked_by} has no histogram of Hamming distances; name "
                "all metrics when you evaluate"
            )
        return self.counts

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(next(iter(self.per_query.values())))

    @property
    def mean(self) -> dict[str, float]:
        """Mean over the queries that have a value; NaN if none has."""
        return {name: _mean(values) for name, values in self.per_query.items()}

    @property
    def n_skipped(self) -> int:
        """Queries left out of a mean because nothing is relevant to them; 0 under "zero"."""
        undefined = np.zeros(self.n_queries, bool)
        for values in self.per_query.values():
            undefined |= np.isnan(values)
        return int(undefined.sum())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the per-query values, ready for JSON: a mean over no queries is None.

        `database` is the number of items a query ranks, its own left out where it was excluded.
        """
        from rankbits import __version__

        return {
            "metrics": {metric.name: self._summary(metric) for metric in self.requests},
            "ranked_by": self.ranked_by,
            **({} if self.n_bits is None else {"bits": self.n_bits}),
            "queries": self.n_queries,
            "database": self.n_items,
            "levels": self.levels.tolist(),
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


def apply_policy(
    values: dict[str, np.ndarray], n_relevant: np.ndarray, empty: str
) -> dict[str, np.ndarray]:
    """The values under the policy for queries with nothing relevant."""
    empty_queries = np.flatnonzero(n_relevant == 0)
    if empty == "error" and empty_queries.size:
        raise InputError(
            f"query {empty_queries[0]} has no relevant item, {empty_queries.size} of "
            f"{len(n_relevant)} queries in all; pass empty='skip' or empty='zero' to go on"
        )
    if empty == "zero":
        return {name: np.nan_to_num(column, nan=0.0) for name, column in values.items()}
    return values


def evaluation_of_histogram(
    values: dict[str, np.ndarray], requests: Sequence[NamedMetric], hist: TieHistogram, empty: str
) -> Evaluation:
    """The result of ranking by Hamming distance."""
    values = apply_policy(values, hist.positives.sum(axis=1), empty)
    n_items = int(hist.items.sum(axis=1).max(initial=0))
    return Evaluation(
        values,
        empty,
        "Hamming distance",
        n_items,
        hist.levels,
        hist.n_bits,
        tuple(requests),
        hist,
    )


def _mean(values: np.ndarray) -> float:
    """Mean of what is not NaN; NaN if nothing is left."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
