"""What `count_ties` takes as a database, and what it refuses before it joins a cluster."""

import numpy as np
import pytest

from odd_shards import SlowShard
from rankbits import BinaryCodes
from rankbits.distributed import FileShard
from rankbits.distributed._shards import as_shards
from rankbits.errors import InputError


def listed(database, labels=None):
    return as_shards(database, labels, None, "auto")


def test_files_and_shards_are_taken_alone_and_in_lists(tmp_path):
    shard, path = SlowShard(0, 9, 0.0), tmp_path / "codes.npy"
    assert listed(shard) == listed([shard]) == [shard]
    assert listed(path) == listed([str(path)]) == [FileShard(str(path))]
    assert listed([path], ["/labels.npy"]) == [FileShard(str(path), "/labels.npy")]


def test_what_is_neither_a_file_nor_a_shard_is_named():
    codes = BinaryCodes(np.zeros((2, 1), np.uint8), 8)
    with pytest.raises(InputError, match=r"database must be paths or shards, got BinaryCodes"):
        listed([codes])


def test_mixtures_and_labels_without_files_are_refused():
    shard = SlowShard(0, 9, 0.0)
    with pytest.raises(InputError, match="database must be files or shards, got both"):
        listed(["codes.npy", shard])
    with pytest.raises(InputError, match="database_labels must not be given for shards"):
        listed([shard], ["labels.npy"])
    with pytest.raises(InputError, match="at least one shard, got none"):
        listed([])
    with pytest.raises(InputError, match="a file for each of database, got 2 for 1"):
        listed(["codes.npy"], ["a.npy", "b.npy"])


def test_a_plain_array_of_bits_is_no_file_that_says_what_it_holds(tmp_path, rng):
    """Such a file is read as a whole, since ranges of it cannot be mapped as packed codes."""
    bits = rng.integers(0, 2, (7, 20), np.uint8)
    np.save(tmp_path / "bits.npy", bits)
    BinaryCodes.from_bits(bits).save(tmp_path / "codes.npy")
    plain = FileShard(str(tmp_path / "bits.npy"), form="bits")
    packed = FileShard(str(tmp_path / "codes.npy"))
    assert (plain.describe().can_split, packed.describe().can_split) == (False, True)
    assert plain.read(2, 5)[0] == packed.read(2, 5)[0] == BinaryCodes.from_bits(bits[2:5])
