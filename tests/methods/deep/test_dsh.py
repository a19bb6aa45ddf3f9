"""DSH and dispersed DSH: the paper's equations pair by pair, any y, zones, refusals."""

import numpy as np
import pytest
import torch

import rankbits
from rankbits import affinity, methods
from rankbits.errors import InputError
from rankbits.methods.deep.dsh import DispersedLoss, DshLoss
from rankbits.methods.supervision import supervise
from rankbits.methods.training.batches import Batch

NAMES = ("dsh", "dsh-dispersed")
RNG = np.random.default_rng(12)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))
N_BITS, N_ROWS = 12, 14
LOGITS = RNG.normal(size=(N_ROWS, N_BITS)) * 0.8
LEVELS = RNG.integers(0, 3, (N_ROWS, N_ROWS))
QUICK = {"n_bits": 8, "epochs": 2, "hidden": (8,), "n_threads": 1, "random_state": 0}


def l1(u, v):
    return sum(abs(a - b) for a, b in zip(u, v, strict=True))


def l2_squared(u, v):
    return sum((a - b) ** 2 for a, b in zip(u, v, strict=True))


def off_unit(u):
    return sum(abs(abs(a) - 1) for a in u)


def mean_over_pairs(term, codes, others=None, own=None):
    """Mean of term(code, other, i, j) over all pairs but that of a row with itself."""
    others, own = (codes, range(len(codes))) if others is None else (others, own)
    found = [
        term(codes[i], others[j], i, j)
        for i in range(len(codes))
        for j in range(len(others))
        if j != own[i]
    ]
    return sum(found) / len(found)


def equation_16(u, v, similar, margin):
    """½ (1 - y) A + ½ y B of the paper, where y is 0 for a similar pair."""
    distance = l2_squared(u, v)
    return 0.5 * distance if similar else 0.5 * max(margin - distance, 0)


def zone(distance, low, high):
    return max(low - distance, 0) + max(distance - high, 0)


def batch_of(levels, gallery=None, own=None, alpha=1.0):
    found = None if gallery is None else torch.from_numpy(gallery)
    rows = np.arange(len(levels))
    own = None if own is None else torch.tensor(own)
    return Batch(rows, torch.from_numpy(levels), alpha, gallery=found, own=own)


def test_dsh_is_equation_16_with_distances_in_bits():
    """Of ±1 codes ‖u - v‖² is 4 a bit: the paper's m = 2k is half of the bits."""
    loss = DshLoss(0.5, 0.3)(torch.from_numpy(LOGITS), batch_of(LEVELS))
    pairs = mean_over_pairs(
        lambda u, v, i, j: equation_16(u, v, LEVELS[i, j] > 0, 2 * N_BITS), LOGITS
    )
    units = 0.3 * np.mean([off_unit(u) for u in LOGITS])
    assert float(loss) == pytest.approx(pairs / 2 + units)


def test_pairs_are_similar_from_a_level_on():
    loss = DshLoss(0.5, 0.0, least_level=2)(torch.from_numpy(LOGITS), batch_of(LEVELS))
    pairs = mean_over_pairs(
        lambda u, v, i, j: equation_16(u, v, LEVELS[i, j] == 2, 2 * N_BITS), LOGITS
    )
    assert float(loss) == pytest.approx(pairs / 2)


def made(name, **params):
    return methods.get(name, **{**QUICK, "n_bits": N_BITS, **params})


def test_one_zone_is_equation_20():
    """Of ±1 codes ‖u - v‖₁ is 2 a bit: r1 = k/6 is a twelfth of the bits, r2 = k/3 a sixth."""
    levels, alpha = (LEVELS > 0).astype(int), 1.7
    found = made("dsh-dispersed", zones=[(1 / 12, 1 / 6)], quantization=0.3)._build_loss(
        supervise(X, Y)
    )
    loss = found(torch.from_numpy(LOGITS), batch_of(levels, alpha=alpha))
    codes, k = np.tanh(alpha * LOGITS), N_BITS

    def term(u, v, i, j):
        distance = l1(u, v)
        if levels[i, j]:
            return 0.5 * zone(distance, k / 6, k / 3)
        return 0.5 * max(2 * k / 3 - distance, 0)

    wanted = mean_over_pairs(term, codes) + 0.3 * np.mean([off_unit(u) for u in codes])
    assert float(loss) == pytest.approx(wanted)


def test_two_levels_are_equation_25_and_a_pair_of_one_class_is_in_both_zones():
    coarse = np.array([0, 0, 1, 1])[Y]
    two = affinity.levels((Y[:, None] == Y).astype(int) + (coarse[:, None] == coarse))
    zones = [(1 / 24, 1 / 12), (1 / 12, 1 / 6)]
    found = made("dsh-dispersed", zones=zones, quantization=0.0)._build_loss(supervise(X, two))
    loss = found(torch.from_numpy(LOGITS), batch_of(LEVELS))
    codes, k = np.tanh(LOGITS), N_BITS

    def term(u, v, i, j):
        distance = l1(u, v)
        same_class, same_superclass = LEVELS[i, j] == 2, LEVELS[i, j] >= 1
        a = zone(distance, k / 12, k / 6) if same_class else 0
        b = zone(distance, k / 6, k / 3) if same_superclass else 0
        c = 0 if same_superclass else max(2 * k / 3 - distance, 0)
        return 0.5 * (a + b + c)

    assert float(loss) == pytest.approx(mean_over_pairs(term, codes))


