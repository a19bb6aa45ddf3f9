"""StructHash: brute force of rankings, duality of the program, prices of pairs, and its results."""

import numpy as np
import pytest

import rankbits
from oracles.structhash import largest_slack
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import InputError
from rankbits.index import HammingIndex, weighted_bits
from rankbits.methods.shallow.shared.block_cuts import energy
from rankbits.methods.shallow.shared.ranking_lists import RankingLists
from rankbits.methods.shallow.structhash.master import (
    LOSSES,
    Master,
    MasterSettings,
    solve_program,
)

DATA = digits()
X, Y = DATA.database_x[:200], DATA.database_y[:200]


def create(**params):
    return methods.get("structhash", **{"random_state": 0, "n_trees": 8, "n_bits": 4, **params})


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y[:99], DATA.database_y)
    items = hasher.encode(DATA.database_x)
    return evaluate(hasher.encode(DATA.query_x[:99]), items, relevant).mean["AP"]


def small_master(loss="ndcg", *, is_equal=True, slack_cost=5.0):
    """Three queries among six rows of three classes."""
    y, queries = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 3, 4])
    is_other = queries[:, None] != np.arange(6)
    is_relevant = (y[queries][:, None] == y) & is_other
    lists = RankingLists(is_relevant, ~is_relevant & is_other)
    return Master(queries, lists, MasterSettings(loss, is_equal, slack_cost, 1e-9, 50))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_equal", [True, False])
def test_no_ranking_of_any_list_needs_more_slack_than_the_program_found(loss, is_equal, rng):
    master = small_master(loss, is_equal=is_equal)
    for _ in range(4):
        record = master.add_function(rng.choice([-1.0, 1.0], 6))
        slacks = []
        for query, is_relevant in zip(master.queries, master.lists.is_relevant, strict=True):
            items = np.arange(6) != query
            codes = master.bits[items]
            slacks.append(
                largest_slack(master.bits[query], codes, is_relevant[items], master.weights, loss)
            )
        assert record["violation"] == pytest.approx(np.mean(slacks), abs=1e-9)
        assert record["violation"] <= record["slack"] + 1e-6
        cost = master.weights.sum() + 5.0 * record["slack"]
        assert record["objective"] == pytest.approx(cost)


def test_prices_prove_that_the_weights_are_optimal(rng):
    """Weak duality holds for any λ >= 0; equality shows both to be optimal."""
    for is_equal in (True, False):
        features, losses = rng.uniform(-0.2, 1, (7, 4)), rng.uniform(0, 1, 7)
        solution = solve_program(features, losses, 3.0, is_equal=is_equal)
        assert (solution.weights >= 0).all()
        assert (features @ solution.weights >= losses - solution.slack - 1e-9).all()
        assert (solution.prices >= 0).all()
        assert solution.prices.sum() <= 3.0 + 1e-9
        gains = solution.prices @ features
        assert (gains.mean() if is_equal else gains.max()) <= 1 + 1e-9
        assert solution.objective == pytest.approx(solution.prices @ losses)
        if is_equal:
            assert len(set(solution.weights)) == 1


def test_a_function_of_a_gain_above_1_lowers_the_objective_and_another_does_not(rng):
    features, losses = rng.uniform(0, 1, (9, 3)), rng.uniform(0.5, 1, 9)
    before = solve_program(features, losses, 9.0, is_equal=False)
    for scale in (0.5, 2.0):
        column = rng.uniform(0.5, 1, 9)
        column *= scale / (before.prices @ column)
        wider = np.column_stack([features, column])
        after = solve_program(wider, losses, 9.0, is_equal=False)
        assert (after.objective < before.objective - 1e-6) == (scale > 1)


def test_the_weights_of_pairs_say_what_a_function_gains(rng):
    master = small_master()
    for _ in range(3):
        bits = rng.choice([-1.0, 1.0], 6)
        weights = master.pair_weights()
        assert (weights != weights.T).nnz == 0
        assert master.add_function(bits)["gain"] == pytest.approx(-energy(weights, bits))


def test_pairs_relevant_one_way_only_are_never_in_one_block():
    is_relevant = np.array([[False, True, False], [False, False, True]])
    is_irrelevant = np.array([[False, False, True], [True, False, False]])
    settings = MasterSettings("ndcg", True, 1.0, 0.1, 1)
    master = Master(np.array([0, 1]), RankingLists(is_relevant, is_irrelevant), settings)
    pairs = master.pairs()
    similar = zip(pairs.first[pairs.is_similar], pairs.second[pairs.is_similar], strict=True)
    assert set(similar) == {(1, 2), (2, 1)}
    assert len(pairs.first) == 6


@pytest.mark.parametrize("loss", LOSSES)
def test_it_ranks_held_out_digits_better_than_methods_without_labels(loss):
    x, y = DATA.database_x[:600], DATA.database_y[:600]
    ours = held_out_ap(create(n_bits=8, loss=loss, n_queries=100, n_trees=30).fit(x, y))
    for name in ("lsh", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=8, random_state=0).fit(x)) + 0.1


def test_learned_weights_are_stored_and_serve_to_rescore(tmp_path):
    hasher = create(weights="learned", n_bits=6).fit(X, Y)
    assert (hasher.weights_ >= 0).all()
    assert len(np.unique(hasher.weights_)) > 2
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert np.array_equal(again.weights_, hasher.weights_)
    assert again.history_ == hasher.history_
    index = HammingIndex(6)
    index.add(hasher.encode(X))
    result = index.search(hasher.encode(X[:5]), k=9, rerank=weighted_bits(again.weights_))
    assert result[1].shape == (5, 9)
    assert len(np.unique(create().fit(X, Y).weights_)) == 1


def test_classes_tags_and_levels_that_say_the_same_learn_the_same():
    same = Y[:, None] == Y
    expected = create(n_bits=2).fit(X, Y).transform(X)
    for y in (np.eye(10, dtype=int)[Y], affinity.levels(same * 3)):
        assert np.array_equal(create(n_bits=2).fit(X, y).transform(X), expected)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "ap"}, "loss must be one of ndcg, map, auc; got 'ap'"),
        ({"weights": "free"}, "weights must be one of equal, learned; got 'free'"),
        ({"n_queries": 0}, "n_queries must be an integer >= 1"),
        ({"slack_cost": 0.0}, "slack_cost must be a finite number above 0"),
        ({"epsilon": -1}, "epsilon must be a finite number above 0"),
        ({"max_cuts": 0}, "max_cuts must be an integer >= 1"),
        ({"max_depth": 0}, "max_depth must be an integer from 1 to 8, got 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(InputError, match=message):
        create(**params).fit(X, Y)


def test_rows_that_teach_nothing_are_refused():
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        create().fit(np.ones((6, 3)), [0, 0, 1, 1, 2, 2])
    levels = np.zeros((5, 5), int)
    levels[0] = 1
    with pytest.raises(InputError, match="y must give some row both relevant and irrel"):
        create().fit(X[:5], affinity.levels(levels))
