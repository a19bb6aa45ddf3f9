"""The trainer: what a run keeps, repeats, chooses and reports."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from rankbits.errors import FitError, InputError
from rankbits.methods.supervision import supervise
from rankbits.methods.training import encoders
from rankbits.methods.training.config import common_config, read_parameters
from rankbits.methods.training.devices import choose_device, limit_threads
from rankbits.methods.training.encoders import encode_rows
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.log import TrainingLog, progress_bar
from rankbits.methods.training.optimizers import SGD, AdamW, TrainedWeight
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.run import TrainingRun
from rankbits.methods.training.trainer import TrainingTask, run_training
from rankbits.methods.vision.backbone_encoder import BackboneEncoder
from rankbits.objectives import relaxed_ap

N_CLASSES, N_ROWS = 4, 120


def config_of(**values):
    plain = {"batch_size": 256, "learning_rate": 1e-3, "weight_decay": 1e-4, "warm_up": 0.0}
    return common_config(**{**plain, **values})


class Agreement(nn.Module):
    """Squared difference between code similarity and ±1; a parameter scales the similarity."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, 1))
        self.seen = []

    def forward(self, logits, batch):
        self.seen.append(batch)
        phi = torch.tanh(batch.alpha * logits)
        gallery = phi if batch.gallery is None else torch.tanh(batch.alpha * batch.gallery)
        similarity = self.scale * phi @ gallery.T / phi.shape[1]
        return ((similarity - 2.0 * (batch.levels > 0) + 1) ** 2).mean()


@pytest.fixture(autouse=True)
def one_thread():
    with limit_threads(1):
        yield


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(5)
    y = np.arange(N_ROWS) % N_CLASSES
    return (rng.normal(size=(N_CLASSES, 6)) * 4)[y] + rng.normal(size=(N_ROWS, 6)), y


def task_of(blobs, config, **changes):
    x = torch.from_numpy(blobs[0]).float()
    architecture = changes.pop(
        "architecture", Architecture("mlp", (6,), 8, hidden=(16,), dropout=0.3)
    )
    shell = encoders.build_encoder(architecture)
    encoders.learn_scales(shell, x, np.random.default_rng(0))
    buffers = {k: v for k, v in shell.state_dict().items() if "standardize" in k}

    def build_module():
        module = encoders.build_encoder(architecture)
        module.load_state_dict(buffers, strict=False)
        return module

    changes.setdefault("supervision", supervise(blobs[0], blobs[1]))
    return TrainingTask(
        build_module, changes.pop("build_loss", Agreement), x, config=config, **changes
    )


def ap_of(module, blobs):
    codes = torch.sign(encode_rows(module, torch.from_numpy(blobs[0]).float()))
    y = torch.from_numpy(blobs[1])
    return float(relaxed_ap(codes, y[:, None] == y).mean())


def assert_same(first, second):
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name


FULL = config_of(
    epochs=6, batch_size=32, learning_rate=0.01, noise=0.1, mixup=0.5, ema=0.9, warm_up=0.1
)


@pytest.mark.parametrize(
    "config",
    [
        config_of(epochs=25, batch_size=40, learning_rate=0.01),
        config_of(epochs=25, batch_size=40, learning_rate=0.1, optimizer="sgd", nesterov=True),
        config_of(epochs=60, batch_size=999, learning_rate=0.02, ema=0.9, schedule="one-cycle"),
        config_of(epochs=25, batch_size=40, learning_rate=0.01, batches="balanced", mixup=0.4),
        config_of(epochs=25, batch_size=40, learning_rate=0.01, gallery="memory", alpha_end=2.0),
        config_of(epochs=25, batch_size=40, learning_rate=0.01, batches="anchors", noise=0.2),
    ],
)
def test_separable_blobs_are_ranked_perfectly(blobs, config):
    assert ap_of(task_of(blobs, config).build_module(), blobs) < 0.9
    assert ap_of(run_training(task_of(blobs, config)).module, blobs) > 0.995