LOSSES = {
    "dsh": DshLoss(0.5, 0.1),
    "dsh-dispersed": DispersedLoss([(0.1, 0.2), (0.3, 0.4)], [2, 1], 0.5, 0.1),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_gallery_of_the_batch_itself_changes_nothing_but_who_moves(name):
    logits = torch.from_numpy(LOGITS)
    wanted = LOSSES[name](logits, batch_of(LEVELS, alpha=2.0))
    batch = batch_of(LEVELS, LOGITS, list(range(N_ROWS)), alpha=2.0)
    assert float(LOSSES[name](logits, batch)) == pytest.approx(float(wanted))
    order = RNG.permutation(N_ROWS)
    moved = batch_of(LEVELS[:, order], LOGITS[order], np.argsort(order).tolist(), alpha=2.0)
    assert float(LOSSES[name](logits, moved)) == pytest.approx(float(wanted))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_the_values(name):
    logits = torch.from_numpy(LOGITS).requires_grad_()
    assert torch.autograd.gradcheck(lambda f: LOSSES[name](f, batch_of(LEVELS)), logits)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_batches_of_one_kind_of_pair_or_of_none_have_a_finite_gradient(name, n, level):
    logits = torch.ones(n, 3, requires_grad=True)  # equal rows: the distance has a corner there
    loss = LOSSES[name](logits, batch_of(np.full((n, n), level)))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


def test_zones_go_from_the_highest_level_down_and_the_last_serves_all_lower_ones():
    levels = affinity.levels(np.array([0, 1, 2, 5])[(Y[:, None] - Y) % 4])

    def loss_of(**params):
        return methods.get("dsh-dispersed", **params)._build_loss(supervise(X, levels))

    assert loss_of().cuts == (5, 1)
    assert loss_of(n_bits=12).zones == ((1 / 16, 1 / 8), (1 / 8, 1 / 4))
    assert loss_of(n_bits=48).zones == ((1 / 32, 1 / 16), (1 / 16, 1 / 8))
    given = loss_of(zones=[[0, 0.1], [0.1, 0.2], [0.2, 0.5]])
    assert given.cuts == (5, 2, 1)
    assert loss_of(zones=[(0.1, 0.3)]).cuts == (1,)
    plain = methods.get("dsh-dispersed")._build_loss(supervise(X, Y))
    assert plain.cuts == (1,)


def mean_ap(hasher, x):
    codes = hasher.encode(x)
    relevant = affinity.classes(Y, Y)
    return rankbits.evaluate(codes, codes, relevant, ["AP"], exclude_self=True).mean["AP"]


@pytest.mark.parametrize("encoder", ["mlp", "linear"])
@pytest.mark.parametrize("name", NAMES)
def test_defaults_rank_separable_classes(name, encoder):
    hasher = methods.get(name, n_bits=16, encoder=encoder, n_threads=1, random_state=0).fit(X, Y)
    assert mean_ap(hasher, X + 0.3 * RNG.normal(size=X.shape)) > 0.95


@pytest.mark.parametrize(
    "y",
    [
        [f"c{c}" for c in Y],
        np.eye(4, dtype=int)[Y] + np.eye(4, dtype=int)[(Y + 1) % 4],
        None,
        affinity.levels(2 * (Y[:, None] == Y)),
        affinity.judgements([(i, i + 4, 1 + i % 3) for i in range(99)], 240, 240),
    ],
    ids=["strings", "tags", "distances", "levels", "judgements"],
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gallery", ["batch", "memory"])
def test_every_kind_of_y_lowers_the_loss(name, y, gallery):
    settings = {"epochs": 12, "batch_size": 80, "learning_rate": 0.01, "gallery": gallery}
    plain = {"init": "random", "ema": 0.0, "dropout": 0.0, "alpha_end": None}
    hasher = methods.get(name, **{**QUICK, **settings, **plain}).fit(X, y)
    losses = [record["loss"] for record in hasher.history_]
    assert np.mean(losses[-3:]) < 0.9 * losses[0]


@pytest.mark.slow
def test_classes_read_a_posterior_by_default_and_rows_if_asked():
    x, y = np.tile(X, (3, 1)) + 0.1 * RNG.normal(size=(720, 12)), np.tile(Y, 3)
    few = {"n_bits": 6, "epochs": 1, "n_threads": 1, "random_state": 0}
    for name in NAMES:
        assert methods.get(name, **few).fit(x, y).report_["encoder"]["posterior"] == 3
        rows = methods.get(name, posterior=0, **few).fit(x, y)
        assert rows.report_["encoder"]["posterior"] == 0


@pytest.mark.parametrize(
    ("name", "params", "says"),
    [
        ("dsh", {"margin": 0}, "margin must be a share of the bits, above 0 and at most 1"),
        ("dsh-dispersed", {"margin": 1.5}, "margin must be a share of the bits"),
        ("dsh", {"margin": True}, "margin must be a share of the bits"),
        ("dsh", {"quantization": -1}, "quantization must be a finite number, 0 or more"),
        ("dsh-dispersed", {"quantization": float("inf")}, "quantization must be a finite number"),
        ("dsh", {"least_level": 2}, "least_level must be an integer from 1 to 1, got 2"),
        ("dsh-dispersed", {"zones": "wide"}, "zones must be 'auto' or a list of pairs"),
        ("dsh-dispersed", {"zones": []}, "zones must be 'auto' or a list of pairs"),
        ("dsh-dispersed", {"zones": [[0, 1], [0, 1]]}, "list of 1 to 1 pairs"),
        ("dsh-dispersed", {"zones": [[0.3, 0.2]]}, "0 <= from <= to <= 1, got list"),
        ("dsh-dispersed", {"zones": [0.3]}, r"zones must be pairs \(from, to\)"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence_before_any_work(name, params, says):
    with pytest.raises(InputError, match=says):
        methods.get(name, **{**QUICK, **params}).fit(X, Y)
