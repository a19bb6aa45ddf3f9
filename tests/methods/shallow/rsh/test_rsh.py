"""RSH: its planes maximise the sum over triplets, by either solver, in input or feature space."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import ortho_group
from sklearn.datasets import load_digits

import rankbits
from oracles import rsh as oracle
from rankbits import BinaryCodes, affinity, methods
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.shallow.rsh.alm import _Lagrangian, maximize_by_alm


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return data.data[:400], data.target[:400]


def fitted(data, **params):
    return methods.get("rsh", **{"n_bits": 8, "random_state": 0} | params).fit(*data)


def margins_by_triplets(rows, levels, planes):
    """Mean of q'A A'(x_i - x_j) over all queries and pairs of i above j, one by one."""
    turned = (rows - rows.mean(axis=0)) @ planes
    total = count = 0
    for m, tensor in enumerate(
        oracle.without_own(oracle.triplet_tensor(levels), np.arange(len(rows)))
    ):
        scores = turned @ turned[m]
        apart = np.subtract.outer(scores, scores)[tensor > 0]
        total, count = total + apart.sum(), count + len(apart)
    return total / count


@pytest.mark.parametrize("solver", ["eigh", "alm"])
@pytest.mark.parametrize("rotation", [None, "random", "itq"])
def test_the_objective_is_the_mean_margin_of_the_triplets_whatever_the_rotation(
    rng, solver, rotation
):
    rows = rng.standard_normal((30, 6))
    levels = rng.integers(0, 4, (30, 30))
    hasher = fitted(
        (rows, affinity.levels(levels)),
        n_bits=3,
        n_queries=None,
        solver=solver,
        rotation=rotation,
    )
    np.testing.assert_allclose(hasher.planes_.T @ hasher.planes_, np.eye(3), atol=1e-10)
    margin = margins_by_triplets(rows, levels, hasher.planes_)
    assert hasher.history_[-1]["objective"] == pytest.approx(margin, rel=1e-3)


def test_no_other_directions_have_a_larger_margin(rng):
    rows = rng.standard_normal((20, 5)) * [3, 2, 1, 1, 0.5]
    levels = rng.integers(0, 3, (20, 20))
    planes = fitted((rows, affinity.levels(levels)), n_bits=2, n_queries=None).planes_
    best = margins_by_triplets(rows, levels, planes)
    others = [margins_by_triplets(rows, levels, ortho_group.rvs(5, 1, k)[:, :2]) for k in range(30)]
    assert best > max(others)
    nearby = [np.linalg.qr(planes + 1e-2 * rng.standard_normal((5, 2)))[0] for _ in range(30)]
    assert best >= max(margins_by_triplets(rows, levels, near) for near in nearby)


@pytest.mark.parametrize(("size", "n_bits"), [(12, 1), (30, 7), (40, 40), (60, 24)])
@pytest.mark.parametrize("seed", [0, 1])
def test_alm_reaches_the_eigenvalue_optimum_within_a_thousandth(size, n_bits, seed):
    """Positive and negative eigenvalues of falling size, as the matrices of ranking lists have."""
    rng = np.random.RandomState(seed)
    values = rng.choice([-0.3, 1.0], size, p=[0.3, 0.7]) / np.arange(1, size + 1)
    basis = ortho_group.rvs(size, 1, rng)
    matrix = 1e5 * (basis * values) @ basis.T
    planes, rounds = maximize_by_alm(matrix, n_bits, rng)
    best = np.sort(np.linalg.eigvalsh(matrix))[::-1][:n_bits].sum()
    np.testing.assert_allclose(planes.T @ planes, np.eye(n_bits), atol=1e-10)
    reached = np.trace(planes.T @ matrix @ planes)
    assert best * (1 - 1e-3) <= reached <= best * (1 + 1e-9)
    assert rounds[-1]["violation"] < 1e-4
    assert rounds[-1]["objective"] == pytest.approx(best, rel=1e-3)
    assert all(row["rho"] >= before["rho"] for row, before in zip(rounds[1:], rounds, strict=False))


def test_a_growing_rho_ends_the_rounds_where_eigenvalues_are_far_apart():
    rng = np.random.RandomState(0)
    tail = 2e-3 * rng.uniform(0.3, 1, 50), -0.05 * rng.uniform(0, 1, 14)
    values = np.concatenate([0.8 ** np.arange(16), *tail])
    basis = ortho_group.rvs(80, 1, rng)
    planes, rounds = maximize_by_alm((basis * values) @ basis.T, 28, rng)
    best = np.sort(values)[::-1][:28].sum()
    assert np.trace(planes.T @ (basis * values) @ basis.T @ planes) >= best * (1 - 1e-3)
    assert len(rounds) < 20
    assert rounds[-1]["rho"] > 1


def test_of_one_bit_the_multiplier_alone_keeps_the_length():
    rounds = maximize_by_alm(np.diag([3.0, 2.0, 1.0]), 1, np.random.RandomState(0))[1]
    assert rounds[0]["violation"] > 0.1
    assert rounds[-1]["violation"] < 1e-4
    assert rounds[-1]["rho"] == 1


def test_alm_reaches_the_optimum_on_lists_of_digits(digits):
    best, reached = (fitted(digits, n_bits=12, solver=solver) for solver in ("eigh", "alm"))
    assert [row["round"] for row in best.history_] == [0]
    assert len(reached.history_) > 1
    optimum = best.history_[0]["objective"]
    assert reached.history_[-1]["objective"] == pytest.approx(optimum, rel=1e-3)


def test_the_gradient_of_the_lagrangian_is_that_of_finite_differences(rng):
    S, L = (half + half.T for half in (rng.standard_normal((5, 5)), rng.standard_normal((2, 2))))
    problem = _Lagrangian(S, L, rho=1.7)
    error = check_grad(
        lambda flat: problem.at(flat.reshape(5, 2))[0],
        lambda flat: problem.at(flat.reshape(5, 2))[1].ravel(),
        rng.standard_normal(10),
    )
    assert error < 1e-4


def test_a_direction_that_the_lists_follow_becomes_the_first_bit(rng):
    rows = rng.standard_normal((200, 6))
    place = rows[:, 2].argsort().argsort()
    levels = 200 - np.abs(place[:, None] - place)  # a full ranking list for each row
    hasher = fitted((rows, affinity.levels(levels)), n_bits=1, rotation=None, n_queries=None)
    assert abs(hasher.planes_[2, 0]) > 0.95


def test_labels_tags_and_their_affinities_teach_the_same(digits):
    rows, classes = digits
    tags = np.eye(10, dtype=int)[classes]
    same = [classes, classes.astype(str), tags, affinity.classes(classes, classes)]
    first, *others = (fitted((rows, y)).project(rows) for y in same)
    for other in others:
        assert np.array_equal(first, other)


def test_shared_tags_are_counted(rng):
    rows, tags = rng.standard_normal((40, 5)), rng.integers(0, 2, (40, 4))
    counted = affinity.levels(tags @ tags.T)
    from_tags, from_levels = (fitted((rows, y), n_bits=3).planes_ for y in (tags, counted))
    assert np.array_equal(from_tags, from_levels)


def test_without_y_lists_follow_the_distances(rng):
    rows = rng.standard_normal((150, 4)) * [9, 1, 1, 1]
    planes = fitted((rows,), n_bits=1, rotation=None, n_queries=None).planes_
    assert abs(planes[0, 0]) > 0.99


def test_lists_of_one_level_each_are_refused(rng):
    levels = np.repeat([[0], [1]], 3, axis=0) * np.ones((6, 6), int)
    with pytest.raises(InputError, match="y must rank some rows above others for the same query"):
        fitted((rng.standard_normal((6, 2)), affinity.levels(levels)), n_bits=1)


def test_more_queries_than_rows_are_all_rows(digits):
    every, many = (fitted(digits, n_queries=count, rotation=None) for count in (None, 10_000))
    np.testing.assert_allclose(every.planes_, many.planes_, atol=1e-9)


def test_more_bits_than_directions_are_refused(rng):
    flat = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 10)) + 100
    y = np.arange(80) % 4
    assert fitted((flat, y), n_bits=3).encode(flat).n_bits == 3
    with pytest.raises(InputError, match=r"n_bits must be at most 3, the direct.* got 4; take"):
        fitted((flat, y), n_bits=4)
    assert fitted((flat, y), n_bits=24, kernel="rbf").encode(flat).n_bits == 24
    with pytest.raises(InputError, match=r"n_bits must be at most 19, .* got 20"):
        fitted((flat, y), n_bits=20, kernel="rbf", n_anchors=19)
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        fitted((np.full((9, 3), 0.1), y[:9]), n_bits=1)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"solver": "eig"}, "solver must be one of eigh, alm; got 'eig'; did you mean 'eigh'"),
        ({"rotation": "none"}, "rotation must be one of itq, random"),
        ({"kernel": "linear"}, "kernel must be one of rbf"),
        ({"n_queries": 0}, "n_queries must be an integer >= 1"),
        ({"n_tables": 0}, "n_tables must be an integer >= 1"),
        ({"kernel": "rbf", "n_anchors": 0}, "n_anchors must be an integer >= 1"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma must be a positive number or None, got -1.0"),
        ({"kernel": "rbf", "gamma": "wide"}, "gamma must be a positive number or None"),
    ],
)
def test_parameters_that_are_none_are_refused(digits, params, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted(digits, **params)


def test_a_kernel_separates_what_no_plane_can(rng):
    """A ball within a shell, both centred: bits of planes through the centre cannot tell them."""
    directions = rng.standard_normal((300, 3))
    y = np.arange(300) % 2
    rows = directions / np.linalg.norm(directions, axis=1)[:, None] * np.where(y, 3.0, 1.0)[:, None]
    shares = {}
    for kernel in (None, "rbf"):
        bits = fitted((rows, y), n_bits=1, kernel=kernel, n_queries=None).encode(rows).bits()[:, 0]
        shares[kernel] = max((bits == y).mean(), (bits != y).mean())
    assert shares[None] < 0.7
    assert shares["rbf"] > 0.95


@pytest.mark.parametrize("params", [{"kernel": "rbf", "n_anchors": 50}, {"n_tables": 3}])
def test_kernels_and_tables_are_saved(digits, tmp_path, params):
    hasher = fitted(digits, n_bits=5, **params)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert again.encode_tables(digits[0]) == hasher.encode_tables(digits[0])
    assert again.history_ == hasher.history_
    np.testing.assert_array_equal(again.tables_, hasher.tables_)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda a, f: a.pop("basis"), "must hold the arrays"),
        (lambda a, f: a.update(anchors=a["anchors"][:, 1:]), "anchors must be finite"),
        (lambda a, f: a.update(tables=a["tables"][:0]), "tables must not be empty"),
        (lambda a, f: f.update(history=[{}]), "facts must be history"),
        (lambda a, f: f.update(more=1), "facts must be history"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(digits, change, sentence):
    hasher = fitted(digits, n_bits=5, kernel="rbf", n_anchors=50)
    arrays, facts = hasher._state()
    change(arrays, facts)
    with pytest.raises(FileFormatError, match=sentence):
        hasher._restore(arrays, facts)


def test_a_kernel_is_exported_to_onnx(digits, tmp_path):
    for package in ("torch", "onnxscript"):
        pytest.importorskip(package)
    onnxruntime = pytest.importorskip("onnxruntime")
    hasher = fitted(digits, n_bits=11, kernel="rbf", n_anchors=50)
    assert methods.export_onnx(hasher, tmp_path / "rsh.onnx") > 0
    session = onnxruntime.InferenceSession(tmp_path / "rsh.onnx")
    codes = session.run(["codes"], {"x": digits[0].astype(np.float32)})[0]
    differ = np.unpackbits(codes ^ hasher.transform(digits[0]), axis=1).sum()
    assert differ <= 2  # logits that are zero but for rounding


def test_blocks_leave_room_for_the_anchors(digits):
    wide = fitted(digits, kernel="rbf", n_anchors=400)
    assert wide._block_rows((64,)) == (1 << 20) // 400


def test_codes_of_tables_are_n_bits_each_and_the_first_are_those_of_encode(digits):
    hasher = fitted(digits, n_bits=6, n_tables=3)
    codes = hasher.encode_tables(digits[0])
    assert [table.n_bits for table in codes] == [6, 6, 6]
    assert codes[0] == hasher.encode(digits[0]) == fitted(digits, n_bits=6).encode(digits[0])
    assert codes[1] != codes[0] != codes[2]
    logits = (digits[0] - hasher.mean_) @ hasher.tables_[2]
    assert codes[2] == BinaryCodes.from_logits(logits)
    assert [row["table"] for row in hasher.history_] == [0, 1, 2]
