"""LWH: the slack holds over all rankings, few cuts suffice, turning the planes changes no score."""

import numpy as np
import pytest

import rankbits
from oracles.lwh import largest_violation
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.shallow.lwh.svm import Settings, WorkingSet, fit_to_cuts, learn_planes
from rankbits.methods.shallow.shared.ranking_lists import RankingLists, draw_lists
from rankbits.methods.supervision import supervise

DATA = digits()
X, Y = DATA.database_x[:600], DATA.database_y[:600]


def create_lwh(**params):
    return methods.get("lwh", **{"random_state": 0, "n_queries": 100, **params})


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y, Y)
    return evaluate(hasher.encode(DATA.query_x), hasher.encode(X), relevant).mean["AP"]


@pytest.mark.parametrize("loss", ["map", "ndcg"])
def test_no_ranking_of_any_query_needs_more_slack_than_was_found(loss, rng):
    rows = rng.standard_normal((6, 3))
    is_relevant = (np.arange(6)[:, None] % 2 == np.arange(6) % 2) & ~np.eye(6, dtype=bool)
    lists = RankingLists(is_relevant, ~is_relevant & ~np.eye(6, dtype=bool))
    how = Settings(loss, 0.05, 0.01, 50, 100, 1.0)
    planes, turns = learn_planes(rows, rows, lists, 0.1 * rng.standard_normal((3, 2)), how)
    violations = []
    for query in range(6):
        others = np.arange(6) != query
        scores = (rows @ planes @ planes.T @ rows[query])[others]
        violations.append(largest_violation(scores, is_relevant[query, others], loss))
    best = min(turns, key=lambda turn: turn["objective"])
    assert np.mean(violations) == pytest.approx(best["violation"], abs=1e-6)
    assert best["norm"] == pytest.approx(0.025 * np.square(planes).sum())
    assert turns[-1]["violation"] <= turns[-1]["slack"] + 0.01
    assert len(turns) > 3


@pytest.mark.parametrize("loss", ["map", "ndcg"])
@pytest.mark.parametrize("n_bits", [1, 4, 16, 48])
@pytest.mark.parametrize("seed", [0, 1])
def test_learning_ends_within_50_cuts_at_epsilon_a_hundredth(loss, n_bits, seed):
    hasher = create_lwh(n_bits=n_bits, loss=loss, random_state=seed, n_queries=300).fit(X, Y)
    last = hasher.history_[-1]
    assert hasher.report_["converged"]
    assert last["violation"] <= last["slack"] + 0.01
    assert len(hasher.history_) - 1 == last["cuts"] == hasher.report_["cuts"] <= 50


def test_the_record_of_turns_adds_up():
    hasher = create_lwh(n_bits=8, rotation=None).fit(X, Y)
    for place, turn in enumerate(hasher.history_):
        assert turn["cuts"] == place
        assert turn["objective"] == pytest.approx(turn["norm"] + max(turn["violation"], 0))
        assert 0 <= turn["slack"] <= turn["violation"] + 1e-5
    objectives = [turn["objective"] for turn in hasher.history_]
    assert hasher.report_["objective"] == min(objectives) < 0.7 * objectives[0]


def test_the_best_planes_are_kept_where_later_turns_are_worse():
    hasher = create_lwh(n_bits=8, rotation=None, learning_rate=20.0, max_cuts=9).fit(X, Y)
    objectives = [turn["objective"] for turn in hasher.history_]
    best = int(np.argmin(objectives))
    assert 0 < best < 9
    scale = np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1).mean())
    norm = hasher.regularization / 2 * np.square(hasher.planes_ * scale).sum()
    assert norm == pytest.approx(hasher.history_[best]["norm"])


def test_too_few_cuts_end_learning_and_the_report_says_so():
    hasher = create_lwh(n_bits=8, max_cuts=2).fit(X, Y)
    assert hasher.report_["cuts"] == 2
    assert not hasher.report_["converged"]


