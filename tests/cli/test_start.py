"""What a command does not need it does not import: encoding starts with torch and little else."""

import json
import subprocess
import sys

import numpy as np
import pytest

from rankbits import methods

SCRIPT = """
import json, sys
from rankbits.cli import app
try:
    app()
except SystemExit as end:
    assert end.code == 0, end.code
print("\\n" + json.dumps(sorted(sys.modules)))
"""
SLOW = {
    "matplotlib", "onnx", "onnxruntime", "pandas", "pyarrow", "sympy", "sklearn.decomposition",
    "sklearn.linear_model", "sklearn.model_selection", "torch._dynamo", "torch._inductor",
}  # fmt: skip


@pytest.mark.parametrize("name", ["lsh", "talr-ap"])
def test_encoding_imports_nothing_slow_that_it_does_not_use(tmp_path, monkeypatch, name):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).standard_normal((40, 5))
    np.save("x.npy", x)
    few = {"epochs": 1} if name == "talr-ap" else {}
    methods.get(name, n_bits=8, random_state=0, **few).fit(x, np.arange(40) % 2).save("model")
    command = [sys.executable, "-c", SCRIPT, "encode", "model", "x.npy", "--out", "codes.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert ("torch" in imported) == (name == "talr-ap")
    assert not imported & SLOW
