"""One codec for files of every format: what is written in one comes back from each."""

import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from oracles.counting import random_codes
from rankbits import BinaryCodes
from rankbits.codes import files, stored
from rankbits.datasets import load_codes
from rankbits.errors import FileFormatError, InputError

MODEL = "5f0c2a97"


@pytest.fixture(params=files.ENDINGS)
def path(tmp_path, request):
    return tmp_path / f"codes{request.param}"


@pytest.mark.parametrize("n_bits", [1, 8, 12, 21, 64, 4096])
@pytest.mark.parametrize("model", [None, MODEL])
def test_bits_and_model_come_back_from_every_format(rng, path, n_bits, model):
    codes = BinaryCodes(random_codes(rng, 9, n_bits).packed, n_bits, model)
    codes.save(path)
    for back in (BinaryCodes.load(path), load_codes(path), load_codes(path, n_bits, "packed")):
        assert (back, back.n_bits, back.model) == (codes, n_bits, model)


def test_more_rows_than_a_block_come_back_in_order(rng, path, monkeypatch):
    monkeypatch.setattr(stored, "BLOCK", 7)
    codes = random_codes(rng, 50, 20)
    codes.save(path)
    assert BinaryCodes.load(path) == codes


def test_no_codes_at_all_can_be_saved(path):
    BinaryCodes(np.empty((0, 3), np.uint8), 20, MODEL).save(path)
    back = BinaryCodes.load(path)
    assert (len(back), back.n_bits, back.model) == (0, 20, MODEL)


def test_another_number_of_bits_is_refused(rng, path):
    random_codes(rng, 9, 20).save(path)
    for load in (BinaryCodes.load, load_codes):
        with pytest.raises(InputError, match=r"n_bits is 24, but .* holds codes of 20 bits"):
            load(path, 24)


def test_a_file_that_was_cut_is_refused(rng, path):
    random_codes(rng, 30, 12).save(path)
    whole = path.read_bytes()
    for size in range(1, len(whole), 11):
        path.write_bytes(whole[:size])
        for load in (BinaryCodes.load, load_codes):
            with pytest.raises(FileFormatError):
                load(path)


def test_the_libraries_of_each_format_read_what_was_written(rng, tmp_path):
    codes = BinaryCodes(random_codes(rng, 9, 12).packed, 12, MODEL)
    for ending in files.ENDINGS:
        codes.save(tmp_path / f"codes{ending}")
    assert np.array_equal(np.load(tmp_path / "codes.npy"), codes.packed)
    with np.load(tmp_path / "codes.npz") as arrays:
        assert np.array_equal(arrays["codes"], codes.packed)
        assert (int(arrays["n_bits"]), str(arrays["model"])) == (12, MODEL)
    table = pq.read_table(tmp_path / "codes.parquet")
    assert [bytes(row) for row in codes.packed] == table["code"].to_pylist()
    assert table.schema.metadata[b"rankbits.n_bits"] == b"12"
    with safe_open(tmp_path / "codes.safetensors", "np") as tensors:
        assert np.array_equal(tensors.get_tensor("codes"), codes.packed)
        assert tensors.metadata() == {"rankbits.n_bits": "12", "rankbits.model": MODEL}


def foreign_files(folder, packed):
    """Packed bytes as others write them, without a length."""
    np.save(folder / "codes.npy", packed)
    np.savez_compressed(folder / "codes.npz", codes=packed, labels=np.arange(len(packed)))
    column = pa.array([bytes(row) for row in packed], pa.binary(packed.shape[1]))
    pq.write_table(
        pa.table({"label": range(len(packed)), "bytes": column}), folder / "codes.parquet"
    )
    save_file({"codes": packed, "labels": np.arange(3)}, folder / "codes.safetensors")
    return [folder / f"codes{ending}" for ending in files.ENDINGS]


def test_packed_bytes_of_others_load_with_the_bits_that_are_given(rng, tmp_path):
    codes = random_codes(rng, 9, 12)
    for path in foreign_files(tmp_path, codes.packed):
        assert BinaryCodes.load(path).n_bits == 16
        assert BinaryCodes.load(path, 12) == codes
    assert load_codes(f"{tmp_path}/codes.parquet:bytes", 12) == codes
    assert load_codes(f"{tmp_path}/codes.npz:codes", 12) == codes


