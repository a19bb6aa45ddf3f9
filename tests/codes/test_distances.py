"""Hamming distances of two sets of codes."""

import os

import numpy as np
import pytest

from oracles.counting import BIT_LENGTHS, distances_by_pairs, random_codes
from rankbits import BinaryCodes, _native
from rankbits.codes import hamming_distances
from rankbits.errors import FileFormatError, InputError


@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
def test_distances_are_those_of_the_pairs(dispatch, rng, n_bits):
    queries, database = random_codes(rng, 3, n_bits), random_codes(rng, 33, n_bits)
    found = hamming_distances(queries, database)
    assert found.dtype == np.uint16
    assert np.array_equal(found, distances_by_pairs(queries, database))


@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
def test_a_code_lies_0_from_itself_and_all_its_bits_from_its_complement(n_bits):
    codes = BinaryCodes.from_bits(np.array([[0] * n_bits, [1] * n_bits]))
    assert hamming_distances(codes, codes).tolist() == [[0, n_bits], [n_bits, 0]]


def test_codes_that_cannot_be_compared_are_refused(rng):
    codes = random_codes(rng, 3, 8)
    with pytest.raises(InputError, match="queries have 8 bits and database has 9"):
        hamming_distances(codes, random_codes(rng, 3, 9))
    with pytest.raises(InputError, match="queries must be BinaryCodes"):
        hamming_distances(codes.packed, codes)
    with pytest.raises(InputError, match="database must not be empty"):
        hamming_distances(codes, codes[:0])


def test_codes_whose_file_is_cut_while_they_are_compared_give_no_distances(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (4000, 8), dtype=np.uint8)
    np.save(tmp_path / "x.npy", packed)
    codes = BinaryCodes(np.load(tmp_path / "x.npy", mmap_mode="r"), 64)
    compute = _native.distances

    def cut_and_compute(*arguments, **options):
        os.truncate(tmp_path / "x.npy", 4096)
        compute(*arguments, **options)

    monkeypatch.setattr(_native, "distances", cut_and_compute)
    with pytest.raises(FileFormatError, match="truncated while it was in use"):
        hamming_distances(BinaryCodes(packed[:2], 64), codes)
