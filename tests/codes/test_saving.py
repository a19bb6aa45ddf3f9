"""Codes on disk: mapped when read, refused when damaged."""

import pickle
import random
import warnings

import numpy as np
import pytest

from oracles.counting import BIT_LENGTHS, random_codes
from rankbits import BinaryCodes
from rankbits._mapped import MappedFile
from rankbits.errors import FileFormatError, InputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "codes.npy"


@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
def test_saved_codes_come_back_with_their_number_of_bits(rng, path, n_bits):
    codes = random_codes(rng, 7, n_bits)
    codes.save(path)
    assert BinaryCodes.load(path) == codes
    assert BinaryCodes.load(str(path), n_bits=n_bits) == codes


def test_loaded_codes_are_mapped_not_read(rng, path):
    random_codes(rng, 50, 64).save(path)
    packed = BinaryCodes.load(path).packed
    assert MappedFile.behind(packed).name == str(path)
    assert not packed.flags.writeable


def test_numpy_reads_a_saved_file_as_the_packed_bytes(rng, path):
    codes = random_codes(rng, 9, 20)
    codes.save(path)
    assert np.array_equal(np.load(path), codes.packed)


def test_a_plain_npy_has_8_bits_a_byte_unless_told(rng, path):
    codes = random_codes(rng, 9, 20)
    np.save(path, codes.packed)
    assert BinaryCodes.load(path) == BinaryCodes(codes.packed, 24)
    assert BinaryCodes.load(path, n_bits=20) == codes


@pytest.mark.parametrize("n_bits", [0, 16, 25, 19])
def test_a_plain_npy_is_refused_with_bits_that_do_not_fit_it(path, n_bits):
    np.save(path, np.full((2, 3), 0xF0, np.uint8))
    with pytest.raises(InputError):
        BinaryCodes.load(path, n_bits=n_bits)


def test_saved_codes_are_refused_under_another_number_of_bits(rng, path):
    random_codes(rng, 9, 20).save(path)
    with pytest.raises(InputError, match=r"n_bits is 24, but .* holds codes of 20 bits"):
        BinaryCodes.load(path, n_bits=24)


def test_a_file_cut_at_any_byte_is_refused(rng, path):
    random_codes(rng, 5, 12).save(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            BinaryCodes.load(path)


@pytest.mark.parametrize("tail", [b"x", b"\n", b"rankbits:n_bits=12", b"rankbits:n_bits=-12\n"])
def test_a_file_with_something_else_behind_its_array_is_refused(path, tail):
    np.save(path, np.zeros((3, 2), np.uint8))
    with open(path, "ab") as file:
        file.write(tail)
    with pytest.raises(FileFormatError, match="damaged"):
        BinaryCodes.load(path)


@pytest.mark.parametrize("stored", [0, 8, 17, 4100, 10**30])
def test_a_trailer_that_contradicts_the_array_is_refused(path, stored):
    np.save(path, np.zeros((3, 2), np.uint8))
    with open(path, "ab") as file:
        file.write(b"rankbits:n_bits=%d\n" % stored)
    with pytest.raises(FileFormatError, match="damaged"):
        BinaryCodes.load(path)


def foreign_files(path):
    """Files of other kinds, one after the other, under the same name."""
    for content in (b"", b"\x00", b"some text\n", b"PK\x03\x04 cut off", b"\x93NUMPY"):
        path.write_bytes(content)
        yield content
    path.write_bytes(pickle.dumps([1, 2]))
    yield "pickle"
    np.savez(open_handle := path.open("wb"), codes=np.zeros((2, 2), np.uint8))
    open_handle.close()
    yield "npz"


def test_a_foreign_file_is_refused(path):
    for kind in foreign_files(path):
        with pytest.raises(FileFormatError, match=r"not a readable .npy file"):
            BinaryCodes.load(path)
        assert kind is not None


@pytest.mark.parametrize(
    "array", [np.zeros((2, 2)), np.zeros(4, np.uint8), np.zeros((2, 2), np.int8)]
)
def test_an_array_that_is_no_packed_codes_is_refused(path, array):
    np.save(path, array)
    with pytest.raises(FileFormatError, match="must hold packed codes, uint8"):
        BinaryCodes.load(path)


def test_objects_are_never_unpickled(path):
    np.save(path, np.array([[{}]], object), allow_pickle=True)
    with pytest.raises(FileFormatError):
        BinaryCodes.load(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    for path, reason in (("absent.npy", "there is no .*absent.npy"), ("", "is a folder")):
        with pytest.raises(InputError, match=f"path must name a file of codes, .*{reason}"):
            BinaryCodes.load(tmp_path / path)


def test_random_damage_is_refused_or_leaves_codes_that_hold_together(rng, path):
    random_codes(rng, 5, 12).save(path)
    whole, dice = path.read_bytes(), random.Random(3)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 2, 3])):
            damaged[dice.randrange(len(whole))] = dice.choice(
                [dice.randrange(256), *b"019-,()[{'#\n"]
            )
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings(action="ignore"):
                codes = BinaryCodes.load(path)
        except InputError:
            continue
        assert codes.bits().shape == (len(codes), codes.n_bits)


def test_saving_keeps_the_old_file_when_it_fails(rng, path, monkeypatch):
    codes = random_codes(rng, 5, 12)
    codes.save(path)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array_header_2_0", fail)
    with pytest.raises(OSError, match="disk full"):
        codes[:2].save(path)
    assert BinaryCodes.load(path) == codes
    assert [file.name for file in path.parent.iterdir()] == ["codes.npy"]
