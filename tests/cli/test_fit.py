"""`rankbits fit`: the model that the function would have learned, in a folder."""

import importlib.util
import os

import numpy as np
import pytest

import rankbits
from commands import Command, assert_one_line, interrupted_after
from rankbits import affinity, methods
from rankbits._json import as_json

RNG = np.random.default_rng(6)
X = RNG.standard_normal((60, 8))
LABELS = RNG.integers(0, 3, 60)
TAGS = RNG.integers(0, 2, (60, 4))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("y.npy", LABELS)
    np.save("t.npy", TAGS)
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """The y that reaches `fit`, of a method that does not care."""
    seen = []
    real = methods.get("lsh").__class__.fit
    monkeypatch.setattr(
        methods.get("lsh").__class__, "fit", lambda self, X, y=None: seen.append(y) or real(self, X)
    )
    return seen


call = Command("fit")
printed = call.printed


def test_the_folder_holds_what_the_function_learns(folder):
    found = printed("x.npy", "--method", "itq", "--bits", 5, "--out", "m", "--seed", 3)
    wanted = methods.get("itq", n_bits=5, random_state=3).fit(X)
    again = rankbits.load("m")
    assert again.get_params() == wanted.get_params()
    assert np.array_equal(again.project(X), wanted.project(X))
    assert found.pop("seconds") >= 0
    assert found == {
        "method": "itq",
        "bits": 5,
        "items": 60,
        "features": 8,
        "seed": 3,
        "best_score": None,
        "fingerprint": wanted.encode(X).model,
        "out": "m",
    }


def test_without_bits_the_method_decides(folder):
    assert printed("x.npy", "--method", "sign", "--out", "m")["bits"] == 8


def test_parameters_are_json_or_else_words(folder):
    arguments = ["--param", "choose=first", "--param", "center=false", "--param", "n_bits=3"]
    printed("x.npy", "--method", "sign", "--out", "m", *arguments)
    assert rankbits.load("m").get_params() == {"choose": "first", "center": False, "n_bits": 3}


def test_a_seed_among_the_parameters_comes_first(folder):
    printed("x.npy", "--method", "lsh", "--out", "m", "--param", "random_state=5")
    assert rankbits.load("m").random_state == 5


LSH = ["x.npy", "--method", "lsh", "--out", "m"]


def test_classes_and_tags_reach_the_method_as_they_are(folder, asked):
    for arguments in (["--labels", "y.npy"], ["--labels", "t.npy"], []):
        printed(*LSH, *arguments, "--overwrite")
    assert np.array_equal(asked[0], LABELS)
    assert np.array_equal(asked[1], TAGS)
    assert asked[2] is None


def levels(found):
    return found.levels[found.indices(slice(None), slice(None))]


def test_graded_tags_judgements_and_neighbours_are_levels_between_rows(folder, asked):
    (folder / "j.tsv").write_text("0 3 2\n5 59 1\n")
    near = ["--neighbors", "0.2=1", "--neighbors", "0.05=4"]
    for arguments in (["--labels", "t.npy", "--graded"], ["--judgements", "j.tsv"], near):
        printed(*LSH, *arguments, "--overwrite")
    assert np.array_equal(levels(asked[0]), TAGS @ TAGS.T)
    assert levels(asked[1])[[0, 5], [3, 59]].tolist() == [2, 1]
    assert levels(asked[1]).sum() == 3
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    above = distances[np.triu_indices(60, 1)]
    wide, close = np.quantile(above, [0.2, 0.05])
    expected = np.where(distances <= close, 4, np.where(distances <= wide, 1, 0))
    assert np.array_equal(levels(asked[2]), expected)


def test_a_model_is_replaced_only_on_demand(folder):
    printed(*LSH, "--seed", 1)
    before = (folder / "m" / "model.json").read_bytes()
    assert_one_line(call(*LSH, "--seed", 2), "m holds a model; give --overwrite")
    assert (folder / "m" / "model.json").read_bytes() == before
    printed(*LSH, "--seed", 2, "--overwrite")
    assert rankbits.load("m").random_state == 2


def test_what_is_not_a_model_is_never_replaced_and_refused_before_the_work(folder, asked):
    os.mkdir("m")
    (folder / "m" / "cat.jpg").write_text("meow")
    for arguments in ([], ["--overwrite"]):
        assert_one_line(call(*LSH, *arguments), "holds something else")
    assert_one_line(call("x.npy", "--method", "lsh", "--out", "no/m"), "existing folder")
    assert asked == []
    assert os.listdir("m") == ["cat.jpg"]


