"""Codes cannot be changed once they are made, and a mapped file that shrinks is an error."""

import copy
import mmap
import os
import pickle
import subprocess
import sys
import timeit
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from oracles.counting import random_codes
from rankbits import BinaryCodes
from rankbits.codes import hamming_distances
from rankbits.errors import FileFormatError, InputError


@pytest.mark.parametrize(("name", "value"), [("n_bits", 8), ("packed", np.zeros((3, 1), np.uint8))])
def test_an_attribute_cannot_be_set_or_deleted(rng, name, value):
    codes = random_codes(rng, 3, 20)
    before = codes.bits()
    with pytest.raises(AttributeError, match=f"cannot set {name}: BinaryCodes never change"):
        setattr(codes, name, value)
    with pytest.raises(AttributeError, match=f"cannot delete {name}: BinaryCodes never change"):
        delattr(codes, name)
    assert np.array_equal(codes.bits(), before)


def test_an_unknown_attribute_cannot_be_set(rng):
    with pytest.raises(AttributeError, match="cannot set label"):
        random_codes(rng, 3, 20).label = "cat"


def test_the_bytes_are_a_read_only_view_of_an_array_that_stays_writable():
    array = np.zeros((3, 2), np.uint8)
    codes = BinaryCodes(array, 16)
    assert np.shares_memory(codes.packed, array)
    with pytest.raises(ValueError, match="read-only"):
        codes.packed[0, 0] = 1
    array[0, 0] = 1
    assert array.flags.writeable


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_codes_can_be_pickled(rng, protocol):
    codes = random_codes(rng, 5, 13)
    restored = pickle.loads(pickle.dumps(codes, protocol))
    assert restored == codes
    assert not restored.packed.flags.writeable


def test_a_pickle_with_set_trailing_bits_is_refused():
    pickled = pickle.dumps(BinaryCodes(np.array([[0xAB, 0xC0]], np.uint8), 12))
    assert pickled.count(b"\xab\xc0") == 1
    with pytest.raises(InputError, match="must end in 4 zero bits"):
        pickle.loads(pickled.replace(b"\xab\xc0", b"\xab\xcf"))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_codes_can_be_copied(rng, duplicate):
    codes = random_codes(rng, 5, 13)
    assert duplicate(codes) == codes


def test_a_deep_copy_has_bytes_of_its_own(rng):
    array = np.zeros((3, 2), np.uint8)
    codes = copy.deepcopy(BinaryCodes(array, 16))
    array[:] = 255
    assert not codes.packed.any()


def test_codes_travel_to_another_process_and_back(rng, tmp_path):
    codes = random_codes(rng, 5, 13)
    codes.save(tmp_path / "codes.npy")
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(copy.copy, codes).result() == codes
        assert pool.submit(copy.copy, BinaryCodes.load(tmp_path / "codes.npy")).result() == codes


def mapped(rng, path, n=4096):
    """Codes mapped from a file of many pages."""
    random_codes(rng, n, 64).save(path)
    return BinaryCodes.load(path)


TRUNCATED = r"codes\.npy was truncated while it was in use"


def test_a_mapped_file_that_was_truncated_is_an_error_and_no_crash(tmp_path):
    script = """
import os, sys
import numpy as np
from rankbits import BinaryCodes, affinity, count_ties
from rankbits.codes import hamming_distances
from rankbits.errors import FileFormatError, InputError
path = sys.argv[1]
BinaryCodes(np.ones((100_000, 8), np.uint8), 64).save(path)
codes = BinaryCodes.load(path)
array = np.load(path, mmap_mode="r")
part, two = codes[50_000:], codes[:2]
same = affinity.classes([1, 1], np.ones(len(codes), int))
os.truncate(path, 4096)
uses = [
    lambda: codes.packed,
    lambda: codes.bits(),
    lambda: part.packed,
    lambda: codes[5],
    lambda: codes[[1, 99_000]],
    lambda: codes == codes[:],
    lambda: codes.save(path + ".copy"),
    lambda: count_ties(two, codes, same),
    lambda: hamming_distances(two, codes),
    lambda: BinaryCodes(array, 64),
    lambda: BinaryCodes(array[:, ::2], 32),
    lambda: __import__("pickle").dumps(codes),
]
for use in uses:
    try:
        use()
    except FileFormatError as error:
        assert "was truncated while it was in use" in str(error), error
    else:
        raise SystemExit("no error")
assert len(codes) == 100_000 and "n=100000" in repr(codes)
"""
    path = tmp_path / "codes.npy"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_error_names_the_file_and_the_sizes(rng, tmp_path):
    codes = mapped(rng, tmp_path / "codes.npy")
    os.truncate(tmp_path / "codes.npy", 5000)
    with pytest.raises(FileFormatError, match=TRUNCATED + ": it had 32896 bytes, it has 5000;"):
        _ = codes.packed


def test_a_mapping_that_numpy_did_not_make_is_watched_too(rng, tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(bytes(range(256)) * 64)
    with open(path, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    codes = BinaryCodes(np.frombuffer(mapping, np.uint8).reshape(-1, 8), 64)
    assert codes.packed[1, 0] == 8
    os.truncate(path, 4096)
    with pytest.raises(FileFormatError, match="the file behind the array was truncated while"):
        hamming_distances(codes[:1], codes)


def test_memory_without_a_file_is_taken_as_it_is():
    mapping = mmap.mmap(-1, 4096)
    codes = BinaryCodes(np.frombuffer(mapping, np.uint8).reshape(-1, 8), 64)
    assert not codes.packed.any()


def test_a_file_that_loses_its_name_is_no_error(rng, tmp_path):
    path = tmp_path / "codes.npy"
    codes = mapped(rng, path)
    path.unlink()
    assert codes.packed.shape == (4096, 8)


def test_a_file_that_is_written_to_is_an_error(rng, tmp_path):
    path = tmp_path / "codes.npy"
    codes = mapped(rng, path)
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"!")
    os.utime(path, ns=(0, 0))  # whatever time it bears now, it is another one
    with pytest.raises(FileFormatError, match=r"codes\.npy was written to while it was in use"):
        _ = codes.packed


def test_taking_the_bytes_of_mapped_codes_costs_microseconds(rng, tmp_path):
    codes = mapped(rng, tmp_path / "codes.npy")
    seconds = min(timeit.repeat(lambda: codes.packed, number=1000, repeat=5)) / 1000
    assert seconds < 50e-6
