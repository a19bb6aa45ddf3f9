"""SSH: its planes are the optimum of both versions of its objective."""

import numpy as np
import pytest
from scipy.stats import ortho_group

import rankbits
from oracles import ssh as oracle
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import InputError

DATA = digits()
X, Y = DATA.database_x[:400], DATA.database_y[:400]


def fitted(x=X, y=Y, **params):
    return methods.get("ssh", **{"n_bits": 8, "random_state": 0} | params).fit(x, y)


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y, Y)
    return evaluate(hasher.encode(DATA.query_x), hasher.encode(X), relevant).mean["AP"]


@pytest.fixture
def small(rng):
    """Rows, labels of which some are missing (-1), and M by the plain way with weight 0.5."""
    y = np.where(np.arange(30) < 24, np.arange(30) % 3, -1)
    x = 2 * rng.standard_normal((4, 6))[y] + rng.standard_normal((30, 6))
    labeled = np.flatnonzero(y >= 0)
    is_similar = y[labeled, None] == y[labeled]
    return x, y, oracle.matrix(x - x.mean(axis=0), labeled, is_similar, 0.5)


PLAIN = {"n_bits": 3, "unlabeled": -1, "variance_weight": 0.5, "rotation": None}


def test_orthogonal_planes_reach_the_optimum_of_the_plain_objective(small):
    x, y, M = small
    hasher = fitted(x, y, orthogonality=None, **PLAIN)
    planes = hasher.planes_
    np.testing.assert_allclose(planes.T @ planes, np.eye(3), atol=1e-10)
    value = np.trace(planes.T @ M @ planes)
    assert value == pytest.approx(np.sort(np.linalg.eigvalsh(M))[-3:].sum())
    assert hasher.eigenvalues_ == pytest.approx(np.sort(np.linalg.eigvalsh(M))[:-4:-1])
    others = [ortho_group.rvs(6, 1, seed)[:, :3] for seed in range(20)]
    assert value > max(np.trace(other.T @ M @ other) for other in others)


@pytest.mark.parametrize("weight", [0.05, 1.0])
def test_penalized_planes_are_a_stationary_point_that_no_small_change_improves(small, rng, weight):
    x, y, M = small
    planes = fitted(x, y, orthogonality=weight, **PLAIN).planes_
    rho = weight * np.abs(np.linalg.eigvalsh(M)).max()
    np.testing.assert_allclose(planes @ planes.T @ planes, planes + M @ planes / rho, atol=1e-8)
    value = oracle.penalized(planes, M, rho)
    for size in (1e-2, 1.0):
        changes = size * rng.standard_normal((50, 6, 3))
        assert value > max(oracle.penalized(planes + change, M, rho) for change in changes)


def test_lengths_change_no_bit_unless_the_planes_are_rotated(small):
    x, y, _ = small
    one, other = (fitted(x, y, orthogonality=rho, **PLAIN).transform(x) for rho in (None, 0.1))
    assert np.array_equal(one, other)


def test_a_rotation_leaves_the_inner_products_before_the_signs():
    plain, rotated = (fitted(rotation=way).project(X) for way in (None, "itq"))
    np.testing.assert_allclose(
        plain @ plain.T, rotated @ rotated.T, atol=1e-8 * np.abs(plain @ plain.T).max()
    )
    assert np.abs(rotated).sum() > np.abs(plain).sum()  # nearer to their signs


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_it_ranks_held_out_digits_better_than_methods_without_labels(kernel):
    ours = held_out_ap(fitted(n_bits=16, kernel=kernel))
    for name in ("lsh", "pcah", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=16, random_state=0).fit(X)) + 0.05


def test_unlabeled_rows_are_no_class():
    few = np.where(np.arange(400) < 100, Y, -1)
    some = fitted(y=few, unlabeled=-1)
    assert held_out_ap(some) > held_out_ap(methods.get("itq", n_bits=8, random_state=0).fit(X))
    names = np.where(few < 0, "none", few.astype(str))
    assert np.array_equal(some.planes_, fitted(y=names, unlabeled="none").planes_)
    assert not np.array_equal(some.planes_, fitted(y=few).planes_)  # -1 is a class like others


def test_classes_tags_and_affinities_that_say_the_same_learn_the_same():
    expected = fitted().transform(X)
    for y in (Y.astype(str), np.eye(10, dtype=int)[Y], affinity.levels(3 * (Y[:, None] == Y))):
        assert np.array_equal(fitted(y=y).transform(X), expected)


def test_without_y_near_rows_are_similar(rng):
    x = rng.standard_normal((150, 4)) * [9, 1, 1, 1]
    planes = fitted(x, None, n_bits=1, rotation=None).planes_
    assert abs(planes[0, 0]) > 0.99 * np.linalg.norm(planes)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"variance_weight": 0}, "variance_weight must be a finite number above 0"),
        ({"orthogonality": -1}, "orthogonality must be a finite number above 0"),
        ({"rotation": "random"}, "rotation must be one of itq"),
        ({"kernel": "linear"}, "kernel must be one of rbf"),
        ({"n_rows": 1}, "n_rows must be an integer >= 2"),
        ({"y": np.full(400, -1), "unlabeled": -1}, "y must have labels other than -1, which stan"),
        ({"y": None, "unlabeled": -1}, "unlabeled must be None unless y is class labels, got -1"),
        ({"y": np.eye(10)[Y], "unlabeled": -1}, "unlabeled must be None unless y is class labels"),
        ({"y": np.zeros(400, int)}, "y must have at least two classes, got one"),
        ({"n_bits": 65}, r"n_bits must be at most 56, the directions .* or kernel='rbf'"),
    ],
)
def test_what_cannot_be_learned_is_refused(params, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted(**params)


def test_directions_that_the_labels_speak_against_are_refused_without_a_rotation(rng):
    x = rng.standard_normal((40, 3)) * [1, 1, 5]
    y = np.arange(40) % 20  # two rows of each class, on opposite sides of the third axis
    x[:20, 2], x[20:, 2] = 5, -5
    params = {"n_bits": 3, "variance_weight": 1e-3, "orthogonality": 0.5}
    with pytest.raises(InputError, match=r"n_bits must be at most 2 with rotation=None .* got 3"):
        fitted(x, y, rotation=None, **params)
    assert fitted(x, y, **params).encode(x).n_bits == 3


def test_eigenvalues_are_saved(tmp_path):
    hasher = fitted(kernel="rbf", n_anchors=40)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    np.testing.assert_array_equal(again.eigenvalues_, hasher.eigenvalues_)
    assert np.array_equal(again.transform(X), hasher.transform(X))
