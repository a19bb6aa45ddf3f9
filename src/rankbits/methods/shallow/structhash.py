"""StructHash: hash functions generated one by one for the loss of whole ranking lists [1]_.

A query q ranks its list by the weighted Hamming distance; a ranking y of the list scores

    w'ψ(q, y),  ψ_r = mean over relevant i, irrelevant j of y_ij ([r differs: q, j] - [.. q, i])

y_ij = 1 if i stands above j, else -1. With δψ(y) = ψ(ideal) - ψ(y) in the mean over the queries and
Δ(y) the mean loss, the weights of given functions solve a linear program, whose rankings come as
cuts (`structhash_master`):

    minimize over w, ξ >= 0   |w|₁ + C ξ    such that   w'δψ(y) >= Δ(y) - ξ   for all rankings y

Its dual gives each cut c a price λ_c, and says which further function h would lower the objective
most: the one with the largest sum over c of λ_c δψ_c(h). That sum is one over pairs (q, x),

    sum of  W_qx z_q z_x / 2 + constant,   W = sum over c of λ_c times the weights of cut c,

so the bit of each row is found as in `fasthash`, by an eigenvector and by cuts of blocks of
mutually relevant rows, and trees are fitted to it.

What we took where the sources leave it open: the exact loss 1 - NDCG, where the paper simplifies it
to make inference quick, for `lwh_violated` finds the most violated ranking in O(n log n); 1 - AUC
and 1 - AP by the same search. Codes are compared by plain Hamming distance here, so all bits have
one weight by default: the master problem then has a single w. `weights="learned"` is the paper's.

.. [1] G. Lin, C. Shen and J. Wu, "Optimizing ranking measures for compact binary code learning",
   ECCV 2014.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.methods.shallow.block_cuts import group_rows, minimize_bit, spectral_bits
from rankbits.methods.shallow.learned import Shapes
from rankbits.methods.shallow.lwh_lists import draw_lists
from rankbits.methods.shallow.pair_sampling import supervise_pairs
from rankbits.methods.shallow.principal import require_variation
from rankbits.methods.shallow.progress import check_verbose, show_progress
from rankbits.methods.shallow.structhash_master import LOSSES, WEIGHTS, Master, MasterSettings
from rankbits.methods.shallow.tree_hasher import TreeHasher
from rankbits.methods.shallow.trees import Forest


class StructHash(TreeHasher):
    """Column generation of boosted trees for the loss 1 - NDCG of ranking lists (StructHash) [1]_.

    The list of a query is all other rows.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length.
    loss : {"ndcg", "map", "auc"}, default="ndcg"
        The loss of a ranking: 1 - NDCG with the discount 1 / log2(1 + rank), 1 - AP, or 1 - AUC,
        the share of pairs in the wrong order.
    weights : {"equal", "learned"}, default="equal"
        Whether all bits weigh alike, as in the plain Hamming distance, or each as the linear
        program says, for `rankbits.index.weighted_bits(hasher.weights_)`.
    n_queries : int, default=300
        Training rows that act as queries, drawn at random among those that have both relevant and
        irrelevant rows; all of these if there are no more.
    slack_cost : float, default=100.0
        C.
    epsilon : float, default=0.01
        Cuts for a bit end once the next one needs at most this much more slack than those so far.
    max_cuts : int, default=10
        Most cuts that a bit may add.
    n_trees : int, default=200
        Trees of a bit.
    max_depth : int, 1 to 8, default=4
        Depth of a tree.
    learning_rate : float, default=0.1
        Share of what a tree would add to the logit that it does add.
    verbose : bool or "auto", default=False
        Whether a progress bar is shown on standard error; "auto" shows it on a terminal.
    random_state : int, RandomState or None, default=None
        Seed of the queries, of the first bits of the rows, and of the trees.

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

    _arrays: ClassVar[Shapes] = {**TreeHasher._arrays, "weights": ("b",)}
    _facts: ClassVar[dict[str, type]] = {"history": list}

    weights_: np.ndarray
    history_: list[dict[str, Any]]

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "ndcg",
        weights: str = "equal",
        n_queries: int = 300,
        slack_cost: float = 100.0,
        epsilon: float = 0.01,
        max_cuts: int = 10,
        n_trees: int = 200,
        max_depth: int = 4,
        learning_rate: float = 0.1,
        verbose: bool | str = False,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.loss = loss
        self.weights = weights
        self.n_queries = n_queries
        self.slack_cost = slack_cost
        self.epsilon = epsilon
        self.max_cuts = max_cuts
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the trees of all bits, and their weights.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Rows with a level above 0 are relevant; no row is in its own list. None takes the
            ten rows nearest to each as relevant.
        """
        n_bits, settings, trees = self._code_length(), self._check_parameters(), self._check_trees()
        rows = self._training_rows(X, y)
        supervision = supervise_pairs(rows, y)
        require_variation(rows)
        random_state = check_random_state(self.random_state)
        queries, lists = draw_lists(supervision, self.n_queries, random_state)
        rng = np.random.default_rng(random_state.randint(1 << 31))
        master, forests, history = Master(queries, lists, settings), list[Forest](), []
        blocks = group_rows(master.pairs())
        with show_progress(self.verbose, "bit", n_bits) as advance:
            for _ in range(n_bits):
                prices = master.pair_weights()
                labels = minimize_bit(prices, blocks, spectral_bits(prices, rng))
                forest = trees.grow(rows, labels, int(rng.integers(1 << 31)))
                predicted = np.where(forest(rows)[:, 0] > 0, 1.0, -1.0)
                forests.append(forest)
                agreement = float(np.mean(labels == predicted))
                history.append({"agreement": agreement, **master.add_function(predicted)})
                advance(f"slack {history[-1]['violation']:.4g}")
        self.forest_, self.weights_, self.history_ = trees.join(forests), master.weights, history
        return self

    def _check_parameters(self) -> MasterSettings:
        """The parameters of the linear program, checked."""
        check_verbose(self.verbose)
        _check.whole("n_queries", self.n_queries, 1)
        return MasterSettings(
            _check.choice("loss", self.loss, LOSSES),
            _check.choice("weights", self.weights, WEIGHTS) == "equal",
            _check.number("slack_cost", self.slack_cost, closed=False),
            _check.number("epsilon", self.epsilon, closed=False),
            _check.whole("max_cuts", self.max_cuts, 1),
        )