def test_steps_on_one_cut_reach_its_optimum():
    """|W|² grows along the top eigenvector of ΔΨ until no slack is left: λ Δ / (2 μ)."""
    feature = np.diag([0.5, 0.2, -0.3])
    cuts = WorkingSet(1, 3)
    cuts.add(feature, 0.8)
    how = Settings("map", 0.5, 0.01, 50, 3000, 0.1)
    planes = fit_to_cuts(cuts, np.full((3, 1), 0.1), how)
    slack = max(0.0, 0.8 - float(planes[:, 0] @ feature @ planes[:, 0]))
    objective = 0.25 * np.square(planes).sum() + slack
    assert objective == pytest.approx(0.5 * 0.8 / (2 * 0.5), rel=0.01)


def test_the_slack_of_a_working_set_is_that_of_its_worst_cut(rng):
    planes = rng.standard_normal((4, 2)).astype(np.float32)
    cuts = WorkingSet(3, 4)
    assert cuts.most_slack(planes) == (0.0, None)
    features = rng.standard_normal((3, 4, 4))
    for feature, loss in zip(features, (0.1, 0.5, 0.9), strict=True):
        cuts.add(feature, loss)
    slacks = [
        loss - np.trace(planes.T @ feature @ planes)
        for feature, loss in zip(features, (0.1, 0.5, 0.9), strict=True)
    ]
    slack, worst = cuts.most_slack(planes)
    assert slack == pytest.approx(max(slacks), rel=1e-5)
    np.testing.assert_allclose(worst, features[int(np.argmax(slacks))], rtol=1e-6)


def test_turned_planes_score_every_pair_as_before_and_lie_nearer_to_their_signs():
    plain, turned = (create_lwh(n_bits=16, rotation=way).fit(X, Y) for way in (None, "itq"))
    scores = [hasher.project(X) @ hasher.project(X).T for hasher in (plain, turned)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-8 * np.abs(scores[0]).max())
    lengths = [np.abs(hasher.project(X)).sum() for hasher in (plain, turned)]
    assert lengths[1] > 1.02 * lengths[0]  # |B - V R|² falls as the sum of |V R| grows
    assert held_out_ap(turned) > held_out_ap(plain)


@pytest.mark.parametrize("n_bits", [8, 32])
def test_it_ranks_held_out_digits_better_than_methods_without_labels(n_bits):
    ours = held_out_ap(create_lwh(n_bits=n_bits, n_queries=300).fit(X, Y))
    for name in ("lsh", "pcah", "itq", "sign"):
        other = methods.get(name, n_bits=n_bits)
        if name != "sign":
            other.set_params(random_state=0)
        assert ours > held_out_ap(other.fit(X)) + 0.1


def test_codes_do_not_depend_on_the_scale_and_place_of_the_rows():
    one, other = (create_lwh(n_bits=12).fit(x, Y).transform(x) for x in (X, X / 1024 + 8.0))
    assert np.mean(np.unpackbits(one ^ other)) < 0.01


def test_classes_tags_and_levels_that_say_the_same_learn_the_same():
    same = Y[:, None] == Y
    expected = create_lwh(n_bits=6).fit(X, Y)
    for y in (np.eye(10, dtype=int)[Y], affinity.levels(same * 1), affinity.levels(same * 3)):
        assert np.array_equal(create_lwh(n_bits=6).fit(X, y).planes_, expected.planes_)
    names = np.array([f"digit {label}" for label in Y])
    assert np.array_equal(create_lwh(n_bits=6).fit(X, names).planes_, expected.planes_)


def test_graded_levels_count_as_relevant_above_0():
    same, odd = Y[:, None] == Y, (Y % 2)[:, None] == Y % 2
    graded, flat = (
        create_lwh(n_bits=6).fit(X, affinity.levels(y)) for y in (same * 1 + odd, odd * 1)
    )
    assert np.array_equal(graded.planes_, flat.planes_)


def test_without_y_it_says_what_it_takes():
    with pytest.raises(InputError, match=r"^y must be class labels, .* the target y is None; rsh"):
        create_lwh().fit(X)


def test_queries_are_rows_with_relevant_and_irrelevant_others():
    y = np.array([0, 0, 1, 1, 2, 3])  # the last two have nothing relevant
    supervision = supervise(np.zeros((6, 2)), y)
    queries, lists = draw_lists(supervision, 300, np.random.RandomState(0))
    assert sorted(queries.tolist()) == [0, 1, 2, 3]
    for query, is_relevant, is_irrelevant in zip(
        queries, lists.is_relevant, lists.is_irrelevant, strict=True
    ):
        others = np.arange(6) != query
        assert np.array_equal(is_relevant, (y == y[query]) & others)
        assert np.array_equal(is_irrelevant, y != y[query])
    assert len(draw_lists(supervision, 3, np.random.RandomState(0))[0]) == 3
    assert len(set(draw_lists(supervision, 2, np.random.RandomState(1))[0].tolist())) == 2


