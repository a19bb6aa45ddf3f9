"""Feed damaged files to everything that reads files: the answer is a value or an InputError.

    python tests/fuzz/fuzz_loaders.py --seconds 60 --seed 0

A case is a valid file of some format, damaged by a few random edits, or bytes of one format under
the name of another, or noise. A sealed JSON file may also have other values and the checksum of
these, as somebody would make it up. It is read by every loader, and what comes back is read to the
end.
A case that fails is reported with its seed: --seed SEED --cases 1 repeats it.
"""

import argparse
import copy
import io
import json
import pickle
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from safetensors.numpy import save as safetensors_bytes

import rankbits
from rankbits import BinaryCodes, TieHistogram, affinity, compress, datasets, methods
from rankbits._json import seal
from rankbits.datasets._cifar import read_batch
from rankbits.distributed import create_index
from rankbits.distributed._layout import read_layout
from rankbits.distributed._manifest import EncodingManifest
from rankbits.errors import InputError
from rankbits.evaluation import load_per_query
from rankbits.index import Collection, HammingIndex, interop

RUN = {"model": "abc", "side": "items", "step": 64, "inputs": []}
SUFFIXES = (
    "npy",
    "npz",
    "parquet",
    "safetensors",
    "tsv",
    "txt",
    "jsonl",
    "batch",
    "json",
    "seg",
    "sqlite",
)


def read_whole(found):
    """Touch every byte of what a loader returned."""
    if isinstance(found, dict):
        return [read_whole(part) for part in found.values()]
    if isinstance(found, BinaryCodes):
        return found.bits().sum()
    if isinstance(found, TieHistogram):
        return found.counts.sum()
    if isinstance(found, HammingIndex):
        return found.search(found.codes(), 3)
    if isinstance(found, datasets.Labelled):
        return found.x.tobytes() + found.y.tobytes()
    if isinstance(found, methods.base.BaseHasher):
        return found.project(np.ones((2, 6)))
    return found.tobytes() if isinstance(found, np.ndarray) else repr(found)


def load_model(path):
    """A model with one of its files replaced."""
    if path.suffix not in (".json", ".safetensors"):
        raise InputError("a model's files are JSON and safetensors")
    folder = path.parent / "model"
    whole = {file.name: file.read_bytes() for file in folder.iterdir()}
    place = folder / f"model{path.suffix}"
    place.write_bytes(path.read_bytes())
    try:
        return rankbits.load(folder)
    finally:
        place.write_bytes(whole[place.name])


def load_result(path):
    """A search by a compressed folder with another result.json."""
    opened = compress.load(_replaced_json(path, "result", "result.json"))
    try:
        return opened.search(np.ones((2, 6), np.float32), k=3, n_threads=1)
    finally:
        repr(opened)


def load_manifest(path):
    """The manifest of an encoding on a cluster."""
    return EncodingManifest.resume(_replaced_json(path, "encoding", "manifest.json"), RUN)


def load_shards(path):
    """The layout of a collection in shards."""
    return read_layout(_replaced_json(path, "shards", "shards.json"))


def _replaced_json(path, folder, name):
    """A folder with another file in the place of one."""
    if path.suffix != ".json":
        raise InputError("it is a JSON file")
    place = path.parent / folder
    (place / name).write_bytes(path.read_bytes())
    return place


def load_index(path):
    """A collection with one of its files replaced."""
    if path.suffix not in (".seg", ".sqlite"):
        raise InputError("a collection's files are segments and a database")
    folder = path.parent / "index"
    place = folder / "collection.sqlite" if path.suffix == ".sqlite" else _segment(folder)
    whole = place.read_bytes()
    place.write_bytes(path.read_bytes())
    try:
        return read_whole(HammingIndex.load(folder))  # it is mapped, and written to below
    finally:
        place.write_bytes(whole)
        for beside in folder.glob("collection.sqlite-*"):
            beside.unlink()


def _segment(folder):
    (segment,) = (folder / "segments").glob("*.seg")
    return segment


