"""Two processes with a part of the batch each: the loss and the gradients of one process."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from rankbits import methods
from rankbits.methods.training import parallel

COMMON = """
    import json, os, sys
    import numpy as np, torch
    from torch import distributed, nn
    from rankbits import affinity, methods, objectives
    from rankbits.methods.deep import talr  # imported once, before the forks
    from rankbits.methods.training import encoders, parallel
    from rankbits.methods.training.kinds import Architecture
    from rankbits.methods.training.layers import BatchNorm2d

    torch.set_num_threads(1)
    folder = sys.argv[1]
    y = np.arange(90) % 3
    x = np.random.default_rng(2).normal(size=(90, 8)) + 2 * np.eye(8)[y]

    def in_processes(job, n_processes):
        children = []
        for rank in range(n_processes):
            pid = os.fork()
            if pid == 0:
                if n_processes > 1:
                    place = f"file://{folder}/{job.__name__}"
                    distributed.init_process_group("gloo", place, None, n_processes, rank)
                job(rank, n_processes)
                sys.stdout.flush()
                os._exit(0)
            children.append(pid)
        if any(os.waitpid(pid, 0)[1] for pid in children):
            sys.exit(1)
"""
STEP = """
    def step(rank, n_processes):
        torch.manual_seed(0)
        d = Architecture("mlp", (8,), 6, hidden=(5,), normalization="batch", skip=True)
        head = encoders.build_encoder(d).head.double()
        images = nn.Sequential(nn.Conv2d(2, 4, 3), BatchNorm2d(4)).double()
        n = 7  # parts of 4 and 3
        part = parallel.own_share(n)
        rows = torch.from_numpy(x[:n])
        logits = parallel.gather(head(rows[part]), n)
        same = torch.from_numpy(y[:n, None] == y[:n])
        loss = 1 - objectives.relaxed_ap(torch.tanh(logits), same).nanmean()
        pictures = torch.randn(n, 2, 5, 5, dtype=torch.double)
        maps = parallel.gather(images(pictures[part]), n)
        loss = loss + (maps ** 3).mean()
        loss.backward()
        found = {"loss": loss.detach()}
        for name, module in (("head", head), ("images", images)):
            parallel.sum_gradients(module)
            found |= {name + k: p.grad for k, p in module.named_parameters()}
            found |= {name + k: b for k, b in module.named_buffers()}
        arrays = {k: v.numpy() for k, v in found.items()}
        np.savez(f"{folder}/step-{n_processes}-{rank}.npz", **arrays)
"""
FIT = """
    def fit(rank, n_processes):
        hasher = methods.get(
            "talr-ap", n_bits=8, hidden=(8,), dropout=0.0, input_dropout=0.0, epochs=4, noise=0.2,
            batch_size=31, mixup=0.5, ema=0.8, optimizer="sgd", learning_rate=0.1,
            validation_fraction=0.2, random_state=1, n_threads=1,
            log=f"{folder}/log-{n_processes}-{rank}", checkpoint=f"{folder}/state-{n_processes}",
        ).fit(x, y)
        assert hasher.report_["processes"] == n_processes
        found = {k: v.numpy() for k, v in hasher.encoder_.state_dict().items()}
        found["losses"] = np.array([record["loss"] for record in hasher.history_])
        np.savez(f"{folder}/fit-{n_processes}-{rank}.npz", **found)

    def maps(rank, n_processes):
        hasher = methods.get(
            "talr-ap", n_bits=8, queries="own", hidden=(8,), dropout=0.0, input_dropout=0.0,
            epochs=4, noise=0.2, batch_size=31, ema=0.8, optimizer="sgd", learning_rate=0.1,
            random_state=1, n_threads=1,
        ).fit(x[30:], query_X=x[:30], judgements=affinity.classes(y[:30], y[30:]))
        found = {"items." + k: v.numpy() for k, v in hasher.encoder_.state_dict().items()}
        weights = hasher.query_encoder_.state_dict().items()
        found |= {"queries." + k: v.numpy() for k, v in weights}
        np.savez(f"{folder}/maps-{n_processes}-{rank}.npz", **found)

    for job in (step, fit, maps):
        for n_processes in (1, 2):
            in_processes(job, n_processes)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What one and two processes made of the same step and the same fit."""
    folder = tmp_path_factory.mktemp("parallel")
    program = "".join(map(textwrap.dedent, (COMMON, STEP, FIT)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder


def found_in(folder, job):
    names = ("1-0", "2-0", "2-1")
    return [dict(np.load(folder / f"{job}-{name}.npz")) for name in names]


def test_loss_gradients_and_statistics_of_a_shared_batch_are_those_of_one_process(folder):
    alone, *both = found_in(folder, "step")
    for found in both:
        assert sorted(found) == sorted(alone)
        for name, expected in alone.items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert np.abs(alone["headbody.layers.0.weight"]).max() > 1e-4


def test_two_processes_train_the_encoder_of_one(folder):
    alone, first, second = found_in(folder, "fit")
    for name, expected in alone.items():
        assert np.array_equal(first[name], second[name]), name
        np.testing.assert_allclose(first[name], expected, rtol=1e-3, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(first["losses"][0], alone["losses"][0], atol=1e-6)
    records = [json.loads(line) for line in (folder / "log-2-0").read_text().splitlines()]
    assert len(records) == 4
    assert not (folder / "log-2-1").exists()  # process 0 writes


def test_two_processes_train_the_two_maps_of_one_on_logged_queries(folder):
    alone, first, second = found_in(folder, "maps")
    for name, expected in alone.items():
        assert np.array_equal(first[name], second[name]), name
        np.testing.assert_allclose(first[name], expected, rtol=1e-3, atol=1e-4, err_msg=name)
    weight = "head.body.layers.0.weight"
    assert np.abs(alone[f"items.{weight}"] - alone[f"queries.{weight}"]).max() > 1e-4


def test_without_a_group_everything_is_in_one_place():
    part = torch.arange(6.0).reshape(3, 2)
    assert parallel.world_size() == 1
    assert parallel.own_share(5) == slice(0, 5)
    assert parallel.gather(part, 3) is part
    assert parallel.summed(part) is part
    assert parallel.agree(0.25) == 0.25


@pytest.mark.parametrize("name", ["talr-ap", "talr-ndcg"])
def test_one_process_says_so(name):
    y = np.arange(20) % 2
    hasher = methods.get(name, n_bits=4, epochs=1, hidden=(4,), random_state=0)
    assert hasher.fit(np.eye(20), y).report_["processes"] == 1
