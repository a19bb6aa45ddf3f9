"""Boosted decision trees as hash functions: some trees for each bit, stored as arrays.

A tree of depth D is laid out as a full one: node k has the children 2k + 1 and 2k + 2, a row goes
to the second if its feature exceeds the node's threshold, and after D steps it is in one of 2^D
leaves. Nodes that do not split send every row to their first child. The logit of a bit is its
offset plus what the leaves of its trees say. scikit-learn grows the trees.

Rows are encoded without following a path node by node. A feature has few thresholds, so a row is
first described by how many of them it exceeds, one byte for each feature. Comparisons then are
between bytes, and the leaf is selected from the comparisons of all nodes by logical operations, for
many rows and trees at once.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.errors import RankbitsError

MAX_DEPTH = 8  # leaves are numbered by a byte
NEVER = float(np.finfo(np.float64).max)  # the threshold of a node that does not split
_CELLS = 1 << 15  # rows times trees that are worked on at a time, so that they stay in the cache
_SAMPLE = 256
_BINS = 63  # values of a feature that a split can tell apart; 255 are no better and take longer


class Forest:
    """Trees for each of b bits.

    Attributes
    ----------
    features : ndarray of int64, shape (b, trees, 2^D - 1)
        Feature that a node looks at.
    thresholds : ndarray of float64, shape (b, trees, 2^D - 1)
        What the feature must exceed.
    leaves : ndarray of float64, shape (b, trees, 2^D)
        What a leaf adds to the logit.
    offsets : ndarray of float64, shape (b,)
        The logits before the first tree.
    """

    def __init__(
        self,
        features: np.ndarray,
        thresholds: np.ndarray,
        leaves: np.ndarray,
        offsets: np.ndarray,
    ) -> None:
        self.features, self.thresholds = features, thresholds
        self.leaves, self.offsets = leaves, offsets
        self._used, self._columns = np.unique(features, return_inverse=True)
        self._columns = self._columns.reshape(features.shape)
        self._cuts, ranks = [], np.empty(features.shape, np.int64)
        for column in range(len(self._used)):
            is_here = self._columns == column
            cuts, ranks[is_here] = np.unique(thresholds[is_here], return_inverse=True)
            self._cuts.append(cuts)
        most = max(map(len, self._cuts))
        self._ranks = ranks.astype(np.uint8 if most < 1 << 8 else np.uint32)

    @property
    def depth(self) -> int:
        """D."""
        return int(self.leaves.shape[2]).bit_length() - 1

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Logits (n, b) of rows (n, d)."""
        exceeded = self._count_exceeded(rows)
        logits = np.empty((len(rows), len(self.offsets)))
        n_trees = max(1, _CELLS // max(len(rows), 1))
        for bit, offset in enumerate(self.offsets):
            total = np.full(len(rows), offset)
            for first in range(0, self.leaves.shape[1], n_trees):
                trees = slice(first, first + n_trees)
                reached = self._leaf_numbers(exceeded, bit, trees)
                leaves = self.leaves[bit, trees]
                starts = np.arange(len(leaves))[:, None] * leaves.shape[1]
                total += leaves.ravel()[reached + starts].sum(axis=0)
            logits[:, bit] = total
        return logits

    def _count_exceeded(self, rows: np.ndarray) -> np.ndarray:
        """How many thresholds of each feature in use a row exceeds, shape (features, n)."""
        exceeded = np.empty((len(self._used), len(rows)), self._ranks.dtype)
        for column, (feature, cuts) in enumerate(zip(self._used, self._cuts, strict=True)):
            exceeded[column] = np.searchsorted(cuts, rows[:, feature], side="left")
        return exceeded

    def _leaf_numbers(self, exceeded: np.ndarray, bit: int, trees: slice) -> np.ndarray:
        """The leaf of each row in some trees of a bit, shape (trees, n)."""
        ranks = self._ranks[bit, trees]
        goes_right = exceeded[self._columns[bit, trees]] > ranks[:, :, None]
        steps = list[np.ndarray]()
        number: np.ndarray = np.zeros((len(ranks), exceeded.shape[1]), np.uint8)
        for level in range(self.depth):
            nodes = goes_right[:, 2**level - 1 : 2 ** (level + 1) - 1]
            for step in steps:  # each halves the nodes among which a row can be
                half = nodes.shape[1] // 2
                left, right = nodes[:, :half], nodes[:, half:]
                nodes = left ^ (step & (left ^ right))
            steps.append(nodes)
            number = (number << 1) | nodes[:, 0]
        return number


@dataclass(frozen=True)
class TreeSettings:
    """How the trees of a bit are grown."""

    n_trees: int
    max_depth: int
    learning_rate: float

    def blank(self, n_bits: int) -> Forest:
        """Trees of so many bits that say 0 of every row."""
        shape, n_leaves = (n_bits, self.n_trees), 2**self.max_depth
        features = np.zeros((*shape, n_leaves - 1), np.int64)
        thresholds = np.full((*shape, n_leaves - 1), NEVER)
        return Forest(features, thresholds, np.zeros((*shape, n_leaves)), np.zeros(n_bits))

    def grow(self, rows: np.ndarray, bits: np.ndarray, seed: int) -> Forest:
        """Trees of one bit that tell the rows with bit +1 from those with -1.

        If all bits are equal, there is nothing to tell: the offset is that bit.
        """
        forest = self.blank(1)
        if (bits == bits[0]).all():
            forest.offsets[:] = bits[0]
            return forest
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import

        booster = HistGradientBoostingClassifier(
            max_iter=self.n_trees,
            max_depth=self.max_depth,
            max_leaf_nodes=None,
            learning_rate=self.learning_rate,
            max_bins=_BINS,
            early_stopping=False,
            random_state=seed,
        ).fit(rows, bits)
        forest = _convert(booster, forest)
        _require_same(booster.decision_function(rows[:_SAMPLE]), forest(rows[:_SAMPLE])[:, 0])
        return _center_thresholds(forest, rows)

    def join(self, forests: list[Forest]) -> Forest:
        """Trees of several bits as those of one code."""
        parts = zip(
            *((f.features, f.thresholds, f.leaves, f.offsets) for f in forests), strict=True
        )
        return Forest(*map(np.concatenate, parts))


def _convert(booster: Any, blank: Forest) -> Forest:
    """The trees of scikit-learn's booster, laid out in those of a blank forest of one bit."""
    for tree, (predictor,) in enumerate(booster._predictors):
        _lay_out(predictor.nodes, tree, blank)
    offset = float(np.ravel(booster._baseline_prediction)[0])
    return Forest(blank.features, blank.thresholds, blank.leaves, np.array([offset]))


def _lay_out(nodes: np.ndarray, tree: int, forest: Forest) -> None:
    """Write one tree: level by level, `here` has the node that stands at each place."""
    here = np.zeros(1, np.int64)
    for level in range(forest.depth):
        places = slice(2**level - 1, 2 ** (level + 1) - 1)
        is_split = nodes["is_leaf"][here] == 0
        forest.features[0, tree, places] = np.where(is_split, nodes["feature_idx"][here], 0)
        forest.thresholds[0, tree, places] = np.where(is_split, nodes["num_threshold"][here], NEVER)
        children = np.stack([nodes["left"][here], nodes["right"][here]], axis=1).astype(np.int64)
        here = np.where(is_split[:, None], children, here[:, None]).ravel()
    forest.leaves[0, tree] = nodes["value"][here]


def _center_thresholds(forest: Forest, rows: np.ndarray) -> Forest:
    """The same trees with every threshold halfway between the training values on its two sides.

    scikit-learn's thresholds may be training values themselves; a row that is rounded to float32,
    as it is in an exported model, would then change sides.
    """
    thresholds = forest.thresholds.copy()
    for feature in np.unique(forest.features):
        is_here = (forest.features == feature) & (thresholds < NEVER)
        values = np.unique(rows[:, feature])
        above = np.searchsorted(values, thresholds[is_here], side="right")
        above = np.clip(above, 1, len(values) - 1)
        thresholds[is_here] = values[above - 1] / 2 + values[above] / 2
    return Forest(forest.features, thresholds, forest.leaves, forest.offsets)


def _require_same(expected: np.ndarray, logits: np.ndarray) -> None:
    """Refuse trees that do not say what scikit-learn's do: its layout is not documented."""
    if not np.allclose(expected, logits, rtol=1e-9, atol=1e-9):
        raise RankbitsError(
            "the trees must give scikit-learn's values, but differ; this version of scikit-learn "
            "stores them in another way, please report this"
        )