LOADERS = {
    "HammingIndex.load": load_index,
    "from_npz": interop.from_npz,
    "from_parquet": interop.from_parquet,
    "load_array": datasets.load_array,
    "load_array key": lambda path: datasets.load_array(path, "x"),
    "load_codes": datasets.load_codes,
    "load_codes 20": lambda path: datasets.load_codes(path, 20),
    "load_codes packed": lambda path: datasets.load_codes(path, form="packed"),
    "load_labels": datasets.load_labels,
    "load_judgements": datasets.load_judgements,
    "load_ids": datasets.load_ids,
    "read_judgements": lambda path: affinity.read_judgements(path, range(9), range(9)),
    "load_columns": datasets.load_columns,
    "load_features": datasets.load_features,
    "load_cifar_mosaics": datasets.load_cifar_mosaics,
    "read_batch": lambda path: read_batch(str(path)),
    "rankbits.load": load_model,
    "compress.load": load_result,
    "EncodingManifest.resume": load_manifest,
    "read_layout": load_shards,
    "load_per_query": load_per_query,
    "BinaryCodes.load": BinaryCodes.load,
    "TieHistogram.load": TieHistogram.load,
}


def corpus(folder):
    """Valid files, as (suffix, bytes)."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (9, 20), dtype=np.uint8)
    logits = rng.standard_normal((9, 20)).astype(np.float32)
    words = np.array(["cat", "dog", "cow"])
    rows = np.array([[0, 5, 1], [2, 0, 3]])
    kinds = [("npy", _npy(array)) for array in (np.packbits(bits, axis=1), logits, words, rows)]
    for name, thing in (
        ("npy", BinaryCodes.from_bits(bits)),
        ("npz", TieHistogram(rng.integers(0, 9, (3, 5, 2)), np.array([0, 1]))),
    ):
        thing.save(folder / f"valid.{name}")
        kinds.append((name, (folder / f"valid.{name}").read_bytes()))
    kinds += [("npz", _npz(save, x=logits, y=words)) for save in (np.savez, np.savez_compressed)]
    kinds.append(("safetensors", safetensors_bytes({"x": logits, "y": bits})))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(logits.ravel()), 20)
    code = pa.array([bytes(row) for row in np.packbits(bits, axis=1)], pa.binary(3))
    tables = (
        {"x": lists},
        {"x": code},
        {"x": pa.array(["a", "b"]).dictionary_encode(), "y": pa.array([1, None])},
        {"query": pa.array(range(9)), "AP": pa.array(logits[:, 0])},
    )
    kinds += [("parquet", _parquet(columns)) for columns in tables]
    kinds += [("npz", _npz(np.savez, **arrays)) for arrays in (_features(), _tagged(), _mosaics())]
    model = methods.get("lsh", n_bits=5, random_state=0).fit(rng.standard_normal((8, 6)))
    model.save(folder / "model")
    kinds += [(file.suffix[1:], file.read_bytes()) for file in (folder / "model").iterdir()]
    kinds += [("json", content) for content in _sealed(folder, rng)]
    ids = [3, 5, 8, 13, 21, 34, 55, 89, 144]
    with Collection.create(folder / "index", 20) as collection:
        collection.add(BinaryCodes.from_bits(bits), ids)
        collection.seal()
        collection.remove([5])
        collection.add(BinaryCodes.from_bits(bits[:2]), [5, 6])
    index = HammingIndex.load(folder / "index", mmap=False)
    kinds.append(("seg", _segment(folder / "index").read_bytes()))
    kinds.append(("sqlite", (folder / "index" / "collection.sqlite").read_bytes()))
    for suffix, write in (("npz", interop.to_npz), ("parquet", interop.to_parquet)):
        write(index, folder / f"index.{suffix}")
        kinds.append((suffix, (folder / f"index.{suffix}").read_bytes()))
    pixels = rng.integers(0, 256, (2, 3072)).astype(np.uint8)
    kinds.append(("batch", pickle.dumps({b"data": pixels, b"labels": [1, 0]}, protocol=2)))
    qrels = b"query-id\tcorpus-id\tscore\n1\t2\t-1\n"
    kinds += [("tsv", b"0\t5\t1\n2\t0\t3\n"), ("tsv", b"0 Q0 5 1\n"), ("tsv", qrels)]
    return [*kinds, ("txt", b"q1\nq2\n"), ("jsonl", b'{"_id": "q1", "text": ""}\n{"id": 2}\n')]


def _sealed(folder, rng):
    """Folders whose JSON files carry their checksum, and the content of these files."""
    items = rng.standard_normal((120, 6)).astype(np.float32)
    compress.compress(
        items, out=folder / "result", n_bytes=1, methods=["lsh"], pools=(20,), onnx=False,
        n_threads=1,
    )  # fmt: skip
    (folder / "encoding").mkdir()
    manifest = EncodingManifest(folder / "encoding", RUN, 64)
    manifest.parts["00000-000000000000.npy"] = 17
    manifest.write()
    create_index(folder / "shards", 8, 2, by="range", bounds=[10])
    names = ("result/result.json", "encoding/manifest.json", "shards/shards.json")
    return [(folder / name).read_bytes() for name in names]


def _features():
    x, y = np.arange(12, dtype=np.float16).reshape(4, 3), np.array([1, 0, 1, 0], np.uint8)
    return {"x_train": x, "x_test": x, "y_train": y, "y_test": y, "fine_to_coarse": y[:2]}


def _tagged():
    packed = np.packbits(np.eye(4, 9, dtype=np.uint8), axis=1)
    test = np.array([False, True, False, True])
    return {"features": np.eye(4), "labels": packed, "is_test": test, "n_labels": np.array(9)}


def _mosaics():
    file = io.BytesIO()
    Image.fromarray(np.zeros((32, 64, 3), np.uint8)).save(file, "WEBP", lossless=True)
    part = np.frombuffer(file.getvalue(), np.uint8)
    one = {"webp": part, "len": np.array([len(part)]), "y": np.array([0, 1])}
    return {f"{what}_{name}": one[what] for name in ("train", "test") for what in one}


def _npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz(save, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def _parquet(columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def damaged(content, rng):
    """The content after one edit or a few; sometimes none of it is left.

    Most edits keep the length, so that a reader gets past the header before it meets the damage.
    """
    if rng.random() < 0.03:
        return rng.bytes(rng.integers(0, 300))
    data = bytearray(content)
    for _ in range(1 if rng.random() < 0.6 else rng.integers(2, 6)):
        place = int(rng.integers(0, len(data) + 1))
        if rng.random() < 0.5:  # what matters most is at the ends: headers, footers, directories
            place = min(place, int(rng.integers(0, 160)))
            place = len(data) - place if rng.random() < 0.5 else place
        size = int(rng.integers(1, 9))
        edit = rng.choice(6, p=[0.06, 0.07, 0.07, 0.2, 0.4, 0.2])
        if edit == 0:
            del data[place:]
        elif edit == 1:
            del data[place : place + size]
        elif edit == 2:
            data[place:place] = rng.bytes(size)
        elif edit == 3:
            data[place : place + size] = rng.bytes(size)
        elif edit == 4 and place < len(data):
            data[place] ^= 1 << int(rng.integers(0, 8))
        elif place < len(data):
            data[place] = int(rng.choice([0, 1, 0x2D, 0x39, 0x7F, 0x80, 0xFF]))
    return bytes(data)


STRANGE = (None, True, -1, 0, 2**70, 1e308, "", "x" * 999, [], {}, [[[]]], {"a": 1}, "../..", 0.5)


def resealed(content, rng):
    """A sealed file with a few other values and the checksum of these."""
    record = json.loads(content)
    for _ in range(rng.integers(1, 4)):
        inner = record
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            key = keys[rng.integers(len(keys))]
            if not isinstance(inner[key], dict | list) or not inner[key] or rng.random() < 0.2:
                break
            inner = inner[key]
        if rng.random() < 0.3 and len(keys) > 1:
            del inner[key]
        else:
            inner[key] = copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])
    rest = {k: v for k, v in record.items() if k not in ("format", "version", "json_sha256")}
    return seal(record.get("format", "none"), record.get("version", 1), rest)


def run_case(folder, files, seed):
    """Read one damaged file with every loader; the names of those that raised anything else."""
    rng = np.random.default_rng(seed)
    suffix, content = files[rng.integers(0, len(files))]
    if rng.random() < 0.05:
        suffix = str(rng.choice(SUFFIXES))
    path = Path(folder) / f"case.{suffix}"
    is_made_up = suffix == "json" and b'"json_sha256"' in content and rng.random() < 0.5
    path.write_bytes(resealed(content, rng) if is_made_up else damaged(content, rng))
    failed = {}
    for name, load in LOADERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read_whole(load(path))
        except InputError as error:
            if "\n" in str(error):
                failed[name] = f"more than one line: {error}"
        except Exception:  # noqa: BLE001 - this is what the fuzzer looks for
            failed[name] = traceback.format_exc()
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=None)
    asked = parser.parse_args()
    end, seed, n_failed = time.monotonic() + asked.seconds, asked.seed, 0
    with tempfile.TemporaryDirectory() as folder:
        files = corpus(Path(folder))
        while time.monotonic() < end and seed - asked.seed != asked.cases:
            for name, reason in run_case(folder, files, seed).items():
                n_failed += 1
                sys.stderr.write(f"seed {seed}, {name}:\n{reason}\n")
            seed += 1
    sys.stdout.write(f"{seed - asked.seed} cases, {n_failed} failures\n")
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
