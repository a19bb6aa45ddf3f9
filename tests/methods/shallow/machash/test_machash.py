"""MACHash: each step lowers the penalized objective, codes and functions meet, and it ranks."""

import numpy as np
import pytest
from scipy.optimize import minimize

import rankbits
from oracles.pair_bits import total_loss
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import InputError
from rankbits.methods.shallow.machash.steps import Codes, Machines, fit_machines
from rankbits.methods.shallow.shared.pair_sampling import draw_pairs
from rankbits.methods.supervision import supervise

DATA = digits()
X, Y = DATA.database_x[:200], DATA.database_y[:200]
LOSSES = ("hinge", "ksh", "exponential")


def create(**params):
    return methods.get("machash", **{"random_state": 0, "n_bits": 5, **params})


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y[:99], Y)
    return evaluate(hasher.encode(DATA.query_x[:99]), hasher.encode(X), relevant).mean["AP"]


def small_codes(loss, n_bits=3):
    y = np.repeat([0, 1, 2], 4)
    pairs = draw_pairs(supervise(np.zeros((12, 2)), y), 9, 9, np.random.default_rng(0))
    return Codes(pairs, loss, n_bits)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_lowers_the_penalized_objective_until_codes_and_functions_meet(loss):
    hasher = create(loss=loss, penalty=0.003).fit(X, Y)
    assert len(hasher.history_) > 2
    for turn in hasher.history_:
        assert turn["after_codes"] <= turn["before"] + 1e-12
        assert turn["after_functions"] <= turn["after_codes"] + 1e-12
    assert any(turn["after_codes"] < turn["before"] for turn in hasher.history_)
    penalties = [turn["penalty"] for turn in hasher.history_]
    np.testing.assert_allclose(penalties, 0.003 * 2.0 ** np.arange(len(penalties)))
    assert hasher.history_[-1]["apart"] == 0
    assert hasher.history_[-1]["after_functions"] == pytest.approx(hasher.history_[-1]["loss"])


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_is_the_mean_loss_and_the_mean_squared_difference(loss, rng):
    codes = small_codes(loss)
    codes.bits = rng.choice([-1.0, 1.0], (12, 3))
    predicted = rng.choice([-1.0, 1.0], (12, 3))
    largest = {"hinge": 9.0, "ksh": 36.0, "exponential": np.e}[loss]
    mean = total_loss(loss, codes.bits, codes.pairs) / len(codes.pairs.first) / largest
    apart = 4.0 * np.mean(codes.bits != predicted)
    assert codes.objective(predicted, 0.7) == pytest.approx(mean + 0.7 * apart)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_bit_of_a_block_is_the_best_for_the_objective(loss, rng):
    """Four rows of one class, one bit: all sixteen codes are tried."""
    pairs = draw_pairs(supervise(np.zeros((5, 2)), [0, 0, 0, 0, 1]), 9, 9, np.random.default_rng(0))
    for _ in range(5):
        codes, predicted = Codes(pairs, loss, 1), rng.choice([-1.0, 1.0], (5, 1))
        codes.bits = rng.choice([-1.0, 1.0], (5, 1))
        last = codes.bits[4, 0]
        penalty, values = rng.uniform(0.05, 0.4), []
        for number in range(16):
            codes.bits[:, 0] = [*(1.0 - 2.0 * (number >> place & 1) for place in range(4)), last]
            values.append(codes.objective(predicted, penalty))
        codes.step(predicted, penalty)  # the block of four first, then the last row
        assert codes.objective(predicted, penalty) <= min(values) + 1e-12


def test_a_large_penalty_sets_the_codes_to_the_functions_and_none_leaves_them_free(rng):
    codes, predicted = small_codes("ksh"), rng.choice([-1.0, 1.0], (12, 3))
    codes.start(rng)
    before = codes.bits.copy()
    codes.step(predicted, 1e-9)
    assert codes.mean_loss(codes.bits) <= codes.mean_loss(before)
    codes.step(predicted, 2.0)
    assert np.array_equal(codes.bits, predicted)


def test_the_functions_are_those_of_the_turn_with_the_least_loss():
    x, y = X[:60], Y[:60]
    pairs = draw_pairs(supervise(x, y), 60, 60, np.random.default_rng(0))
    hasher = create(n_bits=8, n_similar=60, n_dissimilar=60).fit(x, y)
    codes = np.where(hasher.project(x) > 0, 1.0, -1.0)
    loss = total_loss("ksh", codes, pairs) / len(pairs.first) / 256.0
    assert loss <= min(turn["loss"] for turn in hasher.history_) + 1e-12


