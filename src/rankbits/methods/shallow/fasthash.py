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

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, VERBOSE, Seed
from rankbits.methods.parameters.fields import choice, fact, parameter
from rankbits.methods.shallow.shared.bitwise import signs_of
from rankbits.methods.shallow.shared.block_cuts import (
    energy,
    group_rows,
    minimize_bit,
    spectral_bits,
)
from rankbits.methods.shallow.shared.pair_losses import LOSSES, bit_weights, pair_losses
from rankbits.methods.shallow.shared.pair_sampling import Pairs, draw_pairs, supervise_pairs
from rankbits.methods.shallow.shared.parameters import (
    N_DISSIMILAR,
    N_SIMILAR,
    N_TREES,
    TREE_DEPTH,
    TREE_RATE,
)
from rankbits.methods.shallow.shared.principal import require_variation
from rankbits.methods.shallow.shared.progress import show_progress
from rankbits.methods.shallow.shared.tree_hasher import TreeHasher
from rankbits.methods.shallow.shared.trees import Forest, TreeSettings


class FastHash(TreeHasher):
    """Two steps a bit: labels of the rows by graph cuts, then boosted trees (FastHash) [1]_.

    Parameters
    ----------
    loss : {"hinge", "ksh", "exponential"}, default="hinge"
        Loss of a pair at distance d of r bits. Hinge: d² if it is similar, else
        max(0, r/2 - d)². With s = r - 2d and y = 1 or -1, ksh: (s - r y)², exponential:
        exp(-s y / r).

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

    loss: str = parameter("hinge", choice(*LOSSES))
    n_similar: int = N_SIMILAR
    n_dissimilar: int = N_DISSIMILAR
    n_trees: int = N_TREES
    max_depth: int = TREE_DEPTH
    learning_rate: float = TREE_RATE
    verbose: bool | str = VERBOSE
    random_state: Seed = RANDOM_STATE

    history_: list[dict[str, Any]] = fact(list)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the trees of all bits.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Rows are similar if the level of either for the other is above 0. None takes the ten
            rows nearest to each as similar.
        """
        rows, settings = self._training_rows(X, y), self._tree_settings()
        supervision = supervise_pairs(rows, y)
        require_variation(rows)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(1 << 31))
        pairs = draw_pairs(supervision, self.n_similar, self.n_dissimilar, rng)
        learner = _BitLearner(rows, pairs, self.loss, settings, rng)
        with show_progress(self.verbose, "bit", self.n_bits) as advance:
            for _ in range(self.n_bits):
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
        predicted = signs_of(forest(self.rows)[:, 0])
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
