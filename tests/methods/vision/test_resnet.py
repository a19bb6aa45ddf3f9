"""The residual network of small images: its layers, its classes before the bits, and the whole."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import rankbits
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.training import classifiers, encoders, run, sample_pool
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.layers import Posterior, class_beliefs
from rankbits.methods.training.posterior_cache import PosteriorCache
from rankbits.methods.vision import network_posterior
from rankbits.methods.vision.readers import learn_image_layers
from rankbits.methods.vision.resnet import PatchWhitening

pytestmark = pytest.mark.usefixtures("short_posterior")

QUICK = {
    "encoder": "resnet",
    "n_bits": 12,
    "hidden": (6, 8),
    "epochs": 4,
    "batch_size": 64,
    "n_threads": 1,
    "random_state": 0,
}


def draw_images(n, seed):
    """Noise with a stripe that lies across, or along, or two of them: three classes."""
    rng = np.random.default_rng(seed)
    images, y = rng.integers(0, 140, (n, 12, 12, 3)), np.arange(n) % 3
    for image, label, place in zip(images, y, rng.integers(1, 10, n), strict=True):
        if label != 1:
            image[place : place + 2] += 90
        if label != 0:
            image[:, place : place + 2] += 90
    return images.astype(np.uint8), y


X, Y = draw_images(510, 0)
NEW_X, NEW_Y = draw_images(150, 1)


@pytest.fixture(scope="module")
def fitted():
    return methods.get("talr-ap", **QUICK).fit(X, Y)


def build(architecture, images):
    torch.manual_seed(0)
    encoder = encoders.build_encoder(architecture)
    rng = np.random.default_rng(0)
    encoders.learn_scales(encoder, images, rng)
    learn_image_layers(encoder, images, rng)
    return encoder.eval()


@pytest.mark.parametrize("n_channels", [1, 3])
def test_whitened_patches_have_the_identity_as_covariance_and_their_negatives_follow(
    rng, n_channels
):
    smooth = rng.normal(size=(40, 9, 9, n_channels)).cumsum(1).cumsum(2)
    images = torch.from_numpy(smooth @ (np.eye(n_channels) + 0.5)).float()
    layer = PatchWhitening(n_channels)
    layer.learn(images)
    maps = layer(images.permute(0, 3, 1, 2))
    size = 4 * n_channels
    assert maps.shape == (40, 2 * size, 8, 8)
    assert torch.equal(maps[:, size:], -maps[:, :size])
    coordinates = maps[:, :size].transpose(0, 1).flatten(1).double()
    np.testing.assert_allclose(torch.cov(coordinates, correction=0), np.eye(size), atol=5e-3)


def test_a_direction_that_never_varies_stays_finite():
    layer = PatchWhitening(1)
    layer.learn(torch.zeros(3, 5, 5, 1))
    assert torch.isfinite(layer.filters).all()


def test_an_encoder_whitens_the_patches_of_its_standardized_images():
    images = torch.from_numpy(X)
    encoder = build(Architecture("resnet", (12, 12, 3), 5, hidden=(4, 6)), images)
    scaled = encoder.head.standardize(images)
    coordinates = encoder.head.body.whiten(scaled.permute(0, 3, 1, 2))[:, :12]
    covariance = torch.cov(coordinates.transpose(0, 1).flatten(1))
    np.testing.assert_allclose(covariance, np.eye(12), atol=5e-3)


@pytest.mark.parametrize("shape", [(9, 9, 3), (9, 12, 1), (32, 32, 3)])
def test_logits_are_those_of_the_mirror_image_and_of_no_other_row(rng, shape):
    images = torch.from_numpy(rng.integers(0, 256, (7, *shape), np.uint8))
    encoder = build(Architecture("resnet", shape, 5, hidden=(4, 6, 8)), images)
    logits = encoder(images)
    assert logits.shape == (7, 5)
    torch.testing.assert_close(encoder(images.flip(2)), logits)
    assert not torch.allclose(encoder(images.flip(1)), logits)
    torch.testing.assert_close(torch.cat([encoder(row[None]) for row in images]), logits)
    assert torch.equal(encoder(images.float()), logits)


def test_a_stage_halves_the_side_and_adds_to_what_its_first_convolution_gave(rng):
    images = torch.from_numpy(X[:20])
    encoder = build(Architecture("resnet", (12, 12, 3), 5, hidden=(4,)), images)
    stage, maps = encoder.head.body.stages[0], torch.randn(2, 24, 11, 11)
    first = functional.max_pool2d(functional.conv2d(maps, stage.widen.weight, padding=1), 2)
    first = torch.relu(stage.widen_norm(first))
    second = torch.relu(stage.refine_norm(functional.conv2d(first, stage.refine.weight, padding=1)))
    torch.testing.assert_close(stage(maps), first + second)
    assert stage(maps).shape == (2, 4, 5, 5)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"input_shape": (12,)},
            r"X must have shape \(n, height, width, channels\) for .*'resnet'",
        ),
        ({"input_shape": (8, 32, 3)}, "at least 9 pixels a side"),
        ({"n_anchors": 3}, "kernel must be None for encoder 'resnet'"),
        ({"activation": "relu6"}, "activation must be one of"),
    ],
)
def test_a_network_that_cannot_be_built_is_refused(changes, says):
    facts = {**Architecture("resnet", (32, 32, 3), 8).to_json(), **changes}
    with pytest.raises(InputError, match=says):
        encoders.build_encoder(Architecture.from_json(facts))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (X[:, :4], "at least 5 pixels a side"),
        (X[:, :, :, 0], r"X must have shape \(n, height, width, channels\)"),
        (X.reshape(len(X), -1), r"X must have shape \(n, height, width, channels\)"),
        (np.full_like(X, 7), "X must have a feature that varies"),
    ],
)
def test_bad_images_are_refused_before_any_training(rows, says, monkeypatch):
    monkeypatch.setattr(run.TrainingRun, "train_epoch", lambda *a: pytest.fail("trained first"))
    with pytest.raises(InputError, match=says):
        methods.get("talr-ap", **QUICK).fit(rows, Y)


def test_labels_are_smoothed_as_much_as_the_loss_says():
    logits = torch.tensor([[[2.0, 0.0, -1.0]], [[0.0, 0.5, 0.0]]])
    batch = Batch(np.arange(2), torch.zeros(2, 2), 1.0)
    targets = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    expected = -(targets * logits[:, 0].log_softmax(1)).sum(1).mean()
    loss = classifiers.ClassifiersLoss(np.array([0, 1]), np.zeros((2, 1), bool), smoothing=0.3)
    loss = loss(logits, batch)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_rows_that_were_held_out_are_judged_by_the_classifier_they_were_kept_from():
    class Constant(nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def forward(self, x):
            return torch.full((len(x), 2), self.value) + x

    module = classifiers.Classifiers(Posterior([Constant(10.0), Constant(20.0)]))
    is_unseen = np.array([1, 0, 2, 1, 0])[:, None] == np.arange(2)
    logits, positions = classifiers.held_out_logits(module, torch.arange(5.0)[:, None], is_unseen)
    assert positions.tolist() == [1, 4, 0, 3]
    assert logits[:, 0].tolist() == [11, 14, 20, 23]


def test_the_factor_of_logits_that_smoothed_labels_made_small_is_found():
    generator = torch.Generator().manual_seed(0)
    honest = torch.randn(20000, 4, generator=generator) * 2
    classes = torch.multinomial(honest.softmax(1), 1, generator=generator)[:, 0]
    factor, _ = classifiers.choose_factor(honest / 2.5, classes, is_smoothed=True)
    assert factor == pytest.approx(2.5, rel=0.06)


def test_the_pool_has_beliefs_about_rows_that_were_kept_from_the_network(fitted, monkeypatch):
    pools, draw = [], network_posterior.draw_moved_pool

    def note_pool(trained, rows, is_unseen, *rest):
        pools.append((trained, is_unseen, draw(trained, rows, is_unseen, *rest)))
        return pools[-1][2]

    monkeypatch.setattr(network_posterior, "draw_moved_pool", note_pool)
    hasher = methods.get("talr-ap", **QUICK, precision="single").fit(X, Y)
    trained, is_unseen, pool = pools[0]
    unseen = X[is_unseen[:, 0]]
    assert len(unseen) == 51
    assert len(pool.inputs) == len(pool.probabilities) == sample_pool.pool_size(51)
    parts = dict(hasher.encoder_.head.named_children())
    with torch.no_grad():
        beliefs = parts["posterior"](parts["standardize"](torch.from_numpy(unseen)))
    torch.testing.assert_close(pool.inputs[:51], beliefs)
    assert not torch.allclose(pool.inputs[51:102], beliefs, atol=1e-3)
    np.testing.assert_allclose(pool.probabilities.sum(1), 1, atol=1e-5)
    again = class_beliefs(torch.log(torch.from_numpy(pool.probabilities[:51])) / trained.factor)
    torch.testing.assert_close(again, pool.inputs[:51], atol=1e-3, rtol=1e-3)


def test_the_network_learns_the_classes_and_the_bits_rank_new_images_by_them():
    how = {**QUICK, "hidden": (12, 16), "epochs": 20, "batch_size": 32}
    hasher = methods.get("talr-ap", **how).fit(X, Y)
    assert hasher.encoder_.architecture.posterior == 1
    assert hasher.report_["posterior"]["held_out_accuracy"] > 0.8
    codes, same = hasher.encode(NEW_X), rankbits.affinity.classes(NEW_Y, NEW_Y)
    assert rankbits.evaluate(codes, codes, same, ["AP"]).mean["AP"] > 0.75


def test_parameters_of_training_are_those_of_the_network_and_the_bits_have_the_recipe(fitted):
    report = fitted.report_["posterior"]
    assert (report["config"]["epochs"], report["config"]["batch_size"]) == (4, 64)
    assert [record["epoch"] for record in report["history"]] == [1, 2, 3, 4]
    assert (report["config"]["optimizer"], report["bits_config"]["optimizer"]) == ("sgd", "adamw")
    assert report["bits_config"]["batch_size"] == 1024
    assert len(fitted.history_) == report["bits_config"]["epochs"] == fitted.report_["epochs"]


def test_it_is_saved_loaded_and_repeated_bit_for_bit(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = rankbits.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.project(NEW_X), fitted.project(NEW_X))
    assert loaded.report_ == fitted.report_
    again = methods.get("talr-ap", **QUICK).fit(X, Y)
    np.testing.assert_array_equal(again.project(NEW_X), fitted.project(NEW_X))


@pytest.mark.parametrize("posterior", [0, 1])
def test_the_exported_graph_gives_its_bits(posterior, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    hasher = methods.get("talr-ap", **{**QUICK, "epochs": 1}, posterior=posterior).fit(X, Y)
    methods.export_onnx(hasher, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    logits, codes = session.run(["logits", "codes"], {"x": NEW_X.astype(np.float32)})
    np.testing.assert_allclose(logits, hasher.project(NEW_X), atol=1e-3, rtol=1e-3)
    is_clear = (np.abs(logits) > 1e-2).all(1)
    assert is_clear.mean() > 0.5
    np.testing.assert_array_equal(codes[is_clear], hasher.transform(NEW_X)[is_clear])


@pytest.mark.parametrize("n_epochs", [2, 9])
def test_a_run_that_was_stopped_in_either_stage_ends_as_if_it_had_not_been(
    fitted, tmp_path, monkeypatch, n_epochs
):
    how = {**QUICK, "checkpoint": tmp_path / "run", "checkpoint_seconds": 0}
    train_epoch, epochs = run.TrainingRun.train_epoch, []

    def stop_later(self, restart):
        epochs.append(restart)
        if len(epochs) > n_epochs:
            raise KeyboardInterrupt
        return train_epoch(self, restart)

    with monkeypatch.context() as patch:
        patch.setattr(run.TrainingRun, "train_epoch", stop_later)
        with pytest.raises(KeyboardInterrupt):
            methods.get("talr-ap", **how).fit(X, Y)
    resumed = methods.get("talr-ap", **how).fit(X, Y)
    assert resumed.report_["epochs_resumed"] == max(0, n_epochs - 4)
    np.testing.assert_array_equal(resumed.project(NEW_X), fitted.project(NEW_X))


def test_codes_of_two_lengths_share_the_network_of_a_cache(fitted, monkeypatch):
    tasks, train = [], network_posterior.train_classifiers
    monkeypatch.setattr(
        network_posterior, "train_classifiers", lambda task: (tasks.append(task), train(task))[1]
    )
    cache = PosteriorCache()
    for n_bits in (6, 12):
        how = {**QUICK, "n_bits": n_bits, "posterior_cache": cache}
        hasher = methods.get("talr-ap", **how).fit(X, Y)
    assert len(tasks) == 1
    np.testing.assert_array_equal(hasher.project(NEW_X), fitted.project(NEW_X))


def test_two_networks_have_two_folds_and_queries_may_have_bits_of_their_own():
    how = {**QUICK, "epochs": 1, "posterior": 2, "queries": "own", "validation_fraction": 0.1}
    hasher = methods.get("talr-ap", **how).fit(X, Y)
    assert len(hasher.encoder_.head.posterior.members) == 2
    assert 0 < hasher.report_["best"]["score"] <= 1
    assert (hasher.encode_queries(NEW_X).packed != hasher.encode(NEW_X).packed).any()


@pytest.mark.parametrize("labels", [Y[:60], np.eye(3, dtype=np.uint8)[Y[:60]]], ids=["few", "tags"])
def test_few_rows_or_tags_train_the_bits_of_the_network_themselves(labels):
    how = {**QUICK, "epochs": 10, "batch_size": 20}
    hasher = methods.get("talr-ap", **how).fit(X[:60], labels)
    assert hasher.report_["posterior"] is None
    assert hasher.encoder_.head.body.output.out_features == 12
    assert hasher.report_["config"]["optimizer"] == "adamw"
    assert hasher.history_[-1]["loss"] < hasher.history_[0]["loss"]
    again = methods.get("talr-ap", **how).fit(X[:60], labels)
    assert again.encode(NEW_X) == hasher.encode(NEW_X)
