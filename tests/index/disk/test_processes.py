"""One writer, many readers, kills and a full disk: what was acknowledged is there, whole."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import Collection, HammingIndex


def random_codes(rng, n, n_bits):
    return BinaryCodes(np.packbits(rng.integers(0, 2, (n, n_bits)), axis=1), n_bits)


@contextmanager
def started(source, *arguments):
    """Another process, ended with the block; it says what it has to say in lines."""
    command = [sys.executable, "-c", source, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_of(source, *arguments):
    with started(source, *arguments) as process:
        told, _ = process.communicate(timeout=120)
        assert process.returncode == 0
    return told.splitlines()


WRITER = """
import sys, numpy as np
from rankbits.index import Collection
with Collection.open(sys.argv[1], writable=True) as collection:
    print("open", flush=True)
    sys.stdin.readline()
"""


def test_a_second_writer_is_refused_in_this_process_and_in_another(tmp_path, rng):
    folder = tmp_path / "c"
    with Collection.create(folder, 12) as collection:
        collection.add(random_codes(rng, 10, 12))
        for write in (
            lambda: Collection.open(folder, writable=True),
            lambda: HammingIndex(12).save(folder),
        ):
            with pytest.raises(InputError, match="one writer at a time"):
                write()
        with Collection.open(folder) as reader:
            assert len(reader) == 10
    with started(WRITER, folder) as process:
        assert process.stdout.readline() == "open\n"
        with pytest.raises(InputError, match="one writer at a time"):
            Collection.open(folder, writable=True)
        assert len(HammingIndex.load(folder)) == 10
    with Collection.open(folder, writable=True) as collection:  # the lock died with its owner
        assert len(collection) == 10


STEPS = """
import sys, numpy as np
from rankbits.index import Collection
from rankbits.index.disk import building
building.SEAL_AT = 150
with Collection.open(sys.argv[1], writable=True) as collection:
    print("open", flush=True)
    for step in range(1, 121):
        n = 100 + step % 3
        codes = np.full((n, 2), step, np.uint8)
        collection.upsert(codes, ids=np.arange(n))
        if step % 4 == 0:
            collection.compact()
print("done", flush=True)
"""


def test_a_reader_sees_whole_changes_only_while_another_process_makes_them(tmp_path):
    """Every change gives all codes one new value, so a mixture of two would show."""
    folder = tmp_path / "c"
    with Collection.create(folder, 16) as collection:
        collection.add(np.zeros((102, 2), np.uint8))
    seen = [0]
    with started(STEPS, folder) as process, Collection.open(folder) as reader:
        assert process.stdout.readline() == "open\n"
        while seen[-1] < 120:
            for index in (reader.index(), HammingIndex.load(folder)):
                packed = index.codes(np.arange(100)).packed
                assert (packed == packed[0, 0]).all()
                assert len(index) == 102
                seen.append(int(packed[0, 0]))
        assert process.wait() == 0
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


FULL = """
import json, resource, sys, numpy as np
from rankbits.errors import RankbitsError
from rankbits.index import Collection
size, limit = int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
told = []
with Collection.open(sys.argv[1], writable=True) as collection:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for _ in range(300):
        try:
            told += collection.add(rng.integers(0, 256, (size, 64), dtype=np.uint8)).tolist()
        except RankbitsError as error:
            message = str(error)
            break
    here = collection.ids.tolist()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    more = collection.add(np.zeros((3, 64), np.uint8)).tolist()
print(json.dumps([told, here, more, message]))
"""


@pytest.mark.parametrize(("size", "limit"), [(1, 200_000), (50, 150_000), (70_000, 3_000_000)])
def test_a_full_disk_loses_nothing_and_writing_goes_on_when_there_is_room(tmp_path, size, limit):
    """The system refuses to let any file grow beyond a limit."""
    folder = tmp_path / "c"
    with Collection.create(folder, 512) as collection:
        collection.add(np.ones((20, 64), np.uint8))
    told, here, more, message = json.loads(lines_of(FULL, folder, size, limit)[-1])
    assert "could not be written" in message
    assert "it is as it was before this call" in message or "is unknown" in message
    assert here == [*range(20), *told]
    with Collection.open(folder) as collection:
        collection.check()
        assert collection.ids.tolist() == [*here, *more]
        rng = np.random.default_rng(0)
        for start in range(0, len(told), size):
            codes = rng.integers(0, 256, (size, 64), dtype=np.uint8)
            ids = told[start : start + size]
            assert np.array_equal(collection.codes(ids).packed, codes)


def test_where_nothing_can_be_written_a_collection_is_read(tmp_path, rng):
    folder = tmp_path / "c"
    with Collection.create(folder, 12) as collection:
        collection.add(random_codes(rng, 10, 12))
    source = """
import os, sys
from rankbits.index import Collection, HammingIndex  # all of it, while it can be read
os.setgid(65534), os.setuid(65534)
print(len(HammingIndex.load(sys.argv[1])))
"""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody who may not write here")
    with tempfile.TemporaryDirectory() as outside:
        os.chmod(outside, 0o755)
        shutil.copytree(folder, Path(outside) / "c")
        assert lines_of(source, Path(outside) / "c") == ["10"]
