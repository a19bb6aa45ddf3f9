"""Commands with --cluster print and write what they print and write without it."""

import json
import subprocess
import sys

import numpy as np
import pytest

import rankbits
from commands import Command
from rankbits.cli._cluster import describe_rate


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Rows and labels in two files, queries, a model, codes and indexes of one machine."""
    folder = tmp_path_factory.mktemp("commands")
    rng = np.random.default_rng(4)
    rows, labels = rng.standard_normal((900, 16)), rng.integers(0, 5, 900)
    for name, part in (("a", slice(0, 500)), ("b", slice(500, 900)), ("q", slice(0, 40))):
        np.save(folder / f"{name}.npy", rows[part])
        np.save(folder / f"y{name}.npy", labels[part])
    pairs = rng.choice(40 * 900, 300, replace=False)
    judged = np.column_stack([pairs // 900, pairs % 900, rng.integers(0, 4, 300)])
    np.save(folder / "judged.npy", judged)
    rankbits.methods.get("lsh", n_bits=20, random_state=0).fit(rows).save(folder / "model")
    for name in "abq":
        arguments = (folder / "model", folder / f"{name}.npy")
        Command("encode").printed(*arguments, "--out", folder / f"c{name}.npy")
    return folder


def run(place, *arguments, code=0):
    """A command in a process of its own: what it printed, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", "from rankbits.cli import main; main()", *map(str, arguments)],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


CODES = ("--queries", "cq.npy", "--database", "ca.npy", "--database", "cb.npy")
LABELS = ("--query-labels", "yq.npy", "--database-labels", "ya.npy", "--database-labels", "yb.npy")


@pytest.mark.slow
@pytest.mark.parametrize("relevance", [LABELS, ("--judgements", "judged.npy")])
def test_evaluate(cluster, place, relevance):
    arguments = ("evaluate", *CODES, *relevance, "--metric", "AP", "--metric", "nDCG@100")
    expected = run(place, *arguments)
    assert run(place, *arguments, "--cluster", cluster.address) == expected


@pytest.mark.slow
def test_encode_starts_ray_on_this_machine(place, tmp_path):
    out = tmp_path / "codes.npy"
    printed = run(place, "encode", "model", "a.npy", "b.npy", "--out", out, "--cluster", "auto")
    assert printed["items"] == 900
    alone = tmp_path / "alone.npy"
    run(place, "encode", "model", "a.npy", "b.npy", "--out", alone)
    assert out.read_bytes() == alone.read_bytes()
    error = run(place, "encode", "model", "a.npy", "--out", out, "--cluster", "auto", code=1)
    assert error.startswith("error: out must be new")
    assert error.count("\n") == 1


@pytest.mark.slow
def test_index_search(cluster, place, tmp_path):
    run(place, "index", "build", "ca.npy", "cb.npy", "--out", tmp_path / "one")
    run(place, "index", "build", "ca.npy", "cb.npy", "--out", tmp_path / "three", "--shards", "3")
    for queries in (("cq.npy",), ("q.npy", "--model", "model")):
        expected = run(place, "index", "search", tmp_path / "one", *queries, "-k", "7")
        for folder in ("one", "three"):
            answer = run(
                place, "index", "search", tmp_path / folder, *queries, "-k", "7",
                "--cluster", cluster.address,
            )  # fmt: skip
            differing = {key for key in answer if answer[key] != expected[key]}
            assert differing <= {"index", "seconds"}


def test_an_index_in_shards_is_searched_on_a_cluster_only(place, tmp_path):
    folder = tmp_path / "index"
    run(place, "index", "build", "ca.npy", "--out", folder, "--shards", "2", "--shard-by", "range")
    error = run(place, "index", "search", folder, "cq.npy", code=1)
    assert "is cut into shards; search it with --cluster auto" in error


def test_metrics_that_need_all_codes_are_refused_by_name(place):
    arguments = ("evaluate", *CODES, *LABELS, "--metric", "LGAP@r2", "--cluster", "auto")
    error = run(place, *arguments, code=1)
    assert error == (
        "error: metric 'LGAP@r2' needs all codes in one place; leave out --cluster, or this "
        "metric\n"
    )


def test_a_cluster_counts_codes_only(place):
    arguments = ("evaluate", "--similarity", "ip", *CODES, *LABELS, "--cluster", "auto")
    assert "must come without --similarity" in run(place, *arguments, code=2)


def test_a_bad_address_is_one_line(place):
    for command in (
        ("encode", "model", "a.npy", "--out", "never.npy"),
        ("evaluate", *CODES, *LABELS),
        ("index", "search", "model", "cq.npy"),
        ("cluster", "info"),
    ):
        error = run(place, *command, "--cluster", "127.0.0.1:1", code=1)
        assert error.startswith("error: cluster must be the address of a running Ray cluster")
        assert error.count("\n") == 1
    assert not (place / "never.npy").exists()


@pytest.mark.parametrize(
    ("n_done", "n_left", "expected"),
    [(0, 5, "0 rows/s, no estimate yet"), (40, 60, "20 rows/s, 3 s left")],
)
def test_rates(n_done, n_left, expected):
    assert describe_rate(n_done, n_left, 2.0, "rows") == expected
