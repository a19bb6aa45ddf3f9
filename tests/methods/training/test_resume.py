"""A run that is killed, at any moment and any number of times, ends as if it never had been."""

import errno
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from rankbits import _files, methods
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.training.checkpoints import Checkpoints, compute_fingerprint

Y = np.arange(90) % 3
X = np.random.default_rng(2).normal(size=(90, 8)) + 2 * np.eye(8)[Y]
QUICK = {"n_bits": 8, "epochs": 4, "hidden": (8,), "n_threads": 1, "random_state": 0}

KILLED = """
    import json, os, random, signal, sys, time
    import numpy as np, torch
    from rankbits import methods
    from rankbits.methods.deep import talr  # imported once, before the forks
    from rankbits.methods.training import log as training_log
    import safetensors.torch

    torch.set_num_threads(1)
    folder, params, moments = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
    y = np.arange(240) % 4
    x = np.random.default_rng(2).normal(size=(240, 16)) + 1.5 * np.eye(16)[y]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def arm(moment):
        kind, number = moment.split(":")
        count = [int(number)]
        def at(real, before, after):
            def call(*args, **named):
                count[0] -= 1
                if count[0] == 0 and before:
                    before(*args)
                result = real(*args, **named)
                if count[0] == 0 and after:
                    die()
                return result
            return call
        def half_a_line(record):
            with open(folder + "/log", "a") as file:
                file.write(json.dumps(record)[:20])
            die()
        if kind in ("before-rename", "after-rename"):
            before = (lambda *_: die()) if kind == "before-rename" else None
            os.replace = at(os.replace, before, kind == "after-rename")
        if kind == "half-a-line":
            log = training_log.TrainingLog
            log.write = at(log.write, lambda self, record: half_a_line(record), False)
        if kind == "backward":
            torch.Tensor.backward = at(torch.Tensor.backward, lambda *_: die(), False)

    def fit(name, checkpoint):
        log = folder + "/" + name
        hasher = methods.get("talr-ap", **params, log=log, checkpoint=checkpoint).fit(x, y)
        arrays = {k: v.numpy() for k, v in hasher.encoder_.state_dict().items()}
        np.savez(folder + "/" + name + ".npz", **arrays)
        os._exit(0)

    def child(job):
        pid = os.fork()
        if pid == 0:
            job()
        return pid

    os.waitpid(child(lambda: fit("whole", None)), 0)
    seconds = sum(json.loads(line)["seconds"] for line in open(folder + "/whole"))
    dice, killed = random.Random(4), 0
    for moment in moments:
        def job(moment=moment):
            if moment != "random":
                arm(moment)
            fit("log", folder + "/state")
        pid = child(job)
        if moment == "random":
            time.sleep(dice.uniform(0.05, 0.5 * seconds))
            os.kill(pid, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    os.waitpid(child(lambda: fit("log", folder + "/state")), 0)
    print(killed)
"""
RICH = {
    "encoder": "mlp", "hidden": [16], "epochs": 5, "batch_size": 50, "mixup": 0.5, "noise": 0.1,
    "ema": 0.9, "n_restarts": 4, "validation_fraction": 0.2, "dropout": 0.3, "patience": 2,
    "learning_rate": 0.05,
}  # fmt: skip
PLAIN = {
    "encoder": "linear", "epochs": 30, "batch_size": 50, "gallery": "memory", "optimizer": "sgd",
    "learning_rate": 0.05, "batches": "balanced",
}  # fmt: skip


def lines_of(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]


@pytest.mark.parametrize("params", [RICH, PLAIN], ids=["mlp", "memory"])
def test_a_run_killed_again_and_again_equals_the_uninterrupted_one_bit_for_bit(params, tmp_path):
    params = {**params, "n_bits": 8, "random_state": 3, "checkpoint_epochs": 1}
    moments = ["backward:3", "before-rename:2", "half-a-line:2", "after-rename:3", "backward:9",
               "before-rename:3", "half-a-line:7", "half-a-line:3", "random", "random"]  # fmt: skip
    command = [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path, json.dumps(params)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*map(str, command), *moments], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.stderr == ""
    assert int(done.stdout) >= 8
    with np.load(tmp_path / "whole.npz") as whole, np.load(tmp_path / "log.npz") as resumed:
        assert sorted(whole) == sorted(resumed)
        for name in whole:
            assert np.array_equal(whole[name], resumed[name]), name
    assert lines_of(tmp_path / "log") == lines_of(tmp_path / "whole")
    assert sorted(p.name for p in (tmp_path / "state").iterdir()) == ["checkpoint.safetensors"]


