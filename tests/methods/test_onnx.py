"""Exported models: onnxruntime's codes are ours, bit for bit."""

import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from rankbits import methods
from rankbits.errors import MissingExtraError, RankbitsError

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
from rankbits.methods import graphs, onnx, onnx_modules  # noqa: E402 - it needs torch

DIGITS = load_digits()
X = DIGITS.data.astype(np.float32)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def exported(hasher, tmp_path):
    n_compared = methods.export_onnx(hasher, tmp_path / "model.onnx")
    assert n_compared > 0
    return session(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("name", "n_bits"), [("lsh", 21), ("pcah", 13), ("itq", 32), ("sign", 21), ("sign", 1)]
)
def test_codes_of_the_runtime_are_those_of_transform(name, n_bits, tmp_path):
    hasher = methods.get(name, n_bits=n_bits).fit(X)
    runtime = exported(hasher, tmp_path)
    for rows in (X[:1], X[:1000], X):
        logits, codes = runtime.run(["logits", "codes"], {"x": rows})
        assert (logits.dtype, codes.dtype) == (np.float32, np.uint8)
        assert np.array_equal(codes, hasher.transform(rows))
        ours = hasher.project(rows)
        np.testing.assert_allclose(logits, ours, rtol=1e-5, atol=1e-5 * np.abs(ours).max())


def test_long_codes_and_the_names_and_shapes_of_the_graph(tmp_path):
    hasher = methods.get("lsh", n_bits=1001, random_state=0).fit(X)
    runtime = exported(hasher, tmp_path)
    codes = runtime.run(["codes"], {"x": X[:50]})[0]
    assert np.array_equal(codes, hasher.transform(X[:50]))
    (given,) = runtime.get_inputs()
    assert (given.name, given.type, given.shape[1]) == ("x", "tensor(float)", 64)
    assert isinstance(given.shape[0], str)
    assert [(out.name, out.shape[1]) for out in runtime.get_outputs()] == [
        ("logits", 1001),
        ("codes", 126),
        ("query_logits", 1001),
        ("query_codes", 126),
    ]


@pytest.mark.parametrize("n_bits", [1, 7, 8, 9, 21, 64])
def test_packing_is_that_of_numpy(n_bits):
    logits = np.random.default_rng(0).standard_normal((30, n_bits)).astype(np.float32)
    logits[0] = 0
    module = onnx.PackedCodes(torch.nn.Identity(), n_bits)
    packed = module(torch.from_numpy(logits))[1].numpy()
    assert np.array_equal(packed, np.packbits(logits > 0, axis=1))


def test_rows_on_a_hyperplane_get_the_same_bit(tmp_path):
    grid = np.round(X[:300] / 4)
    hasher = methods.get("sign", center=False).fit(grid)
    codes = exported(hasher, tmp_path).run(["codes"], {"x": grid})[0]
    assert np.array_equal(codes, hasher.transform(grid))


@pytest.mark.parametrize("name", ["talr-ap", "talr-ndcg"])
def test_a_trained_network_is_exported_too(name, tmp_path):
    hasher = methods.get(name, n_bits=12, random_state=0).fit(X[:300], DIGITS.target[:300])
    runtime = exported(hasher, tmp_path)
    for rows in (X[:1], X[:1000]):
        codes = runtime.run(["codes"], {"x": rows})[0]
        logits = hasher.project(rows)
        is_clear = np.abs(logits) > 1e-5 * np.abs(logits).max()
        bits = np.unpackbits(codes, axis=1, count=12)
        assert np.array_equal(bits[is_clear], (logits > 0)[is_clear])


def test_a_graph_with_other_bits_is_not_written(tmp_path, monkeypatch):
    hasher = methods.get("lsh", n_bits=9, random_state=0).fit(X)
    monkeypatch.setattr(
        onnx_modules.Hyperplanes, "forward", lambda self, x: -(x.double() @ self.planes)
    )
    with pytest.raises(RankbitsError, match=r"must give the method's bits, but .* differ"):
        methods.export_onnx(hasher, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_runtime_the_file_is_written_uncompared(tmp_path, monkeypatch):
    hasher = methods.get("sign").fit(X)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert methods.export_onnx(hasher, tmp_path / "model.onnx") == 0
    monkeypatch.undo()
    codes = session(tmp_path / "model.onnx").run(["codes"], {"x": X[:3]})[0]
    assert np.array_equal(codes, hasher.transform(X[:3]))


def test_without_the_exporter_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"needs onnxscript; .*rankbits\[onnx\]"):
        methods.export_onnx(methods.get("sign").fit(X), tmp_path / "model.onnx")


def test_a_method_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        methods.export_onnx(methods.get("sign"), tmp_path / "model.onnx")


@pytest.mark.slow
def test_export_is_silent_and_leaves_warnings_and_logging_as_they_were(tmp_path, monkeypatch):
    script = f"""
import numpy as np
from rankbits import methods
hasher = methods.get("itq", n_bits=3).fit(np.random.default_rng(0).standard_normal((50, 5)))
methods.export_onnx(hasher, {str(tmp_path / "model.onnx")!r})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    monkeypatch.setattr(logging.root.manager, "disable", logging.DEBUG)
    filters = list(warnings.filters)
    with graphs._quiet():
        warnings.warn("unheard", stacklevel=1)
        logging.getLogger("torch.onnx").warning("unheard")
    assert logging.root.manager.disable == logging.DEBUG
    assert warnings.filters == filters
