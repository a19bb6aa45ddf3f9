"""The master problem of StructHash: weights of given hash functions, by cuts and a linear program.

    minimize over w, ξ >= 0   |w|₁ + C ξ    such that   w'δψ_c >= Δ_c - ξ   for every cut c

A cut is a ranking of all lists at once (the 1-slack form of T. Joachims, T. Finley and C.-N. J. Yu,
"Cutting-plane training of structural SVMs", Machine Learning 77, 2009). It is stored as the table
of its weights W_c (queries, items): the ideal rankings score sum of W_c times the scores more than
those of the cut, in the mean over the queries. The score of an item is minus its weighted distance,
so for a function with the bits z

    δψ_c = - sum over q, x of W_c [z_q and z_x differ] = sum of W_c (z_q z_x - 1) / 2
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from rankbits.methods.shallow.shared.pair_sampling import Pairs, store_pairs
from rankbits.methods.shallow.shared.ranking_lists import RankingLists
from rankbits.methods.shallow.shared.violated_rankings import most_violated

LOSSES = ("ndcg", "map", "auc")
WEIGHTS = ("equal", "learned")


@dataclass(frozen=True)
class MasterSettings:
    """The loss, whether all weights are equal, C, and when a bit has enough cuts."""

    loss: str
    is_equal: bool
    slack_cost: float
    epsilon: float
    max_cuts: int


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved linear program.

    Attributes
    ----------
    weights : ndarray of shape (functions,)
        w.
    slack : float
        ξ.
    prices : ndarray of shape (cuts,)
        λ, the duals of the cuts.
    objective : float
        |w|₁ + C ξ, which equals the sum of λ_c Δ_c.
    """

    weights: np.ndarray
    slack: float
    prices: np.ndarray
    objective: float


def solve_program(
    features: np.ndarray, losses: np.ndarray, slack_cost: float, *, is_equal: bool
) -> Solution:
    """Weights for cuts with the features δψ (cuts, functions) and the losses Δ (cuts,).

    >>> solution = solve_program(np.array([[0.5]]), np.array([1.0]), 10.0, is_equal=False)
    >>> solution.weights, solution.slack, solution.prices
    (array([2.]), 0.0, array([2.]))
    """
    from scipy.optimize import linprog  # slow to import, and only fitting needs it

    n_functions = features.shape[1]
    used = features.sum(axis=1, keepdims=True) if is_equal else features
    costs = np.full(used.shape[1], float(n_functions) if is_equal else 1.0)
    result = linprog(
        np.append(costs, slack_cost),
        A_ub=np.column_stack([-used, -np.ones(len(losses))]),
        b_ub=-losses,
        method="highs",
    )
    weights = np.broadcast_to(result.x[:-1], n_functions) if is_equal else result.x[:-1]
    prices = np.maximum(-result.ineqlin.marginals, 0.0)
    return Solution(weights.copy(), float(result.x[-1]), prices, float(result.fun))


class Master:
    """The functions and the cuts so far, and the solution that they have.

    Attributes
    ----------
    bits : ndarray of float64, shape (n, functions)
        Of all rows, -1 and +1.
    weights : ndarray of shape (functions,)
        w.
    prices : ndarray of shape (cuts,)
        λ.
    """

    def __init__(self, queries: np.ndarray, lists: RankingLists, settings: MasterSettings) -> None:
        self.queries, self.lists, self.settings = queries, lists, settings
        self.bits, self.weights = np.empty((lists.is_relevant.shape[1], 0)), np.empty(0)
        self._tables, self._losses = list[np.ndarray](), np.empty(0)
        self._features, self.prices = np.empty((0, 0)), np.ones(1)
        self._append(*self._most_violated()[:2])  # without functions: the worst of all rankings

    def pairs(self) -> Pairs:
        """The pairs of a query and an item of its list; similar if relevant both ways."""
        n = len(self.bits)
        items, queries = np.arange(n), self.queries[:, None]
        keys = np.minimum(queries, items) * n + np.maximum(queries, items)
        irrelevant = keys[self.lists.is_irrelevant]
        return store_pairs(np.setdiff1d(keys[self.lists.is_relevant], irrelevant), irrelevant, n)

    def pair_weights(self) -> csr_array:
        """Weights a (n, n), symmetric: the sum of a_ij z_i z_j is minus the gain of a function."""
        n, total = len(self.bits), np.zeros(self.lists.is_relevant.shape)
        for price, table in zip(self.prices, self._tables, strict=True):
            total += price * table
        place, items = np.nonzero(total)
        shape, where = (n, n), (self.queries[place], items)
        one_way = coo_array((-total[place, items] / 4.0, where), shape=shape)
        return csr_array(one_way + one_way.T)

    def add_function(self, bits: np.ndarray) -> dict[str, Any]:
        """Solve the problem with one more function; returns what `history_` has of it."""
        column = np.array([self._feature(table, bits) for table in self._tables])
        gain = float(column @ self.prices)
        self._features = np.column_stack([self._features, column])
        self.bits = np.column_stack([self.bits, bits])
        solution, violation = self._solve(), np.inf
        for _ in range(self.settings.max_cuts):
            table, loss, violation = self._most_violated()
            if violation <= solution.slack + self.settings.epsilon:
                break
            self._append(table, loss)
            solution = self._solve()
        record = {"gain": gain, "cuts": len(self._tables), "objective": solution.objective}
        self._drop_idle_cuts()
        return {**record, "slack": solution.slack, "violation": float(violation)}

    def _solve(self) -> Solution:
        """Weights and prices for the cuts so far."""
        cost, is_equal = self.settings.slack_cost, self.settings.is_equal
        solution = solve_program(self._features, self._losses, cost, is_equal=is_equal)
        self.weights, self.prices = solution.weights, solution.prices
        return solution

    def _most_violated(self) -> tuple[np.ndarray, float, float]:
        """The next cut: its table, its loss, and the slack that it needs."""
        scores = (self.bits[self.queries] * self.weights) @ self.bits.T / 2.0
        worst = most_violated(scores, self.lists, self.settings.loss)
        table, loss = worst.weights / len(self.lists), float(worst.losses.mean())
        return table, loss, loss - float((table * scores).sum())

    def _append(self, table: np.ndarray, loss: float) -> None:
        row = np.array([[self._feature(table, bits) for bits in self.bits.T]])
        self._features = np.concatenate([self._features, row])
        self._losses = np.append(self._losses, loss)
        self._tables.append(table.astype(np.float32))

    def _feature(self, table: np.ndarray, bits: np.ndarray) -> float:
        """δψ of a cut and a function; the weights of a list add up to 0."""
        return float(bits[self.queries] @ (table @ bits)) / 2.0

    def _drop_idle_cuts(self) -> None:
        """Forget the cuts without a price; one that is violated again comes back."""
        has_price = self.prices > 0
        self._tables = [t for t, is_used in zip(self._tables, has_price, strict=True) if is_used]
        self._losses, self._features = self._losses[has_price], self._features[has_price]
        self.prices = self.prices[has_price]
