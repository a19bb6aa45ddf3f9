"""Folders of results, read back: what may stand side by side, and what is refused by name."""

import json
from dataclasses import replace

import numpy as np
import pytest

from made_results import made_result, write_result
from rankbits.benchmark import PerClass, load_results, protocol, run
from rankbits.benchmark._store import settings_hash
from rankbits.errors import FileFormatError, InputError

S1 = replace(protocol("cifar10-s1"), split=PerClass(queries=4, training=20))


def test_a_cell_is_mean_and_spread_over_the_seeds_of_its_files(data_folder, tmp_path):
    result = run(S1, data_folder, ["lsh", "itq"], [4, 8], seeds=3, out=tmp_path)
    results = load_results(tmp_path)
    assert len(results.runs) == 12
    assert results.protocols == ("cifar10-s1",)
    for row in result["summary"]:
        cell = results.find("cifar10-s1", row["method"], row["bits"])
        score = cell.score("AP")
        assert (score.mean, score.sd) == (row["metrics"]["AP"]["mean"], row["metrics"]["AP"]["sd"])
        assert score.n_runs == 3
        assert cell.code_use("entropy_bits").mean == row["code_use"]["entropy_bits"]
        assert cell.seconds("fit").mean == pytest.approx(row["seconds"]["fit"])
        assert cell.score("nDCG") is None
    assert results.find("cifar10-s1", "itq", 16) is None


def test_parameters_queries_and_versions_set_cells_apart(tmp_path):
    for changes in (
        {},
        {"params": {"rotation": None}},
        {"queries": "real"},
        {"codes": "abc"},
        {"version": "0.2.0"},
    ):
        write_result(tmp_path, made_result("cifar10-s1", "lwh", 8, **changes))
    write_result(tmp_path, made_result("mlgap-cifar10", "dsh", 8))
    labels = {cell.label for cell in load_results(tmp_path).cells}
    assert labels == {
        "lwh (version 0.1.0)",
        "lwh (version 0.2.0)",
        "lwh (rotation=null)",
        "lwh (real queries)",
        "lwh (given codes)",
        "dsh",  # its parameters are the protocol's
    }


def other_split(result):
    result["split"]["hash"] = "f" * 64


def other_convention(result):
    result["metrics"]["AP"]["conventions"] = {"ties": "broken by index"}


def other_data(result):
    result["settings"]["data"] = "e" * 64


def other_rules(result):
    result["settings"]["protocol"]["split"]["queries"] = 7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_split, "hash of split 0: ffffffffffff and 000000000000"),
        (other_convention, "conventions of AP: .*broken by index.*expectation"),
        (other_data, "hash of the data: eeeeeeeeeeee and dddddddddddd"),
        (other_rules, "rules: "),
    ],
)
def test_runs_that_cannot_stand_side_by_side_are_refused_by_name(tmp_path, change, words):
    first = write_result(tmp_path, made_result("cifar10-s1", "itq", 8))
    result = made_result("cifar10-s1", "lsh", 8)
    change(result)
    result["settings_hash"] = settings_hash(result["settings"])
    second = write_result(tmp_path, result)
    with pytest.raises(InputError, match=words) as refused:
        load_results(tmp_path)
    assert str(refused.value).startswith(f"{second.name} cannot stand beside {first.name}")
    second.unlink()
    assert len(load_results(tmp_path).runs) == 1


def test_other_splits_of_other_seeds_and_other_protocols_are_no_conflict(tmp_path):
    for name, seed in (("cifar10-s1", 0), ("cifar10-s1", 1), ("cifar10-s2", 0)):
        write_result(tmp_path, made_result(name, "itq", 8, seed))
    assert len(load_results(tmp_path).runs) == 3


def test_one_run_in_two_files_is_joined_or_refused(tmp_path):
    metrics = {"AP": 0.5, "P@r2": 0.25}
    first = made_result("cifar10-s1", "itq", 8, metrics=metrics)
    more = made_result("cifar10-s1", "itq", 8, metrics={"AP": 0.5, "RR": 0.75})
    more["settings"]["metrics"] = ["AP", "RR"]
    more["settings_hash"] = settings_hash(more["settings"])
    write_result(tmp_path, first)
    write_result(tmp_path, more)
    (cell,) = load_results(tmp_path).cells
    assert {name: cell.score(name).mean for name in ("AP", "P@r2", "RR")} == {**metrics, "RR": 0.75}
    assert cell.score("AP").n_runs == 1
    more["metrics"]["AP"]["mean"] = 0.6
    write_result(tmp_path, more)
    with pytest.raises(InputError, match="are the same run and differ in AP: 0"):
        load_results(tmp_path)


def test_two_files_of_codes_with_one_name_and_seed_are_refused(tmp_path):
    for digest in ("a" * 64, "b" * 64):
        write_result(tmp_path, made_result("cifar10-s1", "theirs", 8, codes=digest))
    words = r"are both of theirs \(given codes\), 8 bits, split seed 0 and seed 0"
    with pytest.raises(InputError, match=words):
        load_results(tmp_path)


def test_damaged_results_are_named_and_other_files_are_passed_over(tmp_path):
    file = write_result(tmp_path, made_result("cifar10-s1", "itq", 8))
    (tmp_path / "notes.json").write_text('{"mine": 1}')
    (tmp_path / "cells.csv").write_text("a,b")
    assert len(load_results(tmp_path).runs) == 1
    whole = file.read_text()
    for text, words in (
        (whole[:100], "cut off or damaged"),
        (whole.replace('"split"', '"spilt"'), "not a whole result"),
        (whole.replace('"bits": 8', '"bits": 9'), "settings that its settings_hash is not of"),
    ):
        file.write_text(text)
        with pytest.raises(FileFormatError, match=f"{file.name}.*{words}"):
            load_results(tmp_path)
    with pytest.raises(InputError, match="there is no"):
        load_results(tmp_path / "none")


def test_an_older_result_has_no_use_of_codes(tmp_path):
    result = made_result("cifar10-s1", "itq", 8)
    del result["code_use"]
    write_result(tmp_path, result)
    (cell,) = load_results(tmp_path).cells
    assert cell.code_use("entropy_bits") is None
    assert json.dumps(cell.score("AP").mean) == json.dumps(result["metrics"]["AP"]["mean"])
    assert np.isfinite(cell.score("AP").mean)
