"""Files of the layout of safetensors: read as safetensors does; a cut is an error."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from rankbits._tensors import TensorFile
from rankbits.errors import FileFormatError

TYPES = ["|b1", "<f2", "<f4", "<f8", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8"]


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=4).filter(lambda name: name != "__metadata__"),
        arrays_of.arrays(st.sampled_from(TYPES), arrays_of.array_shapes(min_dims=0, max_dims=3)),
        max_size=4,
    )
)
def test_files_that_safetensors_writes_are_read(tmp_path_factory, arrays):
    tensors = pytest.importorskip("safetensors.numpy")
    path = tmp_path_factory.mktemp("tensors") / "x.safetensors"
    tensors.save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path)
    file = TensorFile(path)
    assert set(file.names) == set(arrays)
    for name, array in arrays.items():
        assert file.read(name).dtype == array.dtype
        assert file.read(name).tobytes() == array.tobytes()


@pytest.mark.parametrize("size", [0, 7, 30, 4000, 80_000])
def test_a_file_that_is_cut_while_it_is_open_is_refused(tmp_path, size):
    tensors = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "x.safetensors"
    tensors.save_file({"x": np.ones(10_000)}, path)
    file = TensorFile(path)
    os.truncate(path, size)
    with pytest.raises(FileFormatError, match=r"x\.safetensors became shorter while x was read"):
        file.read("x")
