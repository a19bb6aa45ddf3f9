"""Cells into a result: a row for each candidate, the recommendation, and the queries that lose."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.compress._choice import (
    Choice,
    Path,
    divide_queries,
    judged_queries,
    recommend,
)
from rankbits.compress._lists import NO_POOL
from rankbits.compress._statistics import large_residual, quality_kept
from rankbits.compress._truth import Truth
from rankbits.compress._words import advice_of, sentence_of

_N_LOSERS = 10


@dataclass(frozen=True)
class Cell:
    """One way to make codes at one length, and what was measured of it."""

    method: str
    n_bytes: int
    content: dict[str, Any]
    is_peer: bool = False


@dataclass(frozen=True, eq=False)
class Candidates:
    """All candidates: what they are, and the value of every query by each of them.

    Attributes
    ----------
    rows : list of dict
        Method, bytes, kind of query, pool, bits, microseconds, whether it is a peer's.
    values : dict from str to ndarray of float64, shape (candidates, queries)
        By metric.
    """

    rows: list[dict[str, Any]]
    values: dict[str, np.ndarray]

    def paths(self) -> list[Path]:
        """Our own candidates as `recommend` takes them: by length, by way, by pool."""
        lengths: dict[int, dict[tuple[str, str], list[int]]] = {}
        for place, row in enumerate(self.rows):
            if not row["is_peer"]:
                ways = lengths.setdefault(row["bytes"], {})
                ways.setdefault((row["method"], row["query"]), []).append(place)
        return [
            [
                np.array(sorted(places, key=lambda place: self.rows[place]["pool"] or 0))
                for places in lengths[length].values()
            ]
            for length in sorted(lengths)
        ]


def collect_candidates(cells: Sequence[Cell], metrics: Sequence[str], n_items: int) -> Candidates:
    """A row for each kind of query and pool of each cell."""
    rows: list[dict[str, Any]] = []
    values: dict[str, list[list[float]]] = {metric: [] for metric in metrics}
    for cell in cells:
        for kind, measured in cell.content["kinds"].items():
            for pool, by_metric in measured["values"].items():
                shared = cell.content["model_bytes"] / n_items
                rows.append(
                    {
                        "method": cell.method,
                        "bytes": cell.n_bytes,
                        "bytes_with_model": cell.n_bytes + shared,
                        "bits": cell.content["bits"],
                        "query": kind,
                        "pool": None if pool == NO_POOL else int(pool),
                        "microseconds": measured["microseconds"][pool],
                        "is_peer": cell.is_peer,
                    }
                )
                for metric in metrics:
                    values[metric].append(by_metric[metric])
    return Candidates(rows, {metric: np.array(columns) for metric, columns in values.items()})


def summarize(
    candidates: Candidates, truth: Truth, query_rows: np.ndarray, keep: float, seed: int
) -> dict[str, Any]:
    """Reference, candidates and recommendation as `result.json` has them."""
    main = truth.metrics[0]
    divisions = divide_queries(len(query_rows), seed)
    choice = recommend(
        candidates.values[main],
        truth.reference[main],
        candidates.paths(),
        keep,
        divisions,
    )
    judged = judged_queries(divisions)
    table = _table(candidates, truth, judged)
    recommendation = _recommendation(candidates, truth, choice, table, keep)
    return {
        "reference": _reference(truth, judged),
        "candidates": table,
        "recommendation": recommendation,
        "losers": _losers(candidates, truth, choice, query_rows),
        "judging": {
            "queries": len(judged),
            "how": "the other half of the queries"
            if len(divisions) == 1
            else f"each of {len(divisions)} parts by a choice made on the others",
        },
    }


def _reference(truth: Truth, judged: np.ndarray) -> dict[str, Any]:
    means = {name: float(values[judged].mean()) for name, values in truth.reference.items()}
    return {"truth": truth.kind, "metrics": means}


def _table(candidates: Candidates, truth: Truth, judged: np.ndarray) -> list[dict[str, Any]]:
    """Every candidate with its quality kept; nothing was chosen on the queries of its numbers."""
    metrics: list[dict[str, Any]] = [{} for _ in candidates.rows]
    for name in truth.metrics:
        values, reference = candidates.values[name][:, judged], truth.reference[name][judged]
        kept = quality_kept(values, reference, large_residual(values, reference))
        for place, row in enumerate(metrics):
            row[name] = kept.row(place)
    return [
        {**row, "metrics": of_row} for row, of_row in zip(candidates.rows, metrics, strict=True)
    ]


def _recommendation(
    candidates: Candidates,
    truth: Truth,
    choice: Choice,
    table: list[dict[str, Any]],
    keep: float,
) -> dict[str, Any]:
    """The chosen candidate; the metric that decides is judged on queries its choice did not see."""
    main = truth.metrics[0]
    chosen = dict(table[choice.place])
    chosen["metrics"] = {**chosen["metrics"], main: choice.kept.row(0)}
    chosen |= {
        "metric": main,
        "keep": keep,
        "holds": choice.holds,
        "target": None if np.isinf(choice.target) else choice.target,
        "agreeing": choice.agreeing,
    }
    chosen["sentence"] = sentence_of(chosen)
    chosen["advice"] = "" if choice.holds else advice_of(chosen, table, len(choice.queries))
    return chosen


def _losers(
    candidates: Candidates, truth: Truth, choice: Choice, query_rows: np.ndarray
) -> list[dict[str, Any]]:
    """The queries that lose most by the recommended candidate."""
    main = truth.metrics[0]
    reference, values = truth.reference[main], candidates.values[main][choice.place]
    order = np.argsort(values - reference, kind="stable")[:_N_LOSERS]
    return [
        {
            "query": int(query_rows[place]),
            "reference": float(reference[place]),
            "value": float(values[place]),
        }
        for place in order
        if values[place] < reference[place]
    ]
