"""A segment file gives back what was written, or says what is wrong with it."""

import struct
import zlib

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import FileFormatError
from rankbits.index.disk.segment_file import Header, read_segment, write_segment
from rankbits.index.store.segment import Segment

PAGE = 4096


def random_codes(rng, n, n_bits):
    return BinaryCodes(np.packbits(rng.integers(0, 2, (n, n_bits)), axis=1), n_bits)


def write(path, codes, ids, block=PAGE):
    """One segment in one chunk."""
    ids = np.asarray(ids, np.int64)
    is_range = bool(ids[-1] - ids[0] == len(ids) - 1)
    header = Header(codes.n_bits, len(ids), int(ids[0]), int(ids[-1]), is_range, block)
    return write_segment(path, header, [Segment.of(codes, ids)])


def read(path):
    return read_segment(path, verify=True)


@pytest.fixture
def path(tmp_path, rng):
    """A file of 300 codes of 100 bits: two blocks of codes, one of ids."""
    path = tmp_path / "1.seg"
    write(path, random_codes(rng, 300, 100), np.arange(300) * 7)
    return path


def refused(path):
    with pytest.raises(FileFormatError, match=path.name) as error:
        read(path)
    return str(error.value)


@pytest.mark.parametrize("n_bits", [1, 12, 64, 100, 300, 4096])
@pytest.mark.parametrize("n", [1, 64, 65, 1000])
@pytest.mark.parametrize("step", [1, 3])
def test_codes_and_ids_come_back(tmp_path, rng, n_bits, n, step):
    codes, ids = random_codes(rng, n, n_bits), 5 + step * np.arange(n)
    write(tmp_path / "1.seg", codes, ids)
    found = read(tmp_path / "1.seg")
    assert found.codes() == codes
    assert found.id_array().tolist() == ids.tolist()
    assert isinstance(found.ids, range) == (step == 1 or n == 1)
    assert not found.planes.flags.writeable


def test_the_file_is_laid_out_as_documented(path):
    """Read with nothing but the table of docs/formats.md."""
    raw = path.read_bytes()
    magic, version, n_bits, n, is_range, first, last, block = struct.unpack_from("<8sIIQQqqQ", raw)
    assert (magic, version, n_bits, n) == (b"\x93RBSEG\r\n", 1, 100, 300)
    assert (is_range, first, last, block) == (0, 0, 299 * 7, PAGE)
    planes_at, planes_size, ids_at, table_at, n_blocks, table_crc = struct.unpack_from(
        "<QQQQQI", raw, 56
    )
    assert (planes_at, planes_size, ids_at) == (4096, 5 * 13 * 64, 4096 + 8192)
    assert np.frombuffer(raw, "<i8", 300, ids_at).tolist() == list(range(0, 2100, 7))
    assert zlib.crc32(raw[:4092]) == int.from_bytes(raw[4092:4096], "little")
    assert zlib.crc32(raw[table_at:]) == table_crc
    crcs = np.frombuffer(raw, "<u4", n_blocks, table_at)
    blocks = [(4096, 8192), (8192, 12288), (12288, 16384)]
    assert crcs.tolist() == [zlib.crc32(raw[start:stop]) for start, stop in blocks]
    assert len(raw) == table_at + 4 * n_blocks


def test_a_changed_byte_anywhere_is_noticed(path, rng):
    raw = path.read_bytes()
    for place in {*range(128), *range(128, len(raw), 23), *range(len(raw) - 16, len(raw))}:
        flipped = raw[place] ^ 1 << int(rng.integers(8))
        path.write_bytes(raw[:place] + bytes([flipped]) + raw[place + 1 :])
        refused(path)


def test_a_file_cut_anywhere_is_refused(path):
    raw = path.read_bytes()
    for size in [0, 1, 7, 8, 100, 4095, 4096, *range(5000, len(raw), 999), len(raw) - 1]:
        path.write_bytes(raw[:size])
        refused(path)
    path.write_bytes(raw + b"\0")
    assert "must have" in refused(path)


def test_damage_is_named_by_block_and_rows(path):
    raw = bytearray(path.read_bytes())
    raw[8192 + 5] ^= 4
    path.write_bytes(raw)
    assert "block 1, codes of rows 256 to 299, does not match" in refused(path)
    raw[8192 + 5] ^= 4
    raw[12288] ^= 1
    path.write_bytes(raw)
    assert "block 2, ids of rows 0 to 299, does not match" in refused(path)


def resealed(raw, at, field):
    """A header with one field changed and a checksum that fits."""
    head = bytearray(raw[:4092])
    head[at : at + len(field)] = field
    return bytes(head) + struct.pack("<I", zlib.crc32(head)) + raw[4096:]


@pytest.mark.parametrize(
    ("at", "field", "message"),
    [
        (8, struct.pack("<I", 2), "version 2 of the format, this rankbits reads 1"),
        (12, struct.pack("<I", 0), "tells of 300 codes of 0 bits"),
        (16, struct.pack("<Q", 0), "tells of 0 codes of 100 bits"),
        (16, struct.pack("<Q", 200), "fields of its header contradict each other"),
        (24, struct.pack("<Q", 1), "300 codes with ids from 0 to 2093"),
        (32, struct.pack("<q", -1), "300 codes with ids from -1 to 2093"),
        (40, struct.pack("<q", 298), "300 codes with ids from 0 to 298"),
        (64, struct.pack("<Q", 1), "fields of its header contradict each other"),
        (1000, b"x", "fields of its header contradict each other"),
    ],
)
def test_a_header_that_cannot_be_is_refused_whatever_its_checksum(path, at, field, message):
    path.write_bytes(resealed(path.read_bytes(), at, field))
    assert message in refused(path)


def test_a_foreign_file_and_a_missing_one_are_named(path):
    path.write_bytes(b"\x93NUMPY" * 4000)
    assert "is no segment of rankbits" in refused(path)
    path.unlink()
    assert "is missing" in refused(path)
