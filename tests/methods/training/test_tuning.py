"""Backbones that are tuned: which weights move, what the rest of a fit sees, and what is left."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import rankbits
from rankbits import affinity, evaluate, methods
from rankbits.errors import InputError
from rankbits.methods.training import activations as stage
from rankbits.methods.training import classifiers, posterior, run, tuning
from rankbits.methods.training.backbones import UserBackbone, load_backbone, split_backbone
from rankbits.methods.training.config import common_config
from rankbits.methods.training.inputs import Activations, read_rows, take_rows

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def short_trainings_of_the_posterior(monkeypatch):
    for name in ("_PILOT_STEPS", "_FEWEST_STEPS", "_N_STEPS"):
        monkeypatch.setattr(posterior, name, 20)


N_CLASSES, N_ROWS = 3, 600


@pytest.fixture(scope="module")
def pictures():
    """Pictures of 8 x 8 pixels whose class is the place of a bright spot, under noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLASSES, N_ROWS)
    x = rng.integers(0, 120, (N_ROWS, 8, 8, 3))
    for row, label in enumerate(y):
        x[row, 2 * label + 1, 2:6] += 100
    return x.astype(np.uint8), y


class Pixels(nn.Module):
    def forward(self, x):
        return x.permute(0, 3, 1, 2) / 128 - 1


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        Pixels(),
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
    )


def build(**params):
    few = {"n_bits": 8, "epochs": 2, "random_state": 0, "tuning_epochs": 3, "n_views": 3}
    return methods.get("talr-ap", **{**few, "encoder": network(), **params})


def weights_of(hasher):
    return dict(hasher.encoder_.backbone.module.named_parameters())


def moved(hasher):
    """Numbers of the parts of the network whose weights are not those it came with."""
    before = dict(network().named_parameters())
    return {
        int(name.split(".")[0])
        for name, weight in weights_of(hasher).items()
        if not torch.equal(weight, before[name])
    }


@pytest.mark.parametrize("posterior", [0, 2])
@pytest.mark.parametrize(
    ("fine_tune", "parts"), [(False, set()), ("last:4", {3, 4}), ("all", {1, 3, 4})]
)
def test_only_the_blocks_that_are_tuned_move(pictures, fine_tune, parts, posterior):
    x, y = pictures
    fitted = build(fine_tune=fine_tune, posterior=posterior).fit(x, y)
    assert moved(fitted) == parts
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
    inputs = take_rows(Activations(maps, CPU), np.array([0, 2, 3, 4]))
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
    place = stage.find_activations(x[:50], config)
    if damage == "truncated":
        place.path.write_bytes(place.path.read_bytes()[:-100])
    elif damage == "not JSON":
        place.path.with_suffix(".json").write_text("{")
    else:
        np.save(place.path, whole[:, :20])
    assert np.array_equal(stage.compute_activations(Pixels(), x[:50], config, CPU).maps, whole)


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
    monkeypatch.setattr(tuning, "_tune", lambda *arguments: pytest.fail("tuned twice"))
    assert build(**params, checkpoint=tmp_path).fit(x, y).encode(x) == whole.encode(x)


def test_rows_that_the_backbone_never_saw_are_kept_from_all_classifiers(pictures, monkeypatch):
    x, y = pictures
    kept = []
    held_out = classifiers.held_out_logits

    def watch(module, rows, is_unseen, block):
        kept.append(is_unseen)
        return held_out(module, rows, is_unseen, block)

    monkeypatch.setattr(classifiers, "held_out_logits", watch)
    fitted = build(fine_tune="last:4", posterior=2).fit(x, y)
    assert fitted.report_["tuning"]["unseen"] == 60
    assert all((is_unseen.sum(0) == 60).all() for is_unseen in kept)
    assert all((is_unseen == kept[-1][:, :1]).all() for is_unseen in kept)


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
    monkeypatch.setattr(tuning, "_tune", lambda *arguments: pytest.fail("tuned twice"))
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
        ("the class posterior", "single"),
        ("talr-ap", "single"),
    }
    precisions.clear()
    build(encoder="mlp", fine_tune=True).fit(x.reshape(len(x), -1), y)
    assert {precision for _, precision in precisions} == {"single"}
