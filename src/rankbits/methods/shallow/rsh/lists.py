"""Ranking lists as one matrix: the sum over all triplets that RSH maximizes, without the triplets.

For a query q, S_ij is 1 if item i is ranked above item j, -1 if below, 0 if their levels are equal.
Every item of a list enters the sum over pairs with the number of items ranked below it less the
number of items ranked above it,

    p = sum_ij (x_i - x_j) S_ij = 2 sum_i x_i (n_below(i) - n_above(i)),

so a list of N items costs a sort, not N^2 triplets. The matrix is B = sum over queries of p q'.

Later tables weigh the triplets: i above j counts 1 + exp(lead_i - lead_j) times. The second part is
RankBoost's (Freund, Iyer, Schapire & Singer, "An efficient boosting algorithm for combining
preferences", JMLR 2003), a factor of i times one of j, so the same sort serves. The first part
keeps a table from following a few hopeless items where hardly anything else is wrong.

Notation:
    M  queries        N  items of a list        D  coordinates of a row
"""

from collections.abc import Iterator

import numpy as np

from rankbits.codes import BinaryCodes, smallest_distances
from rankbits.errors import InputError
from rankbits.methods.supervision import Supervision

_BLOCK_CELLS = 1 << 22
_BOOST = 2.0  # chosen on training rows of CIFAR-100 and digits


def order_weights(levels: np.ndarray, lead: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Items ranked below each item less those ranked above it, (N,), and the number of triplets.

    With a lead (N,) a triplet of i above j counts 1 + exp(lead_i - lead_j) times. All weights are
    zero if there is only one level.

    >>> order_weights(np.array([0, 2, 1, 0]))
    (array([-2.,  3.,  1., -2.]), 5.0)
    """
    place = np.unique(levels, return_inverse=True)[1]
    weights, n_triplets = _sum_triplets(place, np.ones(len(levels)))
    if lead is not None:
        more, n_more = _sum_triplets(place, np.exp(lead))
        weights, n_triplets = weights + more, n_triplets + n_more
    return weights, n_triplets


def _sum_triplets(place: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, float]:
    """Sums of up_i / up_j over the triplets of i above j: signed for each item, and in total.

    An item counts positive where it is above and negative where it is below. `place` numbers the
    levels; every sum is one of up_i, or of 1 / up_j, over whole levels.
    """
    down = 1.0 / up
    level_up, level_down = np.bincount(place, up), np.bincount(place, down)
    below = np.cumsum(level_down) - level_down
    above = np.cumsum(level_up[::-1])[::-1] - level_up
    gained = up * below[place]
    return gained - down * above[place], float(gained.sum())


def ranking_matrix(
    rows: np.ndarray,
    queries: np.ndarray,
    levels: np.ndarray,
    own: np.ndarray | None = None,
    lead: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """B = sum_m p_m q_m', shape (D, D), and the sum of the weights of all triplets.

    Parameters
    ----------
    rows : ndarray of shape (N, D)
        The items of every list.
    queries : ndarray of shape (M, D)
    levels : ndarray of shape (M, N)
        Higher is more relevant.
    own : ndarray of int, shape (M,), or None
        The item that is the query itself; its list leaves it out.
    lead : ndarray of shape (M, N) or None
        See `order_weights`.
    """
    weights, n_triplets = np.zeros(levels.shape), 0.0
    for m, list_levels in enumerate(levels):
        is_listed = np.ones(len(list_levels), bool)
        if own is not None:
            is_listed[own[m]] = False
        list_lead = None if lead is None else lead[m, is_listed]
        weights[m, is_listed], n_in_list = order_weights(list_levels[is_listed], list_lead)
        n_triplets += n_in_list
    matrix: np.ndarray = 2.0 * (weights @ rows).T @ queries
    return matrix, n_triplets


def mean_margins(
    rows: np.ndarray,
    supervision: Supervision,
    n_queries: int | None,
    earlier: list[BinaryCodes],
    rng: np.random.RandomState,
) -> np.ndarray:
    """The symmetric part S of B over the lists drawn, divided by their number of triplets.

    tr(A'SA) is the mean of q'A A'(x_i - x_j) over the triplets of i above j. The codes of earlier
    tables give items a lead: 2 for an item at the largest possible distance in all of them.
    """
    n_queries = len(rows) if n_queries is None else min(n_queries, len(rows))
    total, n_triplets = np.zeros((rows.shape[1], rows.shape[1])), 0.0
    for queries, levels in draw_lists(supervision, n_queries, rng):
        lead = None
        if earlier:
            near = smallest_distances([codes[queries] for codes in earlier], earlier)
            lead = near * (_BOOST / earlier[0].n_bits)
        matrix, n_in_block = ranking_matrix(rows, rows[queries], levels, queries, lead)
        total += matrix
        n_triplets += n_in_block
    if n_triplets == 0:
        raise InputError(
            "y must rank some rows above others for the same query, got one level in every list: "
            "all orders are equally good"
        )
    return (total + total.T) / (4.0 * n_triplets)  # B has every triplet twice


def draw_lists(
    supervision: Supervision, n_queries: int, rng: np.random.RandomState
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Queries drawn without repeats, (m,), and their lists of levels, (m, n), block by block.

    A row to which all others are equally relevant ranks nothing: another row is drawn instead.
    """
    n = len(supervision)
    everything, order, n_missing = np.arange(n), rng.permutation(n), n_queries
    step = max(1, min(n_queries, _BLOCK_CELLS // n))
    for start in range(0, n, step):
        queries = order[start : start + step]
        levels = supervision.levels(queries, everything)
        chosen = np.flatnonzero(_has_order(levels, queries))[:n_missing]
        n_missing -= len(chosen)
        if len(chosen):
            yield queries[chosen], levels[chosen]
        if n_missing == 0:
            return


def _has_order(levels: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Whether a list has two levels, apart from the query itself."""
    others = levels.copy()
    another = np.where(own == 0, levels.shape[1] - 1, 0)  # an item that is not the query
    rows = np.arange(len(levels))
    others[rows, own] = levels[rows, another]
    has_two_levels: np.ndarray = others.min(axis=1) < others.max(axis=1)
    return has_two_levels
