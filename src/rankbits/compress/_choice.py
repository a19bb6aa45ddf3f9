"""The recommendation: the smallest candidate that keeps enough, judged on queries it never saw.

Whoever picks the best of many candidates picks luck with it. Two things keep luck out.

Few candidates compete. At each length the way (a method and a kind of query) with the highest mean
over all pools is taken, and its pools are gone through from the largest down, as long as each of
them keeps enough; the first that does not ends the walk, whatever comes after it. Tests in such a
fixed order need no correction for their number. The shortest length at which the largest pool keeps
enough is recommended, with the smallest pool that the walk has reached.

The choice is made on one part of the queries and what is printed about it comes from the others:
with many queries from the other half, with few by turns, each tenth judged by a choice that the
other nine tenths made. If what was judged that way falls short, the choice is repeated with a
stricter target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankbits.compress._statistics import (
    Kept,
    large_residual,
    prediction_reach,
    quality_kept,
    with_reach,
)

MANY_QUERIES = 400  # enough for two halves
_N_FOLDS = 10
_N_TARGETS = 10


Path = list[np.ndarray]  # for each way at one length, the places of its pools from none to largest


@dataclass(frozen=True, eq=False)
class Division:
    """A part of the queries to choose on, and the part on which that choice is judged."""

    choosing: np.ndarray
    judging: np.ndarray


@dataclass(frozen=True, eq=False)
class Choice:
    """A recommended candidate.

    Attributes
    ----------
    place : int
        Its place among the candidates.
    kept : Kept
        One row: quality kept by choices that did not see the queries they are judged on.
    holds : bool
        Whether the lower end of that interval is what was asked for, or more.
    target : float
        The lower end that a choice had to reach on its own part of the queries.
    agreeing : float
        Share of the judged queries for which the choice was this very candidate.
    values : ndarray of float64, shape (judged queries,)
        What `kept` was computed from, in the order of `queries`.
    queries : ndarray of int
        The judged queries, ascending.
    """

    place: int
    kept: Kept
    holds: bool
    target: float
    agreeing: float
    values: np.ndarray
    queries: np.ndarray


def divide_queries(n_queries: int, seed: int) -> list[Division]:
    """Two halves of many queries, or each tenth of few against the rest."""
    order = np.random.default_rng((seed, 1)).permutation(n_queries)
    if n_queries >= MANY_QUERIES:
        half = n_queries // 2
        return [Division(np.sort(order[:half]), np.sort(order[half:]))]
    folds = np.array_split(order, _N_FOLDS)
    return [
        Division(np.sort(np.concatenate([*folds[:k], *folds[k + 1 :]])), np.sort(folds[k]))
        for k in range(_N_FOLDS)
    ]


def judged_queries(divisions: list[Division]) -> np.ndarray:
    """All queries on which some choice is judged, ascending."""
    return np.sort(np.concatenate([division.judging for division in divisions]))


def recommend(
    values: np.ndarray,
    reference: np.ndarray,
    paths: Sequence[Path],
    keep: float,
    divisions: list[Division],
) -> Choice:
    """The smallest candidate that keeps enough, or the best if none does.

    Parameters
    ----------
    values : ndarray of shape (candidates, n)
        Value of each query by each candidate.
    reference : ndarray of shape (n,)
        Value of each query by the float ranking.
    paths : sequence of lists of ndarray of int
        The candidates that may be chosen: for each length, the shortest first, an array for each
        way with the places of its pools, the smallest first.
    keep : float
        Share of the quality that is to be kept.
    divisions : list of Division
        From `divide_queries`.
    """
    for target in _targets(keep):
        choice = _cross_fit(values, reference, paths, target, keep, divisions)
        if choice.holds:
            return choice
    return _cross_fit(values, reference, paths, np.inf, keep, divisions)


def choose(values: np.ndarray, reference: np.ndarray, paths: Sequence[Path], target: float) -> int:
    """The place of the smallest candidate whose lower end reaches the target, else of the nearest.

    Arguments are as in `recommend`, but for `target`, the lower end of the interval.
    """
    kept = quality_kept(values, reference, large_residual(values, reference))
    nearest: list[int] = []
    for ways in paths:
        pools = max(ways, key=lambda places: kept.kept[places].mean())
        fails = np.flatnonzero(kept.low[pools] < target)
        if not fails.size:
            return int(pools[0])
        if fails[-1] < len(pools) - 1:
            return int(pools[fails[-1] + 1])
        nearest.append(int(pools[np.argmax(kept.low[pools])]))
    return max(nearest, key=lambda place: float(kept.low[place]))


def _targets(keep: float) -> Iterator[float]:
    """What to ask of a choice: what is to be kept, then more and more of the way to all."""
    for step in range(_N_TARGETS):
        yield keep + max(0.0, 1 - keep) * step / _N_TARGETS


def _cross_fit(
    values: np.ndarray,
    reference: np.ndarray,
    paths: Sequence[Path],
    target: float,
    keep: float,
    divisions: list[Division],
) -> Choice:
    """A choice with this target, and what choices like it keep on queries they did not see."""
    queries = judged_queries(divisions)
    pooled, chosen = np.empty(values.shape[1]), np.empty(values.shape[1], np.int64)
    for division in divisions:
        place = choose(values[:, division.choosing], reference[division.choosing], paths, target)
        pooled[division.judging], chosen[division.judging] = values[place, division.judging], place
    place = int(chosen[queries[0]])
    if len(divisions) > 1:  # the final choice sees every query
        place = choose(values, reference, paths, target)
    large = large_residual(values[:, queries], reference[queries])
    kept = _judged(pooled[queries], values[place, queries], reference[queries], large)
    return Choice(
        place=place,
        kept=kept,
        holds=bool(kept.low[0] >= keep),
        target=target,
        agreeing=float((chosen[queries] == place).mean()),
        values=pooled[queries],
        queries=queries,
    )


def _judged(pooled: np.ndarray, own: np.ndarray, reference: np.ndarray, large: float) -> Kept:
    """What the choices keep on queries they did not see, as uncertain as the final one is.

    Where choices differ, those of larger pools vary less than the candidate that is recommended.
    """
    both = np.stack([pooled, own])
    reach = prediction_reach(both, reference, large).max(keepdims=True)
    value = pooled.mean(keepdims=True)
    return with_reach(value, value / reference.mean(), reach, reference)