def test_a_parquet_file_of_an_earlier_version_tells_its_length(tmp_path):
    schema = pa.schema([("codes", pa.binary(2))], metadata={"rankbits:n_bits": "12"})
    pq.write_table(pa.table({"codes": [b"\x01\x20"]}, schema=schema), tmp_path / "old.parquet")
    assert load_codes(tmp_path / "old.parquet").n_bits == 12


def test_a_column_beside_the_codes_is_read_as_what_it_is(tmp_path):
    schema = pa.schema(
        [("label", pa.int64()), ("code", pa.binary(1))], metadata={"rankbits.n_bits": "8"}
    )
    pq.write_table(
        pa.table({"label": [1], "code": [b"\x05"]}, schema=schema), tmp_path / "x.parquet"
    )
    assert load_codes(tmp_path / "x.parquet").packed.tolist() == [[5]]
    with pytest.raises(InputError, match=r"must hold codes, numbers of shape"):
        load_codes(f"{tmp_path}/x.parquet:label")
    with pytest.raises(InputError, match=r"one column 'other'"):
        BinaryCodes.load(tmp_path / "x.parquet", key="other")


def wrong_note(path, n_bits, model="m"):
    """Codes of two bytes in a file that says something else."""
    packed = np.zeros((3, 2), np.uint8)
    metadata = {"rankbits.n_bits": n_bits, "rankbits.model": model}
    if path.suffix == ".npy":
        np.lib.format.write_array(file := path.open("wb"), packed, version=(2, 0))
        file.write(f"rankbits:model={model}\nrankbits:n_bits={n_bits}\n".encode())
        file.close()
    elif path.suffix == ".npz":
        number = np.array(int(n_bits) if n_bits.lstrip("-").isdigit() else 0)
        np.savez(path, codes=packed, n_bits=number, model=np.array(model))
    elif path.suffix == ".parquet":
        schema = pa.schema([("code", pa.binary(2))], metadata=metadata)
        pq.write_table(pa.table({"code": [b"\0\0"] * 3}, schema=schema), path)
    else:
        save_file({"codes": packed}, path, metadata)


@pytest.mark.parametrize("n_bits", ["0", "-3", "8", "17", "4097", "many", "9" * 30])
def test_a_length_that_codes_cannot_have_is_damage(path, n_bits):
    if path.suffix == ".npz" and len(n_bits) > 18:
        n_bits = "4097"
    wrong_note(path, n_bits)
    for load in (BinaryCodes.load, load_codes):
        with pytest.raises(FileFormatError, match="damaged"):
            load(path)


@pytest.mark.parametrize("model", ["", "two words", "a\nb", "x" * 129, "é"])
def test_a_fingerprint_that_cannot_be_is_damage(path, model):
    wrong_note(path, "12", model)
    with pytest.raises(FileFormatError, match="damaged"):
        BinaryCodes.load(path)
    with pytest.raises(InputError, match="model must be a fingerprint of 1 to 128 visible"):
        BinaryCodes(np.zeros((1, 2), np.uint8), 12, model)


def test_a_key_that_is_not_that_of_codes_is_refused(rng, path):
    random_codes(rng, 3, 12).save(path)
    with pytest.raises(InputError, match=r"other|key must"):
        BinaryCodes.load(path, key="other")


def test_a_hidden_member_and_a_header_that_lies_do_no_harm(tmp_path):
    """A .npz whose note is not an array, and a .safetensors whose shape is not that of its data."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("codes.npy", b"nothing")
        archive.writestr("n_bits.npy", b"nothing")
    header = {"codes": {"dtype": "U8", "shape": [1 << 40, 2], "data_offsets": [0, 1 << 41]}}
    text = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0\0")
    for ending in (".npz", ".safetensors"):
        for load in (BinaryCodes.load, load_codes):
            with pytest.raises(FileFormatError, match="is not a readable"):
                load(tmp_path / f"x{ending}")