def test_the_same_seed_repeats_a_run_bit_for_bit_and_another_does_not(blobs):
    torch.manual_seed(1)
    first = run_training(task_of(blobs, FULL))
    torch.manual_seed(2)
    again = run_training(task_of(blobs, FULL))
    assert_same(first.module, again.module)
    assert [r["loss"] for r in first.history] == [r["loss"] for r in again.history]
    other = run_training(task_of(blobs, replace(FULL, seed=1)))
    assert first.history[-1]["loss"] != other.history[-1]["loss"]


def test_the_callers_generators_and_threads_are_left_alone(blobs):
    with limit_threads(2):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 1
    task = task_of(blobs, config_of(epochs=1))
    state = torch.get_rng_state()
    run_training(task)
    assert torch.equal(state, torch.get_rng_state())


def test_one_step_of_sgd_moves_each_weight_against_its_gradient_and_only_matrices_decay(blobs):
    config = config_of(
        epochs=1, batch_size=N_ROWS, optimizer="sgd", learning_rate=0.5, weight_decay=0.1,
        schedule="constant",
    )  # fmt: skip
    task = task_of(blobs, config, architecture=Architecture("linear", (6,), 8))
    torch.manual_seed(0)
    module, loss = task.build_module(), Agreement()
    before = {k: p.detach().clone() for k, p in module.named_parameters()}
    run = TrainingRun(module, loss, task.inputs, task.supervision, config)
    run.train_epoch(0)
    leaves = {k: p.clone().requires_grad_() for k, p in before.items()}
    logits = torch.func.functional_call(module, leaves, (task.inputs,))
    Agreement()(logits, loss.seen[0]).backward()
    for name, parameter in module.named_parameters():
        decay = 0.1 * before[name] if parameter.dim() > 1 else 0
        expected = before[name] - 0.5 * (leaves[name].grad + decay)
        torch.testing.assert_close(parameter.detach(), expected)
    assert loss.scale.item() != 1.0  # the loss's own parameter moved too


def test_a_backbone_learns_at_its_own_rate(blobs):
    config = config_of(epochs=1, optimizer="sgd", learning_rate=0.5, backbone_rate=0.01)
    backbone = nn.Sequential(nn.Linear(6, 6))
    module = BackboneEncoder(Architecture("linear", (6,), 8, backbone="module"), backbone)
    run = TrainingRun(
        module, Agreement(), torch.from_numpy(blobs[0]).float(), supervise(*blobs), config
    )
    rates = {trained.name: trained.rate for trained in run.optimizer.weights}
    assert len(rates) == 5
    for name, rate in rates.items():
        assert rate == (0.005 if name.startswith("module.backbone.") else 0.5)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (AdamW, lambda groups: torch.optim.AdamW(groups)),
        (lambda leaves: SGD(leaves, 0.9, False), lambda g: torch.optim.SGD(g, momentum=0.9)),
        (
            lambda leaves: SGD(leaves, 0.8, True),
            lambda g: torch.optim.SGD(g, momentum=0.8, nesterov=True),
        ),
    ],
    ids=["adamw", "sgd", "nesterov"],
)
def test_optimisers_take_the_steps_of_torchs_own(ours, theirs, rng):
    starts = [torch.from_numpy(rng.normal(size=shape)) for shape in ((4, 3), (3,))]
    mine, other = ([nn.Parameter(start.clone()) for start in starts] for _ in range(2))
    rates, decays = (0.1, 0.02), (0.3, 0.0)
    zipped = list(zip(rates, decays, strict=True))
    optimizer = ours([TrainedWeight(str(i), w, *zipped[i]) for i, w in enumerate(mine)])
    reference = theirs(
        [
            {"params": [w], "lr": zipped[i][0], "weight_decay": zipped[i][1]}
            for i, w in enumerate(other)
        ]
    )
    for step in range(25):
        for weights in (mine, other):
            for number, weight in enumerate(weights):
                weight.grad = torch.cos(weight.detach() * (step + 1 + number))
        optimizer.step(1 / (1 + step))
        for group, rate in zip(reference.param_groups, rates, strict=True):
            group["lr"] = rate / (1 + step)
        reference.step()
    for weight, expected in zip(mine, other, strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-12, atol=1e-12)