def test_a_machine_is_at_the_minimum_of_its_objective(rng):
    rows = rng.standard_normal((40, 3))
    bits = np.where(rows[:, :1] + 0.5 * rng.standard_normal((40, 1)) > 0.3, 1.0, -1.0)

    def objective(v):
        slack = np.maximum(0.0, 1.0 - bits[:, 0] * (rows @ v[:3] + v[3]))
        return 0.05 / 2 * v @ v + np.mean(slack**2)

    machines = fit_machines(rows, bits, 0.05)
    ours = np.append(machines.planes[:, 0], machines.offsets)
    assert objective(ours) == pytest.approx(minimize(objective, np.zeros(4)).fun, rel=1e-3)


def test_a_machine_that_errs_on_more_rows_is_not_taken(rng):
    rows = rng.standard_normal((30, 2))
    bits = np.where(rows > 0, 1.0, -1.0)
    exact = Machines(np.eye(2), np.zeros(2))
    kept = exact.refit(rows, bits, 1e3)
    assert np.array_equal(kept.predict(rows), bits)
    constant = fit_machines(rows, np.array([[1.0, -1.0]] * 30), 0.1)
    assert np.array_equal(constant.predict(rows), np.array([[1.0, -1.0]] * 30))


def test_it_ranks_held_out_digits_better_than_methods_without_labels():
    ours = held_out_ap(create(n_bits=12).fit(X, Y))
    for name in ("lsh", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=12, random_state=0).fit(X)) + 0.05


def test_codes_do_not_collapse_where_most_pairs_are_similar(rng):
    tags = (rng.random((150, 6)) < 0.4).astype(int)
    tags[tags.sum(axis=1) == 0, 0] = 1
    assert np.mean(tags @ tags.T > 0) > 0.6
    x = tags @ rng.standard_normal((6, 12)) + 0.1 * rng.standard_normal((150, 12))
    hasher = create(n_bits=8).fit(x[:100], tags[:100])
    codes = hasher.encode(x)
    relevant = affinity.tags(tags[100:], tags[:100])
    base = np.mean(tags[100:] @ tags[:100].T > 0)
    assert len(np.unique(codes.packed, axis=0)) > 4
    assert evaluate(codes[100:], codes[:100], relevant).mean["AP"] > base + 0.1


def test_classes_tags_and_levels_that_say_the_same_learn_the_same():
    same = Y[:, None] == Y
    expected = create().fit(X, Y)
    for y in (np.eye(10, dtype=int)[Y], affinity.levels(same * 3)):
        assert np.array_equal(create().fit(X, y).planes_, expected.planes_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "bre"}, "loss must be one of hinge, ksh, exponential; got 'bre'"),
        ({"n_similar": 0}, "n_similar must be an integer >= 1"),
        ({"penalty": 0}, "penalty must be a finite number above 0, got 0"),
        ({"regularization": "weak"}, "regularization must be a finite number above 0, got str"),
        ({"kernel": "poly"}, "kernel must be one of rbf"),
        ({"verbose": 2}, "verbose must be True, False or 'auto', got 2"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(InputError, match=message):
        create(**params).fit(X, Y)


def test_rows_that_teach_nothing_are_refused():
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        create().fit(np.ones((6, 3)), [0, 0, 1, 1, 2, 2])
    with pytest.raises(InputError, match="X must have at least two rows to form pairs"):
        create().fit(X[:1], [0])


def test_the_kernel_tells_rings_apart_and_is_saved_and_exported(rng, tmp_path):
    y = np.arange(120) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, 120), 1.0 + 2.0 * y + 0.1 * rng.standard_normal(120)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    hasher = create(n_bits=2, kernel="rbf", n_anchors=30).fit(x, y)
    bits = hasher.encode(x).bits()
    assert len(np.unique(np.column_stack([bits, y]), axis=0)) == 2
    hasher.save(tmp_path / "model")
    assert np.array_equal(rankbits.load(tmp_path / "model").project(x), hasher.project(x))
    pytest.importorskip("onnxruntime")
    assert methods.export_onnx(hasher, tmp_path / "model.onnx") == 64
