import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rankbits.cli import app
from rankbits.evaluation import compare

RNG = np.random.default_rng(0)
A = {"AP": RNG.random(30), "P@r2": RNG.random(30)}
B = {"AP": A["AP"] + RNG.normal(0.05, 0.1, 30), "RR": RNG.random(30)}
B["AP"][4] = np.nan


def write(path, values):
    columns = {"query": np.arange(len(next(iter(values.values()))))}
    pq.write_table(pa.table({**columns, **values}), path)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("a.parquet", A)
    write("b.parquet", B)


def call(*arguments):
    return CliRunner().invoke(app, ["compare", *arguments])


def test_the_command_prints_what_the_function_returns():
    done = call("a.parquet", "b.parquet", "--resamples", "500", "--seed", "3")
    assert done.exit_code == 0, done.stderr
    wanted = compare(A, B, n_resamples=500, random_state=3).to_dict()
    assert json.loads(done.stdout) == {"a": "a.parquet", "b": "b.parquet", **wanted}
    assert list(wanted["metrics"]) == ["AP"]
    assert wanted["metrics"]["AP"]["left_out"] == 1


def test_only_the_metrics_asked_for_are_compared():
    done = call("a.parquet", "a.parquet", "--metric", "P@r2", "--resamples", "9")
    assert list(json.loads(done.stdout)["metrics"]) == ["P@r2"]


def test_the_table_shows_the_difference_and_takes_names_literally():
    write("[b].parquet", {"[red]x": A["AP"]})
    done = call("a.parquet", "b.parquet", "--metric", "AP", "--format", "table")
    found = compare(A, B).metrics["AP"]
    assert f"{found.difference:.4f}" in done.stdout
    assert f"{found.wins}/{found.ties}/{found.losses}" in done.stdout
    same = call("[b].parquet", "[b].parquet", "--format", "table")
    assert "[red]x" in same.stdout
    assert "A = [b].parquet" in same.stdout
    assert "1.0000" in same.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a.parquet", "absent.parquet"], "there is no absent.parquet"),
        (["a.parquet", "b.parquet", "--metric", "P@r2"], "b.parquet has AP, RR"),
        (["a.parquet", "short.parquet"], "30 values in a and 29 in b"),
        (["a.parquet", "other.parquet"], "share a metric"),
        (["a.parquet", "foreign.parquet"], "foreign.parquet is not a readable .parquet file"),
        (["a.parquet", "table.parquet"], "not a file of per-query values"),
        (["a.parquet", "."], ". is a folder"),
    ],
)
def test_bad_input_exits_1_with_one_line(tmp_path, arguments, reason):
    write("short.parquet", {"AP": A["AP"][1:]})
    write("other.parquet", {"RR": A["AP"]})
    pq.write_table(pa.table({"id": [1, 2]}), "table.parquet")
    (tmp_path / "foreign.parquet").write_bytes(b"PAR1 but no more")
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.parquet"],
        ["a.parquet", "b.parquet", "--resamples", "0"],
        ["a.parquet", "b.parquet", "c"],
    ],
)
def test_bad_usage_exits_2(arguments):
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
