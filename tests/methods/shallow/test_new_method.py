"""A method is one file and one line in the table: everything else follows."""

import sys

import numpy as np
import pytest

import rankbits
from oracles import median_sign
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods import registry


@pytest.fixture(autouse=True)
def added(monkeypatch):
    """`MedianSign`, as if its file lay in `shallow` and the table had its line."""
    entry = registry.Method("shallow.median_sign", "MedianSign")
    monkeypatch.setitem(sys.modules, entry.path, median_sign)
    monkeypatch.setattr(median_sign.MedianSign, "__module__", entry.path)
    monkeypatch.setitem(registry.METHODS, "median-sign", entry)


def test_it_is_listed_created_by_name_and_imported():
    assert "median-sign" in methods.names()
    assert type(methods.get("median-sign", n_bits=3)) is methods.MedianSign
    assert "MedianSign" in dir(methods)


def test_it_encodes_saves_and_loads(rng, tmp_path):
    rows = rng.standard_normal((41, 7))
    hasher = methods.get("median-sign", n_bits=7).fit(rows)
    assert np.array_equal(hasher.encode(rows).bits(), rows > np.median(rows, axis=0))
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").encode(rows) == hasher.encode(rows)


def test_it_refuses_what_every_method_refuses(rng):
    with pytest.raises(InputError, match="y must have one label for each row of X"):
        methods.get("median-sign", n_bits=2).fit(rng.standard_normal((9, 3)), np.zeros(8))
    with pytest.raises(InputError, match="median-sign has no parameter 'bits'"):
        methods.get("median-sign", bits=2)


def test_it_is_exported(rng, tmp_path):
    for package in ("torch", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    hasher = methods.get("median-sign", n_bits=3).fit(rng.standard_normal((41, 3)))
    assert methods.export_onnx(hasher, tmp_path / "model.onnx") == 64
