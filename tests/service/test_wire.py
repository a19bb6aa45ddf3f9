"""Arrays in one body: read by safetensors, and damage is an InputError."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from rankbits import _wire
from rankbits.errors import InputError

TYPES = ["<f2", "<f4", "<f8", "|i1", "<i4", "<i8", "|u1"]


@given(
    arrays_of.arrays(st.sampled_from(TYPES), arrays_of.array_shapes(min_dims=1, max_dims=3)),
    st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3),
)
def test_safetensors_reads_the_same(array, texts):
    tensors = pytest.importorskip("safetensors.numpy")
    body = _wire.dump({"a": array, "b": np.arange(3)}, texts)
    mine, my_texts = _wire.load(body)
    theirs = tensors.load(body)
    assert my_texts == texts
    assert list(mine) == ["a", "b"]
    for name in mine:
        assert mine[name].dtype == theirs[name].dtype
        assert mine[name].tobytes() == theirs[name].tobytes()
        assert mine[name].shape == theirs[name].shape


def test_what_safetensors_writes_is_read():
    tensors = pytest.importorskip("safetensors.numpy")
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    mine, texts = _wire.load(tensors.save({"vectors": rows}, {"k": "3"}))
    assert np.array_equal(mine["vectors"], rows)
    assert texts == {"k": "3"}


@given(st.binary(max_size=60), st.integers(0, 100), st.binary(max_size=4))
def test_damage_is_an_input_error_or_another_content(noise, place, patch):
    body = bytearray(_wire.dump({"codes": np.arange(6, dtype=np.uint8).reshape(2, 3)}, {"k": "1"}))
    body[place : place + len(patch)] = patch
    for damaged in (noise, bytes(body), bytes(body[:place])):
        try:
            found, _ = _wire.load(damaged)
        except InputError:
            continue
        assert all(isinstance(array, np.ndarray) for array in found.values())


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 1]},
        {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]},
        {"dtype": "U8", "shape": [1], "data_offsets": [0, 9]},
        {"dtype": "U8", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 1]},
        {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]},
        {"dtype": "U8", "shape": 1, "data_offsets": [0, 1]},
        {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]},
        [],
        None,
    ],
)
def test_an_entry_that_does_not_fit_is_refused(entry):
    header = json.dumps({"a": entry}).encode()
    with pytest.raises(InputError, match=r"^a must have"):
        _wire.load(len(header).to_bytes(8, "little") + header + b"\0")