BAD_INPUT = {
    "no such file": (["absent.npy", *LSH[1:]], "there is no absent.npy"),
    "unknown method": (["x.npy", "--method", "itg", "--out", "m"], "did you mean 'itq'?"),
    "unknown parameter": ([*LSH, "--param", "centre=1"], "did you mean center?"),
    "too many bits": (["x.npy", "--method", "pcah", "--bits", "9", "--out", "m"], "at most 8"),
    "too many bits for anything": ([*LSH, "--bits", "4097"], "n_bits must be an integer from 1 to"),
    "too few labels": ([*LSH, "--labels", "short.npy"], "short.npy has 59 labels and X has 60"),
    "graded classes": ([*LSH, "--labels", "y.npy", "--graded"], "--graded needs multi-hot"),
    "graded nothing": ([*LSH, "--graded"], "--graded needs multi-hot labels (2-D), got no labels"),
    "judged beyond": ([*LSH, "--judgements", "j.npy"], "an item from 0 to 59"),
    "share beyond": ([*LSH, "--neighbors", "1.5=1"], "shares must lie between 0 and 1"),
    "share of words": ([*LSH, "--neighbors", "near=1"], "--neighbors must be SHARE=LEVEL"),
    "level of words": ([*LSH, "--neighbors", "0.1=near"], "--neighbors must be SHARE=LEVEL"),
    "flat": (["y.npy", *LSH[1:]], "Reshape your data"),
    "words": (["words.npy", *LSH[1:]], "strings"),
    "nan": (["nan.npy", *LSH[1:]], "X must be finite, got NaN in row 2"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_exits_1_with_one_line_and_leaves_nothing(folder, case):
    np.save("short.npy", LABELS[:-1])
    np.save("j.npy", np.array([[0, 60, 1]]))
    np.save("words.npy", np.array([["a", "b"]]))
    np.save("nan.npy", np.where(np.arange(60)[:, None] == 2, np.nan, X))
    arguments, reason = BAD_INPUT[case]
    assert_one_line(call(*arguments), reason)
    assert not os.path.exists("m")


BAD_USAGE = {
    "no method": ["x.npy", "--out", "m"],
    "no folder": ["x.npy", "--method", "lsh"],
    "two kinds of y": [*LSH, "--labels", "y.npy", "--judgements", "j.npy"],
    "labels and neighbors": [*LSH, "--labels", "y.npy", "--neighbors", "0.1=1"],
    "no value": [*LSH, "--param", "center"],
    "a name twice": [*LSH, "--param", "center=1", "--param", "center=0"],
    "no bits": [*LSH, "--bits", "0"],
    "negative seed": [*LSH, "--seed", "-1"],
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_exits_2(folder, case):
    done = call(*BAD_USAGE[case])
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_report_becomes_json_whatever_is_in_it():
    found = as_json({"a": (np.float32(0.5), np.nan), 3: np.arange(2), "b": None, "c": object})
    assert found == {"a": [0.5, None], "3": [0, 1], "b": None, "c": "<class 'object'>"}


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_method_with_a_gradient_fits_and_reports(folder):
    arguments = ["x.npy", "--labels", "y.npy", "--method", "talr-ap", "--bits", 6, "--out", "m"]
    held_out = ["--param", "validation_fraction=0.2"]
    short = printed(*arguments, "--param", "epochs=2", "--encoder", "linear", *held_out)
    hasher = rankbits.load("m")
    assert (short["bits"], hasher.encode(X).n_bits, hasher.encoder) == (6, 6, "linear")
    assert short["best_score"] == hasher.report_["best"]["score"]
    assert 0 < short["best_score"] <= 1
    assert "report" not in short
    whole = printed(*arguments, "--param", "epochs=2", "--report", "--overwrite")
    assert whole["report"]["epochs"] == 2
    assert whole["best_score"] is None
    assert set(whole) == {*short, "report"}


def test_neighbours_of_the_function_and_the_command_are_the_same_kind(folder, asked):
    printed(*LSH, "--neighbors", "0.1=1")
    assert type(asked[0]) is type(affinity.neighbours(X, X, [1.0], [1]))


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5, 3.0])
def test_an_interrupt_exits_130_with_one_line_and_leaves_no_model(folder, seconds):
    arguments = ["x.npy", "--labels", "y.npy", "--method", "talr-ap", "--out", "model"]
    done = interrupted_after(seconds, "fit", *arguments, "--param", "epochs=1000000")
    assert done == (130, "", "interrupted\n")
    assert sorted(os.listdir()) == ["t.npy", "x.npy", "y.npy"]
