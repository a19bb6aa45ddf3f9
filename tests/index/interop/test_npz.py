"""A .npz file is what NumPy would write, comes back whole, and is refused if it is not."""

import io
import os
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from rankbits.errors import FileFormatError, InputError
from rankbits.index.interop import from_npz, to_npz


@pytest.mark.parametrize("n_bits", [1, 8, 12, 64, 128])
def test_a_round_trip_keeps_ids_and_codes_and_numpy_reads_the_file(stock, n_bits, tmp_path):
    mine = stock(n_bits, n=300 if n_bits > 1 else 2)
    to_npz(mine.index, tmp_path / "index.npz")
    assert mine.is_in(from_npz(tmp_path / "index.npz"))
    with np.load(tmp_path / "index.npz") as file:
        assert file["ids"].tolist() == sorted(mine.items)
        assert file["n_bits"] == n_bits
        bits = np.unpackbits(file["codes"], axis=1, count=n_bits)
        assert np.array_equal(bits, [mine.items[i] for i in sorted(mine.items)])


@pytest.mark.parametrize("size", [1, 7, 257])  # 257 items: one whole block
def test_more_items_than_a_block_come_back_in_order(monkeypatch, stock, tmp_path, size):
    mine = stock(64)
    assert len(mine.items) == 257
    for module in ("index.interop.blocks", "codes.stored"):
        monkeypatch.setattr(f"rankbits.{module}.BLOCK", size)
    to_npz(mine.index, tmp_path / "index.npz")
    assert mine.is_in(from_npz(tmp_path / "index.npz"))


def test_an_empty_index_stays_empty(empty, tmp_path):
    to_npz(empty, tmp_path / "index.npz")
    back = from_npz(tmp_path / "index.npz", kind="scan")
    assert (len(back), back.n_bits, back.kind) == (0, 16, "scan")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_of_numpy_need_neither_ids_nor_n_bits(tmp_path, save):
    codes = np.array([[1, 32], [2, 16]], np.uint8)
    save(tmp_path / "plain.npz", codes=codes)
    assert from_npz(tmp_path / "plain.npz").n_bits == 16
    back = from_npz(tmp_path / "plain.npz", n_bits=12)
    assert back.ids.tolist() == [0, 1]
    assert np.array_equal(back.codes().packed, codes)
    save(tmp_path / "ids.npz", codes=codes, ids=np.array([9, 4], np.uint16), n_bits=12)
    assert np.array_equal(from_npz(tmp_path / "ids.npz").codes([9, 4]).packed, codes)
    with pytest.raises(InputError, match=r"n_bits is 16, but .*ids.npz holds codes of 12 bits"):
        from_npz(tmp_path / "ids.npz", n_bits=16)


CODES = np.zeros((2, 2), np.uint8)
WRONG = {
    "no codes": ({"code": CODES}, "must hold the array 'codes', it holds"),
    "floats": ({"codes": np.zeros((2, 2))}, "must hold packed codes, uint8 of shape"),
    "one dimension": ({"codes": CODES[0]}, "must hold packed codes, uint8 of shape"),
    "columns first": ({"codes": np.asfortranarray(CODES)}, "must be numbers in C order"),
    "too few ids": ({"codes": CODES, "ids": [1]}, "an integer id for each of 2 codes"),
    "ids of floats": ({"codes": CODES, "ids": [1.0, 2.0]}, "an integer id for each of 2 codes"),
    "equal ids": ({"codes": CODES, "ids": [1, 1]}, "ids must differ, 1 comes more than once"),
    "negative ids": (
        {"codes": CODES, "ids": [1, -1]},
        r"ids must be from 0 to 2\*\*63 - 2, got -1",
    ),
    "bits do not fit": (
        {"codes": CODES, "n_bits": 8},
        "damaged: it says that codes have 8 bits, and they have 2 bytes",
    ),
    "no bits": ({"codes": CODES, "n_bits": -3}, "is damaged: it says that codes have '-3' bits"),
    "many n_bits": ({"codes": CODES, "n_bits": [8, 8]}, "must hold n_bits as one integer"),
    "stray bits": ({"codes": CODES + 1, "n_bits": 12}, "must end in 4 zero bits, row 0 does not"),
}


@pytest.mark.parametrize(("arrays", "message"), WRONG.values(), ids=WRONG)
def test_arrays_that_are_no_index_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "file.npz", **arrays)
    with pytest.raises(FileFormatError, match=message):
        from_npz(tmp_path / "file.npz")


@pytest.mark.parametrize("shape", ["(-1, 2)", "(1, 2)", "(3, 2)", "(99999999999, 2)"])
def test_a_shape_that_does_not_fit_the_data_is_refused(tmp_path, shape):
    out = io.BytesIO()
    np.save(out, CODES)
    header = b"(2, 2), }"
    raw = out.getvalue().replace(
        header + b" " * 20, f"{shape}, }}".encode().ljust(len(header) + 20)
    )
    assert raw != out.getvalue()
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive:
        archive.writestr("codes.npy", raw)
    with pytest.raises(FileFormatError, match=r"file.npz"):
        from_npz(tmp_path / "file.npz")


def test_truncation_and_every_flipped_byte_are_found(stock, tmp_path):
    path = tmp_path / "index.npz"
    mine = stock(12, n=8)
    to_npz(mine.index, path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 5):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=r"index.npz"):
            from_npz(path)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        with suppress(FileFormatError):
            assert mine.is_in(from_npz(path))  # dates and the like may change without harm


def test_a_failed_write_keeps_the_old_file(stock, tmp_path, monkeypatch):
    path = tmp_path / "index.npz"
    path.write_bytes(b"old")
    index = stock(64).index
    monkeypatch.setattr(index, "codes", lambda ids: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        to_npz(index, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["index.npz"]


def test_missing_files_and_folders_are_named(empty, tmp_path):
    with pytest.raises(InputError, match=r"must name a \.npz file, there is no .*nowhere"):
        from_npz(tmp_path / "nowhere")
    with pytest.raises(InputError, match="existing folder"):
        to_npz(empty, tmp_path / "no" / "index.npz")


def test_a_small_file_that_would_unpack_to_gigabytes_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", codes=np.zeros((1 << 20, 8), np.uint8))
    assert len(from_npz(tmp_path / "bomb.npz")) == 1 << 20
    monkeypatch.setenv("RANKBITS_UNPACK_BYTES", "1000000")
    with pytest.raises(FileFormatError, match=r"would unpack to .* the limit is 1000000"):
        from_npz(tmp_path / "bomb.npz")