def fit(folder, X=X, y=Y, **changes):
    return methods.get("talr-ap", **{**QUICK, "checkpoint": folder, **changes}).fit(X, y)


def test_a_finished_run_is_not_trained_again(tmp_path):
    first = fit(tmp_path)
    again = fit(tmp_path)
    assert again.history_ == first.history_  # its seconds too: they were read, not measured
    assert again.report_["epochs_resumed"] == 4
    assert np.array_equal(again.project(X), first.project(X))


def test_a_run_without_a_seed_is_resumed_with_the_seed_it_drew(tmp_path):
    first = fit(tmp_path, random_state=None)
    assert np.array_equal(fit(tmp_path, random_state=None).project(X), first.project(X))


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 5},
        {"hidden": (9,)},
        {"random_state": 1},
        {"relaxation": "simplified"},
        {"validation_fraction": 0.1},
        {"y": np.where(np.arange(90) == 4, 2, Y)},
        {"X": X + 1e-3 * (np.arange(90) == 4)[:, None]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_checkpoint_of_another_run_is_refused_or_replaced(tmp_path, changes):
    fit(tmp_path)
    with pytest.raises(
        InputError, match="belongs to another training: settings, data or labels differ"
    ):
        fit(tmp_path, **changes)
    assert fit(tmp_path, resume=False, **changes).report_["epochs_resumed"] == 0
    assert fit(tmp_path, **changes).report_["epochs_resumed"] > 0


@pytest.mark.parametrize(
    "damage", [lambda data: data[:100], lambda data: b"", lambda data: data[:9] + b"x" + data[10:]]
)
def test_a_damaged_checkpoint_is_refused_by_name(tmp_path, damage):
    fit(tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileFormatError, match=r"checkpoint .*checkpoint\.safetensors is damaged"):
        fit(tmp_path)
    assert fit(tmp_path, resume=False).report_["epochs"] == 4


def test_a_full_disk_keeps_the_last_checkpoint_and_training_goes_on(tmp_path, monkeypatch):
    whole = fit(None)
    real, written = os.fsync, []

    def full_after_two(handle):
        written.append(handle)
        if len(written) > 4:  # file and folder, twice
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(_files.os, "fsync", full_after_two)
    with pytest.warns(RuntimeWarning, match="cannot be written .*No space left.*goes on"):
        hasher = fit(tmp_path, checkpoint_epochs=1)
    assert hasher.report_["checkpoints_failed"] == 2
    assert np.array_equal(hasher.project(X), whole.project(X))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]
    monkeypatch.setattr(_files.os, "fsync", real)
    resumed = fit(tmp_path, checkpoint_epochs=1)
    assert resumed.report_["epochs_resumed"] == 2
    assert np.array_equal(resumed.project(X), whole.project(X))


def test_a_folder_that_cannot_be_made_is_refused_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="checkpoint must be a folder"):
        fit(tmp_path / "file" / "state")


def test_checkpoints_are_due_by_epochs_or_by_seconds(tmp_path):
    by_epochs = Checkpoints(tmp_path, every_epochs=3, every_seconds=1e9)
    assert [epoch for epoch in range(1, 10) if by_epochs.is_due(epoch)] == [3, 6, 9]
    assert Checkpoints(tmp_path, every_seconds=0.0).is_due(1)
    assert not Checkpoints(tmp_path, every_seconds=1e9).is_due(1)
    assert not Checkpoints(None, every_epochs=1).is_due(1)


def test_a_checkpoint_gives_back_tensors_of_every_type(tmp_path):
    store = Checkpoints(tmp_path, compute_fingerprint({"a": 1}, [X]))
    shared = torch.arange(6.0).reshape(2, 3)
    tensors = {"a": shared.T, "b": shared, "c": torch.tensor(3), "d": torch.zeros(0, 2).bool()}
    store.save(tensors, {"seed": 5, "score": None})
    found, facts = store.load()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert (facts["seed"], facts["score"]) == (5, None)
