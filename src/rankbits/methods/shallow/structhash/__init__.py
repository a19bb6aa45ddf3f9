"""StructHash: hash functions generated one by one for the loss of whole ranking lists [1]_.

A query q ranks its list by the weighted Hamming distance; a ranking y of the list scores

    w'ψ(q, y),  ψ_r = mean over relevant i, irrelevant j of y_ij ([r differs: q, j] - [.. q, i])

y_ij = 1 if i stands above j, else -1. With δψ(y) = ψ(ideal) - ψ(y) in the mean over the queries and
Δ(y) the mean loss, the weights of given functions solve a linear program, whose rankings come as
cuts (`master`):

    minimize over w, ξ >= 0   |w|₁ + C ξ    such that   w'δψ(y) >= Δ(y) - ξ   for all rankings y

Its dual gives each cut c a price λ_c, and says which further function h would lower the objective
most: the one with the largest sum over c of λ_c δψ_c(h). That sum is one over pairs (q, x),

    sum of  W_qx z_q z_x / 2 + constant,   W = sum over c of λ_c times the weights of cut c,

so the bit of each row is found as in `fasthash`, by an eigenvector and by cuts of blocks of
mutually relevant rows, and trees are fitted to it.

What we took where the sources leave it open: the exact loss 1 - NDCG, where the paper simplifies it
to make inference quick, for `violated_rankings` finds the most violated ranking in O(n log n), and
1 - AUC and 1 - AP by the same search. Codes are compared by plain Hamming distance here, so all
bits have one weight by default: the master problem then has a single w. `weights="learned"` is the
paper's.

.. [1] G. Lin, C. Shen and J. Wu, "Optimizing ranking measures for compact binary code learning",
   ECCV 2014.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, VERBOSE, Seed
from rankbits.methods.parameters.fields import choice, fact, integer, learned, number, parameter
from rankbits.methods.shallow.shared.bitwise import signs_of
from rankbits.methods.shallow.shared.block_cuts import group_rows, minimize_bit, spectral_bits
from rankbits.methods.shallow.shared.pair_sampling import supervise_pairs
from rankbits.methods.shallow.shared.parameters import N_QUERIES, N_TREES, TREE_DEPTH, TREE_RATE
from rankbits.methods.shallow.shared.principal import require_variation
from rankbits.methods.shallow.shared.progress import show_progress
from rankbits.methods.shallow.shared.ranking_lists import draw_lists
from rankbits.methods.shallow.shared.tree_hasher import TreeHasher
from rankbits.methods.shallow.shared.trees import Forest
from rankbits.methods.shallow.structhash.master import LOSSES, Master, MasterSettings


class StructHash(TreeHasher):
    """Column generation of boosted trees for the loss 1 - NDCG of ranking lists (StructHash) [1]_.

    The list of a query is all other rows.

    Parameters
    ----------
    loss : {"ndcg", "map", "auc"}, default="ndcg"
        The loss of a ranking: 1 - NDCG with the discount 1 / log2(1 + rank), 1 - AP, or 1 - AUC,
        the share of pairs in the wrong order.
    weights : {"equal", "learned"}, default="equal"
        Whether all bits weigh alike, as in the plain Hamming distance, or each as the linear
        program says, for `rankbits.index.weighted_bits(hasher.weights_)`.
    slack_cost : float, default=100.0
        C.
    epsilon : float, default=0.01
        Cuts for a bit end once the next one needs at most this much more slack than those so far.
    max_cuts : int, default=10
        Most cuts that a bit may add.

    Attributes
    ----------
    forest_ : Forest
        The trees of all bits.
    weights_ : ndarray of shape (n_bits,)
        w, 0 or more.
    history_ : list of dict
        For each bit: `gain`, the sum of λ_c δψ_c of the new function, which lowers the objective if
        it is above 1; `agreement`, the share of training rows of which the trees say what their
        label is; `cuts`, those that the program has; `objective`, `slack` and `violation` (what ξ
        would be on all rankings).

    References
    ----------
    .. [1] G. Lin, C. Shen and J. Wu, "Optimizing ranking measures for compact binary code
       learning", ECCV 2014.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> x, y = data.database_x[:200], data.database_y[:200]
    >>> hasher = StructHash(n_bits=4, n_trees=10, random_state=0).fit(x, y)
    >>> hasher.encode(data.query_x[:3])
    BinaryCodes(n=3, n_bits=4)
    """

    loss: str = parameter("ndcg", choice(*LOSSES))
    weights: str = parameter("equal", choice("equal", "learned"))
    n_queries: int = N_QUERIES
    slack_cost: float = parameter(100.0, number(closed=False))
    epsilon: float = parameter(0.01, number(closed=False))
    max_cuts: int = parameter(10, integer(1))
    n_trees: int = N_TREES
    max_depth: int = TREE_DEPTH
    learning_rate: float = TREE_RATE
    verbose: bool | str = VERBOSE
    random_state: Seed = RANDOM_STATE

    weights_: np.ndarray = learned("b")
    history_: list[dict[str, Any]] = fact(list)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the trees of all bits, and their weights.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Rows with a level above 0 are relevant; no row is in its own list. None takes the
            ten rows nearest to each as relevant.
        """
        rows, trees = self._training_rows(X, y), self._tree_settings()
        supervision = supervise_pairs(rows, y)
        require_variation(rows)
        random_state = check_random_state(self.random_state)
        queries, lists = draw_lists(supervision, self.n_queries, random_state)
        rng = np.random.default_rng(random_state.randint(1 << 31))
        master, forests, history = Master(queries, lists, self._settings()), list[Forest](), []
        blocks = group_rows(master.pairs())
        with show_progress(self.verbose, "bit", self.n_bits) as advance:
            for _ in range(self.n_bits):
                prices = master.pair_weights()
                labels = minimize_bit(prices, blocks, spectral_bits(prices, rng))
                forest = trees.grow(rows, labels, int(rng.integers(1 << 31)))
                predicted = signs_of(forest(rows)[:, 0])
                forests.append(forest)
                agreement = float(np.mean(labels == predicted))
                history.append({"agreement": agreement, **master.add_function(predicted)})
                advance(f"slack {history[-1]['violation']:.4g}")
        self.forest_, self.weights_, self.history_ = trees.join(forests), master.weights, history
        return self

    def _settings(self) -> MasterSettings:
        is_equal = self.weights == "equal"
        return MasterSettings(self.loss, is_equal, self.slack_cost, self.epsilon, self.max_cuts)
