"""`rankbits export`: one file that any ONNX runtime turns into our codes."""

import json
import os
import sys

import numpy as np
import pytest

from commands import Command
from rankbits import methods

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("torch")
pytest.importorskip("onnxscript")
X = np.random.default_rng(2).standard_normal((40, 6)).astype(np.float32)


@pytest.fixture
def hasher(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hasher = methods.get("pcah", n_bits=5).fit(X)
    hasher.save("model")
    return hasher


call = Command("export")


def test_the_file_gives_the_codes_of_the_model(hasher):
    done = call("model", "--out", "model.onnx")
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found.pop("seconds") > 0
    assert found == {"model": "model", "out": "model.onnx", "bits": 5, "rows_compared": 64}
    codes = onnxruntime.InferenceSession("model.onnx").run(["codes"], {"x": X})[0]
    assert np.array_equal(codes, hasher.transform(X))
    assert sorted(os.listdir()) == ["model", "model.onnx"]


def test_a_file_that_could_not_be_compared_is_warned_of(hasher, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = call("model", "--out", "model.onnx")
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: onnxruntime is not installed")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["absent", "--out", "m.onnx"], "there is no absent"),
        (["model", "--out", "m.bin"], "--out must end in .onnx"),
        (["model", "--out", "no/m.onnx"], "must name a file in an existing folder"),
    ],
)
def test_bad_input_exits_1_with_one_line(hasher, arguments, reason):
    done = call(*arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert reason in done.stderr


def test_a_missing_extra_exits_1_with_one_line(hasher, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = call("model", "--out", "m.onnx")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "rankbits[onnx]" in done.stderr


def test_bad_usage_exits_2(hasher):
    assert call("model").exit_code == 2