def test_y_that_gives_no_list_two_kinds_is_refused():
    levels = np.zeros((5, 5), int)
    levels[0] = 1
    with pytest.raises(InputError, match="y must give some row both relevant and irrel"):
        create_lwh().fit(X[:5], affinity.levels(levels))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "ap"}, "loss must be one of map, ndcg; got 'ap'"),
        ({"rotation": "random"}, "rotation must be one of itq; got"),
        ({"kernel": "poly"}, "kernel must be one of rbf"),
        ({"n_queries": 0}, "n_queries must be an integer >= 1"),
        ({"max_cuts": 0}, "max_cuts must be an integer >= 1"),
        ({"n_steps": 1.5}, "n_steps must be an integer >= 1"),
        ({"regularization": 0}, "regularization must be a finite number above 0, got 0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0, got -1.0"),
        (
            {"learning_rate": "fast"},
            "learning_rate must be a finite number above 0, got str 'fast'",
        ),
        ({"regularization": True}, "regularization must be a finite number above 0, got bool True"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(InputError, match=message):
        create_lwh(**params).fit(X, Y)


def test_rows_that_are_all_equal_are_refused():
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        create_lwh().fit(np.ones((6, 3)), [0, 0, 1, 1, 2, 2])


def test_more_features_than_rows_leave_the_planes_in_the_span_of_the_rows(rng):
    x = rng.standard_normal((20, 90))
    hasher = create_lwh(n_bits=5).fit(x, np.arange(20) % 4)
    _, _, right = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    inside = right[:19].T @ (right[:19] @ hasher.planes_)
    np.testing.assert_allclose(hasher.planes_, inside, atol=1e-9 * np.abs(inside).max())


def test_features_that_never_vary_are_never_looked_at():
    hasher = create_lwh(n_bits=8).fit(X, Y)
    is_constant = X.std(axis=0) == 0
    assert is_constant.any()
    np.testing.assert_allclose(hasher.planes_[is_constant], 0, atol=1e-9)


def rings(n=300):
    rng = np.random.default_rng(3)
    y = np.arange(n) % 2
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = 1.0 + 2.0 * y + 0.2 * rng.standard_normal(n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1), y


def test_the_kernel_tells_rings_apart_that_hyperplanes_cannot():
    x, y = rings()
    relevant = affinity.classes(y[200:], y[:200])

    def score(**params):
        hasher = create_lwh(n_bits=8, **params).fit(x[:200], y[:200])
        return evaluate(hasher.encode(x[200:]), hasher.encode(x[:200]), relevant).mean["AP"]

    assert score(kernel="rbf", n_anchors=60) > 0.95
    assert score() < 0.8


def test_a_kernel_method_is_saved_and_exported_with_its_anchors(tmp_path):
    x, y = rings()
    hasher = create_lwh(n_bits=9, kernel="rbf", n_anchors=40).fit(x, y)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert np.array_equal(again.project(x), hasher.project(x))
    assert again.history_ == hasher.history_
    assert again.report_ == hasher.report_
    pytest.importorskip("onnxruntime")
    assert methods.export_onnx(hasher, tmp_path / "model.onnx") == 64


def test_a_file_that_holds_something_else_is_refused():
    x, y = rings()
    hasher = create_lwh(n_bits=3, kernel="rbf", n_anchors=20).fit(x, y)
    arrays, facts = hasher._state()
    plain = create_lwh().fit(X, Y)
    with pytest.raises(FileFormatError, match="the model's gamma must be finite float64"):
        hasher._restore(arrays, {**facts, "gamma": "wide"})
    with pytest.raises(FileFormatError, match="the model must hold the arrays mean, planes"):
        plain._restore(arrays, facts)
    with pytest.raises(
        FileFormatError, match=r"the model's facts must be history \(list\), report \(dict\); got"
    ):
        plain._restore(plain._state()[0], {})
