"""Every id has one owner, and the folder of a sharded collection says which."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes, distributed
from rankbits._json import seal
from rankbits.datasets.blocks import RowFile
from rankbits.distributed import _layout
from rankbits.distributed._layout import read_layout
from rankbits.distributed._owners import Owners, make_owners
from rankbits.distributed._parts import plan_targets, rows_per_part
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection

IDS = st.lists(st.integers(0, 2**63 - 2), max_size=30, unique=True).map(
    lambda ids: np.array(ids, np.int64)
)


def splitmix(number):
    """One step of splitmix64 in whole numbers of Python."""
    z = (number + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@given(IDS, st.integers(1, 9))
def test_the_hash_is_splitmix(ids, n_shards):
    assert Owners(n_shards).of(ids).tolist() == [splitmix(int(i)) % n_shards for i in ids]


@given(IDS, st.lists(st.integers(0, 2**63 - 2), max_size=5, unique=True).map(sorted))
def test_ranges_begin_at_their_bounds(ids, bounds):
    owners = make_owners(len(bounds) + 1, "range", bounds)
    expected = [sum(bound <= int(i) for bound in bounds) for i in ids]
    assert owners.of(ids).tolist() == expected


@given(IDS, st.integers(1, 9))
def test_rows_are_every_place_once(ids, n_shards):
    owners = Owners(n_shards)
    rows = owners.rows(ids)
    assert sorted(np.concatenate([*rows.values(), []]).astype(int)) == list(range(len(ids)))
    for shard, own in rows.items():
        assert (owners.of(ids[own]) == shard).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, "hash", None), "n_shards must be an integer from 1"),
        ((2, "rnge", None), "by must be one of hash, range; got 'rnge'; did you mean 'range'"),
        ((2, "hash", [5]), "bounds must come with by='range'"),
        ((3, "range", None), "bounds must be given with by='range'"),
        ((3, "range", [5]), "bounds must be 2 ids, ascending"),
        ((3, "range", [5, 4]), "bounds must be 2 ids, ascending"),
    ],
)
def test_shards_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        make_owners(*arguments)


def test_a_folder_says_how_it_is_cut(tmp_path):
    distributed.create_index(tmp_path / "index", 16, 3, by="range", bounds=[10, 20])
    layout = read_layout(tmp_path / "index")
    assert layout.owners == Owners(3, "range", (10, 20))
    assert distributed.is_sharded(tmp_path / "index")
    assert not distributed.is_sharded(tmp_path)
    with distributed.LocalShards(tmp_path / "index") as shards:
        shards.add(BinaryCodes.from_bits(np.eye(16)), np.arange(8, 24))
    sizes = [len(Collection.open(folder)) for folder in layout.folders]
    assert sizes == [2, 10, 4]


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match="folder must be new or empty"):
        distributed.create_index(tmp_path, 16)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_index_that_cannot_be_made_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="n_bits must be"):
        distributed.create_index(tmp_path / "index", 0)
    assert not list(tmp_path.iterdir())


CHANGES = [
    {"by": "luck"},
    {"by": 3},
    {"by": "hash"},
    {"shards": ["../elsewhere"]},
    {"shards": ["shard-00000", "shard-00001"]},
    {"shards": []},
    {"shards": None},
    {"shards": "shard-00000"},
    {"shards": [["shard-00000"]] * 3},
    {"bounds": [7, 3]},
    {"bounds": [7, None]},
    {"bounds": [10**30, 10**31]},
    {"bounds": {"a": 1}},
    {"bounds": [[[1]], 2]},
    {"changes": [0, 0]},
    {"changes": [0, -1, 0]},
    {"changes": [0, 0, "x"]},
    {"changes": None},
]


@pytest.fixture
def sharded(tmp_path):
    distributed.create_index(tmp_path / "index", 16, 3, by="range", bounds=[10, 20])
    return tmp_path / "index"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_record_that_was_altered_is_refused(sharded, change, is_sealed):
    path = sharded / "shards.json"
    record = {**json.loads(path.read_text()), **change}
    if is_sealed:  # by somebody who knows how
        del record["json_sha256"], record["format"], record["version"]
        path.write_bytes(seal(_layout.FORMAT, _layout.VERSION, record))
    else:
        path.write_text(json.dumps(record))
    with pytest.raises(FileFormatError, match=r"shards\.json is damaged|is damaged: it has"):
        read_layout(sharded)


def test_a_record_that_leaves_out_a_shard_is_refused_also_if_its_checksum_is_right(tmp_path):
    distributed.create_index(tmp_path / "index", 16, 2)
    path = tmp_path / "index/shards.json"
    record = {"by": "hash", "bounds": [], "shards": ["shard-00000"], "changes": [0]}
    path.write_bytes(seal(_layout.FORMAT, _layout.VERSION, record))
    with pytest.raises(FileFormatError, match=r"shard-00001, which shards\.json does not name"):
        read_layout(tmp_path / "index")


def test_a_shard_that_is_older_than_the_record_is_refused(sharded, tmp_path):
    """Such as one that was restored alone: its items would be missing from every answer."""
    shutil.copytree(sharded / "shard-00001", tmp_path / "before")
    with distributed.LocalShards(sharded) as shards:
        shards.add(BinaryCodes.from_bits(np.eye(16)), np.arange(8, 24))
    infos = [Collection.open(folder).info() for folder in read_layout(sharded).folders]
    read_layout(sharded).require_current(infos)
    shutil.rmtree(sharded / "shard-00001")
    shutil.copytree(tmp_path / "before", sharded / "shard-00001")
    infos[1] = Collection.open(sharded / "shard-00001").info()
    with pytest.raises(FileFormatError, match=r"shard-00001 is an older copy, .* had 1 changes"):
        read_layout(sharded).require_current(infos)


def test_an_index_that_cannot_be_made_spares_what_came_meanwhile(tmp_path, monkeypatch):
    def fail(*arguments):
        (tmp_path / "index" / "notes.txt").write_text("keep me")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_layout, "_write", fail)
    with pytest.raises(OSError, match="No space left"):
        distributed.create_index(tmp_path / "index", 16)
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["notes.txt"]


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=4), st.integers(1, 9), st.integers(1, 9))
def test_parts_cover_every_row_once_and_begin_at_blocks(sizes, n_blocks, n_workers):
    step = 64
    inputs = [RowFile(f"{i}.npy", None, n, (4,)) for i, n in enumerate(sizes)]
    for n_rows in (rows_per_part(inputs, step, n_workers), step * n_blocks):
        (target,) = plan_targets(inputs, "codes.npy", is_folder=False, step=step, n_rows=n_rows)
        assert all(part.start % step == 0 for part in target.parts)
        covered = [
            (part.input, row) for part in target.parts for row in range(part.start, part.stop)
        ]
        assert covered == [(i, row) for i, n in enumerate(sizes) for row in range(n)]
