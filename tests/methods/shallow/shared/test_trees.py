"""Trees as hash functions: node by node, by bytes and by scikit-learn they say the same."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from oracles.pair_bits import walk_tree
from rankbits.errors import RankbitsError
from rankbits.methods.shallow.shared import trees
from rankbits.methods.shallow.shared.trees import NEVER, Forest, TreeSettings


def random_forest(rng, n_bits=2, n_trees=3, depth=3, n_features=4):
    nodes = (n_bits, n_trees, 2**depth - 1)
    thresholds = rng.integers(-2, 3, nodes).astype(float)
    thresholds[rng.random(nodes) < 0.2] = NEVER
    leaves = rng.standard_normal((*nodes[:2], 2**depth))
    return Forest(rng.integers(0, n_features, nodes), thresholds, leaves, np.arange(n_bits) + 0.5)


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("cells", [1, 7, 1 << 15])
def test_a_row_reaches_the_leaf_to_which_the_nodes_send_it(depth, cells, rng, monkeypatch):
    monkeypatch.setattr(trees, "_CELLS", cells)
    forest = random_forest(rng, depth=depth)
    rows = rng.integers(-3, 4, (30, 4)) * 1.0  # many stand exactly on a threshold
    expected = [
        [
            offset + sum(map(walk_tree, [row] * 3, *parts))
            for offset, *parts in zip(
                forest.offsets, forest.features, forest.thresholds, forest.leaves, strict=True
            )
        ]
        for row in rows
    ]
    np.testing.assert_allclose(forest(rows), expected, rtol=0, atol=1e-12)


def test_a_feature_may_have_more_thresholds_than_a_byte_can_number(rng):
    forest = random_forest(rng, n_bits=1, n_trees=90, n_features=1)
    forest = Forest(
        forest.features, rng.permuted(np.arange(630.0)).reshape(1, 90, 7), forest.leaves, np.ones(1)
    )
    rows = rng.uniform(0, 630, (9, 1))
    expected = [
        1.0
        + sum(
            map(walk_tree, [row] * 90, forest.features[0], forest.thresholds[0], forest.leaves[0])
        )
        for row in rows
    ]
    np.testing.assert_allclose(forest(rows)[:, 0], expected)


@pytest.mark.parametrize("depth", [1, 4])
def test_grown_trees_say_what_scikit_learns_do(depth, rng):
    rows = np.round(rng.standard_normal((200, 5)), 1)
    bits = np.where(rows[:, 0] * rows[:, 1] > 0.2, 1.0, -1.0)
    forest = TreeSettings(20, depth, 0.3).grow(rows, bits, 0)
    booster = HistGradientBoostingClassifier(
        max_iter=20,
        max_depth=depth,
        max_leaf_nodes=None,
        learning_rate=0.3,
        max_bins=63,
        early_stopping=False,
        random_state=0,
    ).fit(rows, bits)
    others = rng.standard_normal((50, 5))
    np.testing.assert_allclose(forest(others)[:, 0], booster.decision_function(others))
    if depth == 4:
        assert np.mean((forest(rows)[:, 0] > 0) == (bits > 0)) > 0.95


@pytest.mark.parametrize("bit", [-1.0, 1.0])
def test_a_bit_that_all_rows_share_needs_no_trees(bit, rng):
    forest = TreeSettings(3, 2, 0.1).grow(rng.standard_normal((6, 2)), np.full(6, bit), 0)
    assert (forest(rng.standard_normal((4, 2))) == bit).all()


def test_trees_in_another_layout_are_refused(rng, monkeypatch):
    rows = rng.standard_normal((80, 2))
    monkeypatch.setattr(trees, "_lay_out", lambda nodes, tree, forest: None)
    with pytest.raises(RankbitsError, match="the trees must give scikit-learn's values"):
        TreeSettings(3, 2, 0.1).grow(rows, np.sign(rows[:, 0]), 0)


def test_bits_are_joined_in_their_order(rng):
    settings, rows = TreeSettings(4, 2, 0.2), rng.standard_normal((60, 3))
    forests = [settings.grow(rows, np.sign(rows[:, k]), 0) for k in range(3)]
    joined = settings.join(forests)(rows)
    np.testing.assert_allclose(joined, np.column_stack([forest(rows) for forest in forests]))
