"""`rankbits papers`, `rankbits report` and `rankbits bench-codes` as a user calls them."""

import json

import numpy as np
import pytest

from commands import Command
from made_results import made_result, write_result
from rankbits import papers as rerun

papers, report, bench_codes = Command("papers"), Command("report"), Command("bench-codes")
pytest.importorskip("matplotlib")


def test_ids_are_listed_one_a_line():
    done = papers()
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [exhibit.id for exhibit in rerun.exhibits()]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rsh-fig2", "--quick"], "--out must name the folder"),
        (["rsh-fig2", "--out", "x"], "--data must name the folder"),
        (["rsh-fig2", "--all", "--out", "x"], "give ids or --all"),
    ],
)
def test_bad_usage_exits_2(arguments, words):
    done = papers(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rsh-fig9", "--quick"], "id must be one of talr-fig1"),
        (["rsh-fig2", "--quick", "--method", "csq"], "method must be one of"),
        (["rsh-fig2", "--data", "."], r"data must hold a file cifar100*.npz of features"),
    ],
)
def test_bad_input_exits_1_with_one_line(arguments, words, tmp_path):
    done = papers(*arguments, "--out", tmp_path / "o")
    assert done.exit_code == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_quick_run_skips_what_is_there_and_counts(tmp_path):
    arguments = ["rsh-fig2", "--quick", "--method", "lsh", "--method", "itq", "--bits", 6]
    first = papers(*arguments, "--seeds", 2, "--out", tmp_path)
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout)["ids"] == ["rsh-fig2"]
    lines = first.stderr.splitlines()
    assert [line[:5] for line in lines] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert "quick-rsh-cifar100, lsh, 6 bits, seed 0: 0." in lines[0]
    assert "about 0 s left" in lines[-1]
    second = papers(*arguments, "--seeds", 2, "--out", tmp_path)
    assert second.stderr.count("there already") == 4
    assert report.printed(tmp_path)["files"] == {"html": str(tmp_path / "index.html")}
    assert "rsh-fig2-quick" in (tmp_path / "index.html").read_text()


def test_with_several_ids_missing_data_is_noted_and_the_rest_is_run(tmp_path):
    (tmp_path / "data").mkdir()
    done = papers("talr-fig1", "rsh-fig2", "--data", tmp_path / "data", "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    assert "rsh-cifar100 is left out: no cifar100*.npz" in done.stderr
    files = sorted(file.name for file in (tmp_path / "o").iterdir())
    assert files == [".rankbits.json", "exact-talr-fig1.json"]


def test_a_report_in_all_formats_and_of_nothing(tmp_path):
    done = report(tmp_path)
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert "folder must hold results" in done.stderr
    write_result(tmp_path, made_result("clinc150", "itq", 16))
    formats = ("html", "markdown", "latex", "csv")
    options = [word for name in formats for word in ("--format", name)]
    files = report.printed(tmp_path, *options)["files"]
    assert list(files) == list(formats)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".json") == [
        "cells.csv",
        "index.html",
        "tables.md",
        "tables.tex",
    ]
    assert report(tmp_path, "--format", "pdf").exit_code == 2
    assert papers("talr-fig1", "--out", tmp_path).exit_code == 0
    figures = report.printed(tmp_path, "--format", "svg")["files"]["svg"]
    assert (tmp_path / "figures" / "talr-fig1.svg").read_text().startswith("<svg")
    assert figures == str(tmp_path / "figures")


def test_a_page_that_is_the_users_is_not_replaced(tmp_path):
    write_result(tmp_path, made_result("clinc150", "itq", 16))
    for name in ("index.html", "tables.md"):
        (tmp_path / name).write_text("mine")
    for words in ((), ("--format", "markdown")):
        done = report(tmp_path, *words)
        assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
        assert "would be replaced, but it is not as rankbits wrote it" in done.stderr
    assert (tmp_path / "index.html").read_text() == (tmp_path / "tables.md").read_text() == "mine"
    (tmp_path / "index.html").unlink()
    for _ in range(2):  # its own page is replaced
        assert report(tmp_path).exit_code == 0


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(10), 12)
    for part in ("train", "test"):
        x = rng.standard_normal((len(y), 6)) + y[:, None]
        np.savez(folder / f"{part}.npz", x=x)
    parts = {f"x_{part}": np.load(folder / f"{part}.npz")["x"] for part in ("train", "test")}
    np.savez(folder / "cifar10_tiny.npz", **parts, y_train=y, y_test=y)
    return folder


def test_codes_of_others_from_the_split_to_the_page(data, tmp_path):
    split = Command("bench-split").printed(
        "cifar10-s2", "--data", data, "--out", tmp_path / "split.npz", "--split-seed", 1
    )
    with np.load(tmp_path / "split.npz") as stored:
        rows = {key: stored[key] for key in stored}
    assert str(rows["split_hash"]) == split["split_hash"]
    x = np.concatenate([np.load(data / f"{part}.npz")["x"] for part in ("train", "test")])
    packed = np.packbits(x > x.mean(axis=0), axis=1)
    np.savez(
        tmp_path / "codes.npz",
        queries=packed[rows["query_rows"]],
        database=packed[rows["database_rows"]],
        n_bits=6,
        method="mean-signs",
        **{key: rows[key] for key in ("query_rows", "database_rows", "split_hash", "split_seed")},
    )
    out = tmp_path / "results"
    options = [tmp_path / "codes.npz", "--data", data, "--out", out]
    done = bench_codes("cifar10-s2", *options, "--format", "table")
    assert done.exit_code == 0, done.output
    assert "mean-signs" in done.stdout
    result = bench_codes.printed("cifar10-s2", *options)
    assert result["runs"][0]["split"]["hash"] == split["split_hash"]
    report.printed(out)
    assert "mean-signs (given codes)" in (out / "index.html").read_text()
