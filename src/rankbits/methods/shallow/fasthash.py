"""FastHash: one bit at a time, first which value each row should have, then trees that say it [1]_.

The loss of a pair depends on the Hamming distance d_ij of its codes and on whether it is similar
(`pair_losses`). With r - 1 bits learned, bit r is found in two steps:

    labels      minimize over z in {-1, +1}^n   sum over pairs of a_ij z_i z_j / 2
                a_ij = L(d_ij) - L(d_ij + 1), d_ij the distances of the r - 1 bits as *predicted*
    function    boosted trees are fitted to z; their signs are bit r

The labels start from the eigenvector of the least eigenvalue of (a_ij) and descend by cuts of
blocks of mutually similar rows (`block_cuts`), each of which is solved exactly. Later bits see what
the trees really predict, so they correct what the earlier ones got wrong.

What we changed: the pairs are a sample, some hundred of each row, instead of all n²; a row is in
one block, where the paper lets blocks overlap; scikit-learn's histogram gradient boosting stands
for the paper's AdaBoost with its trimming of weights, for both make depth-4 trees affordable.

.. [1] G. Lin, C. Shen, Q. Shi, A. van den Hengel and D. Suter, "Fast supervised hashing with
   decision trees for high-dimensional data", CVPR 2014.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.methods.shallow.block_cuts import energy, group_rows, minimize_bit, spectral_bits
from rankbits.methods.shallow.pair_losses import LOSSES, bit_weights, pair_losses
from rankbits.methods.shallow.pair_sampling import Pairs, draw_pairs, supervise_pairs
from rankbits.methods.shallow.principal import require_variation
from rankbits.methods.shallow.progress import check_verbose, show_progress
from rankbits.methods.shallow.tree_hasher import TreeHasher
from rankbits.methods.shallow.trees import Forest, TreeSettings


class FastHash(TreeHasher):
    """Two steps a bit: labels of the rows by graph cuts, then boosted trees (FastHash) [1]_.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length.
    loss : {"hinge", "ksh", "exponential"}, default="hinge"
        Loss of a pair at distance d of r bits. Hinge: d² if it is similar, else
        max(0, r/2 - d)². With s = r - 2d and y = 1 or -1, ksh: (s - r y)², exponential:
        exp(-s y / r).
    n_similar : int, default=100
        Similar rows that each row is paired with, drawn at random; all if it has no more.
    n_dissimilar : int, default=100
        The same of dissimilar rows.
    n_trees : int, default=200
        Trees of a bit.
    max_depth : int, 1 to 8, default=4
        Depth of a tree.
    learning_rate : float, default=0.1
        Share of what a tree would add to the logit that it does add.
    verbose : bool or "auto", default=False
        Whether a progress bar is shown on standard error; "auto" shows it on a terminal.
    random_state : int, RandomState or None, default=None
        Seed of the pairs, of the first labels of a bit, and of the trees.

    Attributes
    ----------
    forest_ : Forest
        The trees of all bits.
    history_ : list of dict
        For each bit: `start` and `energy`, the sum that the labels minimize at its start and at its
        end; `agreement`, the share of training rows of which the trees say what their label is;
        `loss`, the mean loss of the pairs with this bit and those before it, as predicted.

    References
    ----------
    .. [1] G. Lin, C. Shen, Q. Shi, A. van den Hengel and D. Suter, "Fast supervised hashing with
       decision trees for high-dimensional data", CVPR 2014.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> x, y = data.database_x[:200], data.database_y[:200]
    >>> hasher = FastHash(n_bits=8, n_trees=10, random_state=0).fit(x, y)
    >>> hasher.encode(data.query_x[:3])
    BinaryCodes(n=3, n_bits=8)
    """

    _facts: ClassVar[dict[str, type]] = {"history": list}

    history_: list[dict[str, Any]]

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "hinge",
        n_similar: int = 100,
        n_dissimilar: int = 100,
        n_trees: int = 200,
        max_depth: int = 4,
        learning_rate: float = 0.1,
        verbose: bool | str = False,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.loss = loss
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the trees of all bits.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Rows are similar if the level of either for the other is above 0. None takes the ten
            rows nearest to each as similar.
        """
        n_bits, settings = self._code_length(), self._check_trees()
        _check.choice("loss", self.loss, LOSSES)
        n_similar = _check.whole("n_similar", self.n_similar, 1)
        n_dissimilar = _check.whole("n_dissimilar", self.n_dissimilar, 1)
        verbose = check_verbose(self.verbose)
        rows = self._training_rows(X, y)
        supervision = supervise_pairs(rows, y)
        require_variation(rows)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(1 << 31))
        pairs = draw_pairs(supervision, n_similar, n_dissimilar, rng)
        learner = _BitLearner(rows, pairs, self.loss, settings, rng)
        with show_progress(verbose, "bit", n_bits) as advance:
            for _ in range(n_bits):
                learner.learn_bit()
                advance(f"loss {learner.history[-1]['loss']:.4g}")
        self.forest_, self.history_ = settings.join(learner.forests), learner.history
        return self


class _BitLearner:
    """The bits learned so far, and the distances that they give the pairs."""

    def __init__(
        self,
        rows: np.ndarray,
        pairs: Pairs,
        loss: str,
        settings: TreeSettings,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.pairs, self.loss, self.settings, self.rng = rows, pairs, loss, settings, rng
        self.blocks = group_rows(pairs)
        self.distances = np.zeros(len(pairs.first), np.int64)
        self.forests, self.history = list[Forest](), list[dict[str, Any]]()

    def learn_bit(self) -> None:
        """Labels, trees, and the distances with the bit that the trees predict."""
        n_bits = len(self.forests) + 1
        weights = self.pairs.matrix(
            bit_weights(self.loss, n_bits, self.distances, self.pairs) / 2.0
        )
        start = spectral_bits(weights, self.rng)
        labels = minimize_bit(weights, self.blocks, start)
        forest = self.settings.grow(self.rows, labels, int(self.rng.integers(1 << 31)))
        predicted = np.where(forest(self.rows)[:, 0] > 0, 1.0, -1.0)
        self.distances += self.pairs.differ(predicted)
        self.forests.append(forest)
        losses = pair_losses(self.loss, n_bits, self.distances, self.pairs)
        self.history.append(
            {
                "start": energy(weights, start),
                "energy": energy(weights, labels),
                "agreement": float(np.mean(labels == predicted)),
                "loss": float(losses.mean()),
            }
        )