def test_noise_has_the_unit_of_each_feature_and_spares_constant_ones(blobs, rng):
    x = np.hstack([blobs[0] * [1, 10, 100, 1, 1, 1], np.full((N_ROWS, 1), 7.0)])
    seen = []

    class Seeing(nn.Linear):
        def forward(self, x):
            seen.append(x)
            return super().forward(x)

    inputs = torch.from_numpy(x).float()
    config = config_of(epochs=1, batch_size=N_ROWS, noise=0.5)
    run = TrainingRun(Seeing(7, 8), Agreement(), inputs, supervise(*blobs), config)
    for _ in range(40):
        run.train_epoch(0)
    spread = torch.stack([x - inputs for x in seen]).std((0, 1))
    np.testing.assert_allclose(spread, 0.5 * x.std(0), rtol=0.05, atol=1e-6)


def test_a_loss_sees_levels_classes_and_a_slope_that_grows(blobs):
    seen = []

    class Watching(Agreement):
        def forward(self, logits, batch):
            seen.append(batch)
            return super().forward(logits, batch)

    config = config_of(epochs=4, batch_size=30, alpha=0.5, alpha_end=8.0, schedule="constant")
    result = run_training(task_of(blobs, config, build_loss=Watching))
    y = blobs[1]
    for number, batch in enumerate(seen):
        assert np.array_equal(batch.levels.numpy() > 0, y[batch.rows][:, None] == y[batch.rows])
        assert batch.classes.tolist() == y[batch.rows].tolist()
        assert batch.alpha == pytest.approx(0.5 * 16 ** (number / 16))
    assert result.history[-1]["alpha"] == seen[-1].alpha
    assert len(seen) == 16


def test_the_memory_holds_what_each_row_was_last_encoded_as(blobs):
    seen = []

    class Watching(Agreement):
        def forward(self, logits, batch):
            seen.append((batch, logits.detach().clone()))
            return super().forward(logits, batch)

    run_training(
        task_of(blobs, config_of(epochs=2, batch_size=40, gallery="memory"), build_loss=Watching)
    )
    memory = seen[0][0].gallery.clone()
    for batch, logits in seen:
        assert torch.equal(batch.gallery, memory)
        assert not batch.gallery.requires_grad
        assert np.array_equal(batch.own.numpy(), batch.rows)
        assert batch.levels.shape == (40, N_ROWS)
        memory[torch.from_numpy(batch.rows)] = logits


def scores(values):
    """A score that plays back numbers and remembers the weights it saw."""
    seen = []

    def score(module):
        assert not module.training
        seen.append({k: v.clone() for k, v in module.state_dict().items()})
        return values[len(seen) - 1]

    return score, seen


def test_the_best_epoch_is_kept_and_patience_ends_the_run(blobs):
    score, seen = scores([0.1, 0.05, 0.5, 0.4, 0.5, 0.3, 0.9])
    config = replace(FULL, epochs=20, patience=3)
    result = run_training(task_of(blobs, config, score=score))
    assert [record["score"] for record in result.history] == [0.1, 0.05, 0.5, 0.4, 0.5, 0.3]
    assert (result.best.epoch, result.best.score) == (3, 0.5)
    for name, tensor in result.module.state_dict().items():
        assert torch.equal(tensor, seen[2][name])


def test_scores_are_asked_for_every_k_epochs_and_at_the_end(blobs):
    score, _ = scores([1.0, 2.0, 3.0])
    result = run_training(task_of(blobs, config_of(epochs=5, score_every=2), score=score))
    assert [record["score"] for record in result.history] == [None, 1.0, None, 2.0, 3.0]


def test_of_several_restarts_the_best_is_kept(blobs):
    score, seen = scores([0.1, 0.2, 0.7, 0.1, 0.3, 0.6])
    result = run_training(task_of(blobs, config_of(epochs=2, n_restarts=3), score=score))
    assert result.best.to_json() == {"score": 0.7, "epoch": 1, "restart": 1}
    assert all(torch.equal(t, seen[2][k]) for k, t in result.module.state_dict().items())
    starts = [record["loss"] for record in result.history if record["epoch"] == 1]
    assert len(set(starts)) == 3


