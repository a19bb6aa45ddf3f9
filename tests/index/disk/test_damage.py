"""Segments that somebody cuts or writes to under an open collection: refused, and never copied."""

import os
import pickle
import time

import numpy as np
import pytest

from rankbits.errors import FileFormatError
from rankbits.index import Collection, HammingIndex

N, N_BITS = 3000, 64


@pytest.fixture
def folder(tmp_path):
    """A collection of two sealed parts, with ids that leave gaps."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "collection"
    with Collection.create(folder, N_BITS) as collection:
        for start, n in ((0, N), (2 * N, N // 3)):  # the second is too small to be merged
            ids = start + 2 * np.arange(n)
            collection.add(rng.integers(0, 256, (n, 8), dtype=np.uint8), ids)
            collection.seal()
    for path in segments(folder):
        os.utime(path, (1e9, 1e9))
    return folder


def segments(folder):
    return sorted((folder / "segments").glob("*.seg"))


def cut(path):
    os.truncate(path, path.stat().st_size - 404)


def cut_to_a_page(path):
    os.truncate(path, 4096)


def flip(path):
    with open(path, "r+b") as file:
        file.seek(4096 + 100)
        byte = file.read(1)
        file.seek(4096 + 100)
        file.write(bytes([byte[0] ^ 1]))


def flip_and_hide(path):
    """A byte is changed, and nothing that a file system tells gives it away."""
    flip(path)
    os.utime(path, (1e9, 1e9))


DAMAGES = [cut, cut_to_a_page, flip]
ONE = np.zeros((1, 8), np.uint8)


@pytest.mark.parametrize("damage", [*DAMAGES, flip_and_hide])
@pytest.mark.parametrize("change", ["compact", "remove", "upsert", "add"])
def test_a_merge_refuses_what_it_cannot_verify_and_leaves_the_file(folder, damage, change):
    with Collection.open(folder, writable=True) as collection:
        path = segments(folder)[0]
        damage(path)
        damaged = path.read_bytes()
        arguments = {
            "compact": (),
            "remove": (2 * np.arange(N - 10),),  # so many that the part is written anew
            "upsert": (np.zeros((2 * N - 40, 8), np.uint8), np.arange(2 * N - 40)),
            "add": (np.zeros((4 * N, 8), np.uint8),),  # so many that all parts are merged
        }[change]
        with pytest.raises(FileFormatError, match=r"2\.seg (was|is) "):
            getattr(collection, change)(*arguments)
    assert path.read_bytes() == damaged
    with pytest.raises(FileFormatError, match=r"2\.seg is "):
        Collection.open(folder)


USES = {
    "ids": lambda c: c.ids,
    "in": lambda c: 4 in c,
    "codes": lambda c: c.codes(),
    "some codes": lambda c: c.codes([2 * N]),
    "search": lambda c: c.search(ONE, 3),
    "search_real": lambda c: c.search_real(np.ones((1, N_BITS)), 3),
    "within": lambda c: c.within(ONE, 20),
    "tie_counts": lambda c: c.tie_counts(ONE),
    "tune": lambda c: c.tune(ONE, 3),
}
OF_COLLECTION = {
    "remove": lambda c: c.remove([0]),
    "upsert": lambda c: c.upsert(ONE, [0]),
    "index": lambda c: c.index(mmap=False),
    "check": lambda c: c.check(),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*USES, *OF_COLLECTION])
def test_no_use_of_a_damaged_segment_ends_the_process_or_answers(folder, damage, name):
    use = {**USES, **OF_COLLECTION}[name]
    with Collection.open(folder, writable=True) as collection:
        damage(segments(folder)[0])
        with pytest.raises(FileFormatError):
            use(collection)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*USES, "pickle", "save"])
def test_no_use_of_an_index_of_a_damaged_segment_ends_the_process_or_answers(
    folder, tmp_path, damage, name
):
    others = {"pickle": pickle.dumps, "save": lambda index: index.save(tmp_path / "copy")}
    index = HammingIndex.load(folder)
    damage(segments(folder)[0])
    with pytest.raises(FileFormatError):
        {**USES, **others}[name](index)
    assert not (tmp_path / "copy" / "collection.sqlite").exists()


def test_an_index_in_memory_needs_no_file(folder):
    index = HammingIndex.load(folder, mmap=False)
    for path in segments(folder):
        os.truncate(path, 0)
    assert len(index.search(ONE, 5)[1][0]) == 5


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_segment_that_was_restored_is_read_again_without_opening_the_collection(folder, damage):
    path = segments(folder)[1]
    raw = path.read_bytes()
    with Collection.open(folder) as collection:
        before = collection.search(ONE, 5)
        damage(path)
        with pytest.raises(FileFormatError):
            collection.search(ONE, 5)
        path.write_bytes(raw)
        np.testing.assert_array_equal([*before], [*collection.search(ONE, 5)])


def test_a_file_whose_time_alone_is_another_is_read_again(folder):
    with Collection.open(folder) as collection:
        before = collection.search(ONE, 5)
        os.utime(segments(folder)[0])
        np.testing.assert_array_equal([*before], [*collection.search(ONE, 5)])


def test_a_segment_that_is_damaged_right_after_it_was_written_is_noticed(tmp_path):
    with Collection.create(tmp_path / "collection", N_BITS) as collection:
        collection.add(np.zeros((N, 8), np.uint8))
        collection.seal()
        path = segments(tmp_path / "collection")[0]
        ahead = (
            time.time_ns() + 10**12
        )  # as if written in this tick of the clock, however slow we are
        os.utime(path, ns=(ahead, ahead))
        collection.search(ONE, 3)
        flip(path)
        os.utime(path, ns=(ahead, ahead))
        with pytest.raises(FileFormatError, match="does not match its checksum"):
            collection.search(ONE, 3)
