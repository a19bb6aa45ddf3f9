"""The arrays of a model: what a header says is checked before any of it is taken."""

import json
import os
import struct

import numpy as np
import pytest

from rankbits.errors import FileFormatError
from rankbits.methods.stored_arrays import as_stored, require_described, write_arrays

ARRAYS = {"mean": np.arange(3.0), "planes": np.arange(6.0).reshape(3, 2), "none": np.zeros((0, 4))}


def check(path):
    with open(path, "rb") as file:
        require_described(file, os.fstat(file.fileno()))
        assert file.tell() == 0


def write(path, header, data=bytes(72)):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(shape=(3, 3), place=(0, 72), dtype="F64"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(place)}


def test_what_is_written_is_accepted(tmp_path):
    path = tmp_path / "arrays"
    path.write_bytes(write_arrays(ARRAYS))
    check(path)
    check(write(path, {"a": entry(), "__metadata__": {"by": "somebody"}}))
    check(write(path, {"b": entry((4,), (40, 72)), "a": entry((5,), (0, 40))}))


BAD = {
    "no header": b"",
    "not JSON": b"[1",
    "a list": [1],
    "nested too far": b'{"a":' * 200 + b"1" + b"}" * 200,
    "not an entry": {"a": 3},
    "no shape": {"a": {"dtype": "F64", "data_offsets": [0, 72]}},
    "unknown type": {"a": entry(dtype="BF16")},
    "type of no kind": {"a": entry(dtype=[])},
    "another type": {"a": entry(dtype="F32")},
    "negative size": {"a": entry((-3, -3))},
    "size of no kind": {"a": entry((True, 9))},
    "product beyond all numbers": {"a": entry((2**62, 2**62, 0), (0, 0)), "b": entry((2**62, 4))},
    "size beyond 64 bits": {"a": entry((10**400,))},
    "many axes": {"a": entry((9, *[1] * 40))},
    "begins late": {"a": entry((8,), (8, 72))},
    "ends late": {"a": entry((10,), (0, 80))},
    "ends early": {"a": entry((8,), (0, 64))},
    "overlap": {"a": entry((5,), (0, 40)), "b": entry((5,), (32, 72))},
    "backwards": {"a": entry((9,), (72, 0))},
    "three ends": {"a": entry((9,), (0, 72, 72))},
}


@pytest.mark.parametrize("case", BAD)
def test_a_header_that_does_not_describe_the_bytes_is_refused(tmp_path, case):
    path = write(tmp_path / "arrays", BAD[case])
    with pytest.raises(FileFormatError, match=r"model\.safetensors") as caught:
        check(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("length", [0, 1, 65, 2**31, 2**63, 2**64 - 1])
def test_a_header_longer_than_the_file_is_refused(tmp_path, length):
    path = tmp_path / "arrays"
    path.write_bytes(struct.pack("<Q", length) + b"{}" + bytes(62))
    with pytest.raises(FileFormatError, match=r"length of the header|header of .* is not JSON"):
        check(path)


def test_a_long_file_that_takes_nothing_of_the_disk_is_refused(tmp_path):
    n = 1 << 33
    path = write(tmp_path / "arrays", {"a": entry((n // 8,), (0, n))}, b"")
    size = path.stat().st_size + n
    os.truncate(path, size)
    with pytest.raises(FileFormatError, match=f"is {size} bytes long but takes .* of the disk"):
        check(path)


def test_arrays_are_stored_by_value():
    swapped = np.arange(6, dtype=">f8").reshape(2, 3).T
    stored = as_stored(swapped)
    assert np.array_equal(stored, swapped)
    assert stored.flags.c_contiguous
    assert stored.dtype == np.dtype("<f8")
