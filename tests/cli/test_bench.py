"""`rankbits bench`: the function's result as JSON or tables, and one line for what is wrong."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from rankbits import benchmark
from rankbits.cli import app


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows for setting 1: 605 a class."""
    place = tmp_path_factory.mktemp("bench")
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((10, 8)) * 2
    arrays = {}
    for part, size in (("train", 600), ("test", 5)):
        y = np.repeat(np.arange(10), size)
        arrays[f"x_{part}"] = (centres[y] + rng.standard_normal((len(y), 8))).astype(np.float16)
        arrays[f"y_{part}"] = y
    np.savez(place / "cifar10.npz", **arrays)
    return place


def call(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def assert_one_line(done, *parts):
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.output
    for part in parts:
        assert part in done.stderr


def test_json_is_what_the_function_returns(folder):
    arguments = ["--method", "sign", "--method", "itq", "--bits", 4, "--bits", 8, "--seeds", 2]
    done = call("cifar10-s1", "--data", folder, *arguments, "--metric", "P@10", "--threads", 1)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    wanted = benchmark.run(
        "cifar10-s1", folder, ["sign", "itq"], [4, 8], seeds=2, metrics=["P@10"], n_threads=1
    )
    assert [row["metrics"] for row in found["summary"]] == [
        row["metrics"] for row in wanted["summary"]
    ]
    assert [row["split"] for row in found["runs"]] == [row["split"] for row in wanted["runs"]]
    assert found["runs"][0]["split"]["queries"] == 1000
    assert found["runs"][0]["split"]["training"] == 5000
    assert found["protocol"]["published"][0]["values"]["TALR-AP"]["32"] == 0.8
    lines = done.stderr.splitlines()
    assert len(lines) == 8
    assert re.fullmatch(
        r"sign, 4 bits, split 0, seed 0: AP 0\.\d{4}, .*, P@10 0\.\d{4} \(\d+\.\d s\)", lines[0]
    )


def test_a_folder_of_results_is_not_filled_twice(folder, tmp_path):
    arguments = ["cifar10-s1", "--data", folder, "--method", "lsh", "--bits", 8]
    arguments += ["--split-seed", 3, "--out", tmp_path / "r"]
    first, second = call(*arguments), call(*arguments)
    assert first.stdout == second.stdout
    assert "(read from --out)" in second.stderr
    assert "(read from --out)" not in first.stderr
    (file,) = (tmp_path / "r").iterdir()
    assert file.name.startswith("cifar10-s1-lsh-8b-split3-seed0-")
    assert json.loads(file.read_text()) == json.loads(first.stdout)["runs"][0]


def test_parameters_reach_the_methods(folder):
    arguments = ["--param", "sign.center=false", "--param", "sign.choose=first"]
    done = call("cifar10-s1", "--data", folder, "--method", "sign", "--bits", 8, *arguments)
    settings = json.loads(done.stdout)["runs"][0]["settings"]
    assert settings["params"] == {"center": False, "choose": "first"}


def test_a_table_has_ours_and_theirs_by_length(folder):
    arguments = ["--method", "lsh", "--method", "sign", "--seeds", 2, "--format", "table"]
    wanted = benchmark.run("cifar10-s1", folder, ["lsh", "sign"], [8], seeds=2)
    done = call("cifar10-s1", "--data", folder, "--bits", 8, *arguments)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    cell = wanted["summary"][0]["metrics"]["AP"]
    mine = next(line for line in lines if line[:1] == ["lsh"])
    assert mine[1:3] == [f"{cell['mean']:.4f}", f"±{cell['sd']:.4f}"]
    assert not any(line[:1] == ["TALR-AP"] for line in lines)  # the paper has no 8 bits
    assert "cifar10-s1: AP, mean ±sd of 2 runs" in done.stdout
    done = call(
        "cifar10-s1", "--data", folder, "--bits", 48, "--method", "lsh", "--format", "table"
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["TALR-AP", "0.826", "CIFAR-10,", "AP"] in lines
    assert ["DCH", "0.810", "CIFAR-10,", "AP,", "ties", "broken"] in lines
    assert "CVPR 2018; images, VGG-F trained along" in done.stdout
    assert "±" not in done.stdout


def test_the_list_of_protocols(folder):
    found = json.loads(call("--list").stdout)["protocols"]
    assert [row["name"] for row in found] == [row.name for row in benchmark.protocols()]
    table = call("--list", "--format", "table").stdout
    assert re.search(r"corel5k-ndcg\s+16 32 48 64\s+nDCG\s+corel5k\*.npz", table)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["cifar10"], ["protocol must be one of", "did you mean 'cifar10-s"]),
        (["cifar10-s1", "--method", "ithq"], ["did you mean 'itq'?"]),
        (["cifar10-s1", "--method", "lsh", "--bits", 4097], ["bits must be an integer from 1"]),
        (
            ["cifar10-s1", "--method", "sign", "--bits", 9],
            ["sign of 9 bits: n_bits must be at most 8"],
        ),
        (["cifar10-s1", "--method", "lsh", "--metric", "mAP"], ["unknown metric"]),
        (["cifar10-s1", "--method", "lsh", "--param", "deep=1"], ["no parameter 'deep'"]),
        (["corel5k-ap", "--method", "lsh"], ["corel5k*.npz"]),
        (["distance-ndcg", "--method", "lsh"], ["at least 22000 rows, got 6050"]),
    ],
)
def test_bad_input_is_one_line_and_exit_1(folder, arguments, parts):
    assert_one_line(call(*arguments, "--data", folder), *parts)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["cifar10-s1"],
        ["cifar10-s1", "--data", ".", "--seeds", "0"],
        ["cifar10-s1", "--data", ".", "--param", "novalue"],
        ["cifar10-s1", "--data", ".", "--bits", "many"],
        ["cifar10-s1", "--data", ".", "--bits", "0"],
    ],
)
def test_bad_usage_exits_2(arguments):
    assert call(*arguments).exit_code == 2