def test_without_a_score_the_restart_with_the_least_loss_is_kept(blobs):
    result = run_training(task_of(blobs, config_of(epochs=3, n_restarts=4)))
    last = [record["loss"] for record in result.history if record["epoch"] == 3]
    assert result.best.restart == int(np.argmin(last))
    assert result.best.score == -min(last)


def test_the_log_is_the_history_one_json_object_a_line(blobs, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("left over from another run\n")
    result = run_training(task_of(blobs, config_of(epochs=3), log=TrainingLog(log)))
    assert [json.loads(line) for line in log.read_text().splitlines()] == result.history
    assert set(result.history[0]) == {
        "restart", "epoch", "loss", "learning_rate", "alpha", "score", "seconds"
    }  # fmt: skip


def test_a_log_that_cannot_be_written_warns_once_and_training_goes_on(blobs, tmp_path):
    log = TrainingLog(tmp_path / "log.jsonl")
    log.start([])
    log.path = type(tmp_path)("/dev/full")
    with pytest.warns(RuntimeWarning, match="log /dev/full cannot be written .*goes on") as told:
        log.write({"loss": 1.0})
    log.write({"loss": 2.0})
    assert len(told) == 1


@pytest.mark.parametrize(("wanted", "shown"), [(False, False), ("auto", False), (True, True)])
def test_progress_goes_to_standard_error_when_asked(blobs, capsys, wanted, shown):
    with progress_bar(wanted, 2) as progress:
        run_training(task_of(blobs, config_of(epochs=2), progress=progress))
    out, err = capsys.readouterr()
    assert out == ""
    assert ("2/2" in err) == shown


class Diverging(nn.Module):
    def forward(self, logits, batch):
        return logits.sum() * math.inf


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"score": lambda module: "good"}, "scoring must return a number, got str 'good'"),
        ({"score": lambda module: math.nan}, "scoring must return a finite number"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(blobs, changes, says):
    changes = {"config": config_of(epochs=1), **changes}
    with pytest.raises(InputError, match=says):
        run_training(task_of(blobs, **changes))


def test_a_loss_that_is_not_finite_at_once_is_not_blamed_on_the_learning_rate(blobs):
    with pytest.raises(
        FitError, match=r"diverged at step 1: the loss of the method is .*inf before"
    ):
        run_training(task_of(blobs, config_of(epochs=1), build_loss=Diverging))


@pytest.mark.parametrize("config", [config_of(batches="balanced"), config_of(mixup=0.3)])
def test_classes_are_needed_where_batches_or_mixtures_go_by_them(blobs, config):
    unlabelled = supervise(blobs[0], None)
    with pytest.raises(InputError, match="needs class labels as y, got y as ranks"):
        run_training(task_of(blobs, config, supervision=unlabelled))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epochs": 0}, "epochs must be an integer >= 1, got 0"),
        ({"batch_size": 1}, "batch_size must be an integer >= 2"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0, got 0"),
        ({"learning_rate": math.nan}, "learning_rate must be"),
        ({"learning_rate": "fast"}, "learning_rate must be a finite number .*got str 'fast'"),
        ({"weight_decay": -1.0}, "weight_decay must be a finite number, 0 or more"),
        ({"ema": 1.0}, "ema must be a number from 0 and below 1"),
        ({"alpha_end": 0.0}, "alpha_end must be a finite number above 0"),
        ({"patience": 0}, "patience must be an integer >= 1"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"optimizer": "adam"}, "did you mean 'adamw'"),
        ({"gallery": "all"}, "gallery must be one of batch, memory"),
    ],
)
def test_parameters_are_checked_when_a_fit_reads_them(changes, says):
    with pytest.raises(InputError, match=says):
        read_parameters(TrainingParameters(**changes))


def test_a_device_that_is_not_there_is_refused():
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    for name, there in (("cuda", torch.cuda.is_available()), ("mps", False)):
        if not there and not (name == "mps" and torch.backends.mps.is_available()):
            with pytest.raises(
                InputError, match=f"device '{name}' is not available on this machine"
            ):
                choose_device(name)
