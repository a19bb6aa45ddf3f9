"""Codes made elsewhere: the same numbers as the same codes made here, rows and split checked."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rankbits import methods
from rankbits.benchmark import (
    PerClass,
    evaluate_codes,
    load_results,
    protocol,
    run,
    write_split,
)
from rankbits.datasets import load_features
from rankbits.errors import FileFormatError, InputError

S1 = replace(protocol("cifar10-s1"), split=PerClass(queries=4, training=20))


@pytest.fixture(scope="module")
def given(data_folder, tmp_path_factory):
    """The arrays of a file of codes, made from the written split alone."""
    split_file = tmp_path_factory.mktemp("split") / "split.npz"
    split_hash = write_split(S1, data_folder, split_file, split_seed=2)
    with np.load(split_file) as stored:
        split = {key: stored[key] for key in stored}
    assert str(split["split_hash"]) == split_hash
    x = load_features(data_folder / "cifar10_tiny.npz").x
    hasher = methods.get("itq", n_bits=10, random_state=2).fit(x[split["training_rows"]])
    return {
        "queries": hasher.encode(x[split["query_rows"]]).packed,
        "database": hasher.encode(x[split["database_rows"]]).packed,
        "n_bits": 10,
        "method": "their-itq",
        "seed": 2,
        **{key: split[key] for key in ("query_rows", "database_rows", "split_hash", "split_seed")},
    }


def save(folder, arrays):
    np.savez(folder / "codes.npz", **arrays)
    return folder / "codes.npz"


def test_given_codes_score_what_a_run_scores(data_folder, given, tmp_path):
    order = np.random.default_rng(0).permutation(len(given["database"]))
    shuffled = {key: given[key][order] for key in ("database", "database_rows")}
    file = save(tmp_path, given | shuffled)
    theirs = evaluate_codes(S1, data_folder, [file], metrics=["P@10"], out=tmp_path / "out")
    ours = run(S1, data_folder, "itq", 10, seeds=3, metrics=["P@10"], out=tmp_path / "out")["runs"][
        2
    ]
    result = theirs["runs"][0]
    assert result["metrics"] == ours["metrics"]
    assert result["code_use"] == ours["code_use"]
    assert result["split"] == ours["split"]
    assert (result["settings"]["method"], result["settings"]["bits"]) == ("their-itq", 10)
    labels = {cell.label for cell in load_results(tmp_path / "out").cells}
    assert labels == {"itq", "their-itq (given codes)"}


def test_a_file_that_was_evaluated_is_not_evaluated_again(data_folder, given, tmp_path):
    seen = []
    for _ in range(2):
        file = save(tmp_path, given)
        evaluate_codes(
            S1, data_folder, [file], out=tmp_path / "o", report=lambda _, old: seen.append(old)
        )
    changed = given["queries"].copy()
    changed[0, 0] ^= 128
    file = save(tmp_path, given | {"queries": changed})
    evaluate_codes(
        S1, data_folder, [file], out=tmp_path / "o", report=lambda _, old: seen.append(old)
    )
    assert seen == [False, True, False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: {"split_hash": "0" * 64}, "is of another split: its split_hash begins 0000000"),
        (lambda a: {"split_seed": 1}, "cifar10-s1 with split seed 1 has"),
        (
            lambda a: {"query_rows": np.roll(a["query_rows"], 1) + (np.arange(40) == 3)},
            "must have one code for each row of the split in query_rows: 1 rows are missing",
        ),
        (
            lambda a: {"queries": a["queries"][:-1], "query_rows": a["query_rows"][:-1]},
            "1 rows are missing, 0 are not in the split, and 0 stand twice",
        ),
        (lambda a: {"query_rows": a["query_rows"][:-1]}, "one row number for each of its 40 codes"),
        (lambda a: {"n_bits": 1.5}, "must have n_bits as one whole number"),
        (
            lambda a: {"queries": a["queries"] | 1},
            r"codes.npz, queries: codes of 10 bits must end in 6 zero bits",
        ),
    ],
)
def test_codes_that_do_not_fit_the_split_are_refused(data_folder, given, tmp_path, change, words):
    with pytest.raises((InputError, FileFormatError), match=words):
        evaluate_codes(S1, data_folder, [save(tmp_path, given | change(given))])


def test_a_file_without_an_array_or_cut_off_is_named(data_folder, given, tmp_path):
    for key in ("queries", "split_hash", "database_rows"):
        arrays = {name: value for name, value in given.items() if name != key}
        with pytest.raises(FileFormatError, match=f"codes.npz must hold .* it has no {key}"):
            evaluate_codes(S1, data_folder, [save(tmp_path, arrays)])
    file = save(tmp_path, given)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(FileFormatError, match=r"codes.npz is not a readable .npz"):
        evaluate_codes(S1, data_folder, [file])
    with pytest.raises(InputError, match="there is no"):
        evaluate_codes(S1, data_folder, [tmp_path / "none.npz"])
    with pytest.raises(InputError, match="at least one file"):
        evaluate_codes(S1, data_folder, [])


def test_files_with_one_name_and_seed_are_refused_before_any_work(data_folder, given, tmp_path):
    files = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files.append(save(tmp_path / name, given))
    with pytest.raises(
        InputError, match=r"one/codes.npz and .*two/codes.npz are both of their-itq"
    ):
        evaluate_codes(S1, data_folder, files, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    files[1] = save(tmp_path / "two", given | {"seed": 3})
    assert len(evaluate_codes(S1, data_folder, files)["runs"]) == 2


def test_a_name_and_seeds_are_optional(data_folder, given, tmp_path):
    arrays = {name: value for name, value in given.items() if name not in ("method", "seed")}
    result = evaluate_codes(S1, data_folder, [save(tmp_path, arrays)])["runs"][0]
    assert (result["settings"]["method"], result["settings"]["seed"]) == ("codes", 0)
    json.dumps(result, allow_nan=False)
