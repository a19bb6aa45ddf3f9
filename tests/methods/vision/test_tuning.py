"""Backbones that are tuned: which weights move, what the rest of a fit sees, and what is left."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import rankbits
from methods.vision.spots import Pixels, build, network
from rankbits import affinity, evaluate, methods
from rankbits.errors import InputError
from rankbits.methods.supervision import supervise
from rankbits.methods.training import classifiers, posterior, run
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.config import common_config
from rankbits.methods.training.inputs import Mixture, read_rows, take_rows
from rankbits.methods.training.layers import Standardize
from rankbits.methods.vision import activations as stage
from rankbits.methods.vision import tuning
from rankbits.methods.vision.backbones import UserBackbone, load_backbone, split_backbone
from rankbits.methods.vision.tuned_networks import TunedNetworks

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def short_trainings_of_the_posterior(monkeypatch):
    for name in ("_PILOT_STEPS", "_FEWEST_STEPS", "_N_STEPS"):
        monkeypatch.setattr(posterior, name, 20)


def weights_of(hasher, k=0):
    backbone = hasher.encoder_.backbone
    if not isinstance(backbone, TunedNetworks):
        return dict(backbone.module.named_parameters())
    parts = [backbone.networks[k].backbone.module]
    parts += [] if isinstance(backbone.first, nn.Identity) else [backbone.first.module]
    return {name: weight for part in parts for name, weight in part.named_parameters()}


def moved(hasher, k=0):
    """Numbers of the parts of the network whose weights are not those it came with."""
    before, after = dict(network().named_parameters()), weights_of(hasher, k)
    assert set(after) == set(before)
    return {
        int(name.split(".")[0])
        for name, weight in after.items()
        if not torch.equal(weight, before[name])
    }


@pytest.mark.parametrize("posterior", [0, 2])
@pytest.mark.parametrize(
    ("fine_tune", "parts"), [(False, set()), ("last:4", {3, 4}), ("all", {1, 3, 4})]
)
def test_only_the_blocks_that_are_tuned_move(pictures, fine_tune, parts, posterior):
    x, y = pictures
    fitted = build(fine_tune=fine_tune, posterior=posterior).fit(x, y)
    for k in range(max(posterior, 1)):
        assert moved(fitted, k) == parts
    assert (fitted.report_["tuning"] is not None) == bool(fine_tune and posterior)


@pytest.mark.parametrize("n_last", [1, 5, 15])
def test_both_parts_of_a_backbone_give_the_features_of_the_whole(n_last):
    backbone = load_backbone("efficientnet-lite0", 64, pretrained=False).eval()
    x = torch.randint(0, 256, (2, 32, 32, 3), dtype=torch.uint8)
    first, last = split_backbone(backbone, n_last)
    with torch.no_grad():
        assert torch.allclose(last.eval()(first.eval()(x)), backbone(x), atol=1e-6)


def test_parts_share_their_weights_with_the_whole():
    backbone = UserBackbone(network())
    _, last = split_backbone(backbone, 4)
    last.load_state_dict({name: w + 1 for name, w in last.state_dict().items()})
    assert torch.equal(backbone.module[3].bias, network()[3].bias + 1)


def test_views_are_the_picture_its_mirror_image_and_moved_ones(pictures):
    x, _ = pictures
    config = common_config(n_views=4, flip=True, shift=2, seed=3)
    found = stage.compute_activations(Pixels(), x[:300], config, CPU)
    assert found.shape == (300, 3, 8, 8)
    pixels = Pixels()(torch.from_numpy(x[:300]))
    assert torch.equal(found[:].float(), pixels)
    mirrored = torch.from_numpy(found.maps[1]).float()
    assert torch.equal(mirrored, pixels.flip(3))
    others = found.maps[2:].reshape(2, 300, -1)
    values = np.sort(np.unique(pixels.numpy()))
    assert np.isin(others, values).all()
    assert not np.array_equal(others[0], others[1])


def test_a_batch_has_some_view_of_each_of_its_rows():
    maps = np.arange(2 * 5, dtype=np.float16).reshape(2, 5, 1, 1, 1)
    rows = np.array([4, 0, 2])
    inputs = take_rows(stage.Activations(maps, CPU), np.array([0, 2, 3, 4]))
    rng, drawn = np.random.default_rng(0), set()
    for _ in range(50):
        batch = read_rows(inputs, np.array([3, 0, 1]), rng).flatten().numpy().astype(int)
        assert (batch % 5 == rows).all()
        drawn.update(batch.tolist())
    assert drawn == {4, 9, 0, 5, 2, 7}


def test_activations_are_continued_where_they_stopped(pictures, tmp_path, monkeypatch):
    x, _ = pictures
    config = common_config(n_views=3, flip=True, shift=2, seed=3, checkpoint=tmp_path)
    whole = stage.compute_activations(Pixels(), x, common_config(n_views=3, flip=True, shift=2,
                                                                 seed=3), CPU)  # fmt: skip
    runs = []

    class Counting(Pixels):
        def forward(self, rows):
            runs.append(len(rows))
            if len(runs) == 5:
                raise KeyboardInterrupt
            return super().forward(rows)

    monkeypatch.setattr(stage, "_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        stage.compute_activations(Counting(), x, config, CPU)
    again = stage.compute_activations(Counting(), x, config, CPU)
    assert runs == [1, 256, 256, 88, 256, 1, 256, 256, 88, 256, 256, 88]
    assert np.array_equal(again.maps, whole.maps)


@pytest.mark.parametrize("damage", ["truncated", "not JSON", "other shape"])
def test_a_damaged_file_of_activations_is_computed_again(pictures, tmp_path, damage):
    x, _ = pictures
    config = common_config(n_views=2, flip=True, seed=3, checkpoint=tmp_path)
    whole = np.array(stage.compute_activations(Pixels(), x[:50], config, CPU).maps)
    place = stage.find_activations(x[:50], config, "torch")
    if damage == "truncated":
        place.path.write_bytes(place.path.read_bytes()[:-100])
    elif damage == "not JSON":
        place.path.with_suffix(".json").write_text("{")
    else:
        np.save(place.path, whole[:, :20])
    assert np.array_equal(stage.compute_activations(Pixels(), x[:50], config, CPU).maps, whole)


def test_activations_of_another_engine_or_number_of_views_are_another_file(pictures, tmp_path):
    x, _ = pictures
    found = [
        stage.find_activations(
            x, common_config(n_views=n_views, flip=True, checkpoint=tmp_path), engine
        ).path
        for n_views, engine in ((2, "torch"), (3, "torch"), (2, "openvino 1"))
    ]
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("values", "n_views"),
    [
        ({"epochs": 12, "flip": True}, 6),
        ({"epochs": 3, "shift": 1}, 2),
        ({"epochs": 40, "flip": True}, 8),
        ({"epochs": 40, "flip": True, "n_views": 11}, 11),
        ({"epochs": 40, "n_views": 11}, 1),
    ],
)
def test_views_are_half_as_many_as_epochs_unless_the_user_says_how_many(values, n_views):
    assert stage.count_views(common_config(**values)) == n_views


def test_a_disk_that_is_too_small_is_named(pictures, monkeypatch):
    x, _ = pictures
    monkeypatch.setattr(stage, "_SPARE_BYTES", 1 << 60)
    with pytest.raises(InputError, match=r"activations need .* GB on disk.*fewer n_views"):
        stage.compute_activations(Pixels(), x, common_config(n_views=2, flip=True), CPU)


def test_a_tuning_that_was_killed_ends_as_one_that_was_not(pictures, tmp_path, monkeypatch):
    x, y = pictures
    params = {"fine_tune": "last:4", "checkpoint_seconds": 0.0}
    whole = build(**params).fit(x, y)

    class Killed(classifiers.ClassifiersLoss):
        n_calls = 0

        def forward(self, logits, batch):
            Killed.n_calls += 1
            if Killed.n_calls == 8:
                raise KeyboardInterrupt
            return super().forward(logits, batch)

    monkeypatch.setattr(classifiers, "ClassifiersLoss", Killed)
    with pytest.raises(KeyboardInterrupt):
        build(**params, checkpoint=tmp_path).fit(x, y)
    resumed = build(**params, checkpoint=tmp_path).fit(x, y)
    assert resumed.encode(x) == whole.encode(x)
    assert not list((tmp_path / "activations").iterdir())
    monkeypatch.setattr(tuning.Tuner, "_train", lambda *given: pytest.fail("tuned twice"))
    assert build(**params, checkpoint=tmp_path).fit(x, y).encode(x) == whole.encode(x)


def test_each_network_is_asked_about_rows_that_were_kept_from_it(pictures, monkeypatch):
    x, y = pictures
    kept, asked = [], []
    train, ask = tuning.Tuner._train, tuning.Tuner.ask

    def watch_training(self, name, goal, is_unseen):
        kept.append(np.flatnonzero(is_unseen))
        return train(self, name, goal, is_unseen)

    def watch_asking(self, network, about):
        asked.append(about)
        return ask(self, network, about)

    monkeypatch.setattr(tuning.Tuner, "_train", watch_training)
    monkeypatch.setattr(tuning.Tuner, "ask", watch_asking)
    fitted = build(fine_tune="last:4", posterior=3).fit(x, y)
    assert [len(rows) for rows in kept] == [60, 60, 60]
    assert len(np.unique(np.concatenate(kept))) == 180
    for rows, about in zip(kept, asked, strict=True):
        assert np.array_equal(rows, about.rows)
        assert about.n_views == 3
    assert [one["unseen"] for one in fitted.report_["tuning"]["networks"]] == [60, 60, 60]


def test_rows_kept_from_a_network_do_not_change_it(pictures):
    x, y = pictures
    unseen = classifiers.draw_unseen(len(x), 1, seed=0)
    others = x.copy()
    others[unseen[:, 0]] = 255 - others[unseen[:, 0]]
    found = []
    for rows in (x, others):
        config = common_config(fine_tune="last:4", epochs=2, mixup=0.2, mixes_classes=True)
        tuner = tuning.Tuner(UserBackbone(network()), rows, config, CPU)
        tuner.scales = Standardize(512)
        asked = tuning.Asked(np.arange(1), 1)
        goal = tuning.Goal(supervise(rows, y))
        found.append(tuner.tune("0", goal, unseen, asked).network.state_dict())
    assert all(torch.equal(weight, found[1][name]) for name, weight in found[0].items())


def test_the_pool_has_what_a_network_believes_of_views_and_chances_as_sure_as_it_is_right(pictures):
    x, y = pictures
    config = common_config(fine_tune="last:4", epochs=3, n_views=3, flip=True, shift=1)
    tuner = tuning.Tuner(UserBackbone(network()), x, config, CPU)
    goal = tuning.Goal(supervise(x, y))
    tuned = tuning.tune_networks(tuner, goal, 2)
    pool = tuning.join_networks(tuner, tuned).pool
    assert [one.logits.shape for one in tuned] == [(180, 3), (180, 3)]
    assert len(pool.inputs) == len(pool.probabilities) >= 4000
    rows = np.flatnonzero(classifiers.draw_unseen(len(x), 2, 0)[:, 1])
    maps = stage.compute_activations(tuner.first, x, config, CPU).maps[2, rows]
    with torch.no_grad():
        logits = tuned[1].network(torch.from_numpy(maps))
    assert torch.allclose(tuned[1].logits[120:], logits, atol=1e-5)
    chances = torch.softmax(tuned[1].factor * logits, dim=1)
    assert np.allclose(pool.probabilities[300:360], chances.numpy(), atol=1e-5)
    assert torch.allclose(pool.inputs[300:360, 3:], torch.softmax(logits, dim=1), atol=1e-5)


def test_mixed_rows_have_the_classes_of_both():
    targets, n = np.array([0, 2, 1, 1]), 4
    logits = torch.randn(n, 1, 3, generator=torch.Generator().manual_seed(0))
    is_unseen = np.array([[False], [False], [True], [False]])
    mixture = Mixture(np.array([1, 3, 0, 2]), np.array([0.9, 0.6, 0.7, 0.8]))
    batch = Batch(rows=np.arange(n), levels=torch.empty(0), alpha=1.0, mixture=mixture)
    log = torch.log_softmax(logits[:, 0], dim=1)
    expected = (
        -(0.9 * log[0, 0] + 0.1 * log[0, 2] + 0.6 * log[1, 2] + 0.4 * log[1, 1]) / 2
    )  # row 2 is kept from the network, and so is what is mixed with it
    loss = classifiers.ClassifiersLoss(targets, is_unseen)
    assert torch.allclose(loss(logits, batch), expected)
    soft = classifiers.ClassifiersLoss(np.eye(3, dtype=np.float32)[targets], is_unseen)
    assert torch.allclose(soft(logits, batch), expected)


def test_tuned_codes_rank_pictures_that_were_not_seen(pictures):
    x, y = pictures
    fitted = build(fine_tune="last:4", tuning_epochs=10, epochs=10).fit(x[:500], y[:500])
    codes = fitted.encode(x[500:])
    same = affinity.classes(y[500:], y[500:])
    assert evaluate(codes, codes, same, exclude_self=True).mean["AP"] > 0.9


def test_a_tuned_pretrained_network_is_saved_with_its_weights(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (500, 32, 32, 3)).astype(np.uint8), rng.integers(0, 2, 500)
    params = {"fine_tune": "last:1", "image_size": 32, "tuning_epochs": 1, "n_views": 1}
    hasher = build(**params, encoder="backbone").fit(x, y)
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").encode(x[:20]) == hasher.encode(x[:20])
    assert json.loads((tmp_path / "model" / "model.json").read_text())


@pytest.mark.parametrize("value", ["last", "last:0", "last:-1", "last:2.5", "first:2", 3, None])
def test_a_wrong_fine_tune_is_refused(pictures, value):
    with pytest.raises(InputError, match=r"fine_tune must be False, 'all', or 'last:8'"):
        build(fine_tune=value).fit(*pictures)


def test_more_blocks_than_there_are_and_a_module_that_cannot_be_cut_are_refused(pictures):
    with pytest.raises(InputError, match="fine_tune must be 'last:1' to 'last:6'"):
        build(fine_tune="last:7").fit(*pictures)

    class Own(nn.Module):
        def forward(self, x):
            return x.flatten(1)

    with pytest.raises(InputError, match=r"no torch\.nn\.Sequential"):
        build(encoder=Own(), fine_tune="last:1").fit(*pictures)


def test_fits_with_one_cache_tune_once(pictures, monkeypatch):
    x, y = pictures
    cache = methods.PosteriorCache()
    alone = build(fine_tune="last:4", n_bits=12).fit(x, y)
    build(fine_tune="last:4", posterior_cache=cache).fit(x, y)
    monkeypatch.setattr(tuning.Tuner, "_train", lambda *given: pytest.fail("tuned twice"))
    shared = build(fine_tune="last:4", n_bits=12, posterior_cache=cache).fit(x, y)
    assert shared.encode(x) == alone.encode(x)


def test_only_the_network_is_trained_in_mixed_precision(pictures, monkeypatch):
    x, y = pictures
    precisions = []
    start = run.TrainingRun.__init__

    def note(self, module, loss, inputs, supervision, config, method_name, *rest):
        precisions.append((method_name, config.precision))
        start(self, module, loss, inputs, supervision, config, method_name, *rest)

    monkeypatch.setattr(run.TrainingRun, "__init__", note)
    build(fine_tune="last:4").fit(x, y)
    assert set(precisions) == {
        ("tuning of the backbone", "mixed"),
        ("talr-ap", "single"),
    }
    precisions.clear()
    build(encoder="mlp", fine_tune=True).fit(x.reshape(len(x), -1), y)
    assert {precision for _, precision in precisions} == {"single"}
