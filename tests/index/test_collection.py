"""A collection holds what a dictionary would, through any changes, and after it is opened again."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbits import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection, HammingIndex
from rankbits.index.disk import Database, building, tables
from rankbits.index.store import changes as rules


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Seal after 40 codes, so that few changes make many files."""
    monkeypatch.setattr(building, "SEAL_AT", 40)
    monkeypatch.setattr(rules, "SMALL", 8)


def random_codes(rng, n, n_bits):
    return BinaryCodes(np.packbits(rng.integers(0, 2, (n, n_bits)), axis=1), n_bits)


def content(found):
    """A collection or an index as a dictionary."""
    return dict(zip(found.ids.tolist(), map(bytes, found.codes().packed), strict=True))


def as_dictionary(ids, codes):
    return dict(zip(np.asarray(ids).tolist(), map(bytes, codes.packed), strict=True))


def files_of(folder):
    return sorted(os.listdir(folder / "segments"))


OPERATIONS = ("add", "add_here", "upsert", "remove", "seal", "compact", "reopen", "save")
changes = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(1, 60), st.integers(0, 999)), max_size=12
)


def change(collection, model, operation, size, rng):
    """Change both; the collection may come back as another object."""
    known = np.array(sorted(model), np.int64)
    codes = random_codes(rng, size, collection.n_bits)
    if operation == "add":
        model.update(as_dictionary(collection.add(codes), codes))
    elif operation in ("add_here", "upsert"):
        ids = rng.choice(300, size, replace=False)
        if operation == "add_here":
            ids = np.setdiff1d(ids, known)
            codes = codes[: len(ids)]
        getattr(collection, "upsert" if operation == "upsert" else "add")(codes, ids=ids)
        model.update(as_dictionary(ids, codes))
    elif operation == "remove":
        gone = rng.choice(known, min(size, len(known)), replace=False)
        collection.remove(gone)
        for i in gone.tolist():
            del model[i]
    elif operation in ("reopen", "save"):
        index, folder = collection.index(), collection.folder
        collection.close()
        if operation == "save":
            index.save(folder)
        collection = Collection.open(folder, writable=True)
    else:
        getattr(collection, operation)()
    return collection


@given(changes, st.sampled_from([1, 12, 64, 100, 300]))
@settings(max_examples=40)
def test_any_changes_leave_what_they_leave_of_a_dictionary(tmp_path_factory, drawn, n_bits):
    folder = tmp_path_factory.mktemp("changes") / "collection"
    collection, model = Collection.create(folder, n_bits), {}
    next_id = 0
    with Collection.open(folder) as reader:
        for operation, size, seed in drawn:
            rng = np.random.default_rng(seed)
            collection = change(collection, model, operation, size, rng)
            assert len(collection) == len(reader) == len(model)
            assert content(reader) == content(collection) == model
            next_id = max([next_id, *(i + 1 for i in model)])
            assert collection.info()["next_id"] == next_id
        collection.check()
        collection.close()
    assert content(HammingIndex.load(folder)) == model
    assert content(HammingIndex.load(folder, mmap=False)) == model


@pytest.mark.parametrize("n_bits", [1, 12, 64, 100, 300])
def test_a_search_finds_what_an_index_in_memory_finds(tmp_path, rng, n_bits):
    codes, queries = random_codes(rng, 500, n_bits), random_codes(rng, 7, n_bits)
    index = HammingIndex(n_bits)
    with Collection.create(tmp_path / "c", n_bits) as collection:
        for found in (index, collection):
            found.add(codes[:470])
            found.remove(np.arange(0, 400, 3))
            found.upsert(codes[470:], ids=np.arange(30, 60))
        assert collection.info()["removed"] > 0
        assert collection.info()["unsealed"] > 0
        for mine, theirs in (
            (collection.search(queries, 20), index.search(queries, 20)),
            (collection.search(queries, 9, "complete"), index.search(queries, 9, "complete")),
            (collection.within(queries, n_bits // 3), index.within(queries, n_bits // 3)),
            (
                collection.search(queries, 5, allowed=[1, 2, 40]),
                index.search(queries, 5, allowed=[1, 2, 40]),
            ),
        ):
            assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
        assert 31 in collection
        assert 0 not in collection


def test_an_index_saved_and_loaded_is_the_same_mapped_or_not(tmp_path, rng):
    index = HammingIndex(100)
    index.add(random_codes(rng, 300, 100), ids=rng.permutation(300) * 5)
    index.remove(np.arange(0, 500, 5))
    index.save(tmp_path / "saved")
    queries = random_codes(rng, 4, 100)
    for mmap in (True, False):
        found = HammingIndex.load(tmp_path / "saved", mmap=mmap, kind="scan")
        assert content(found) == content(index)
        assert np.array_equal(found.search(queries, 9)[1], index.search(queries, 9)[1])
        new = found.add(random_codes(rng, 1, 100))
        assert new.tolist() == [1496]  # ids go on behind the largest there ever was
        found.remove([500, 1496])
        found.compact()
    assert content(HammingIndex.load(tmp_path / "saved")) == content(index)


def test_an_index_is_saved_over_another_of_other_bits_and_over_itself(tmp_path, rng):
    folder = tmp_path / "saved"
    HammingIndex(8).save(folder)
    assert len(HammingIndex.load(folder)) == 0
    index = HammingIndex(20)
    index.add(random_codes(rng, 100, 20))
    index.save(folder)
    with Collection.open(folder) as reader:
        loaded = HammingIndex.load(folder)
        loaded.remove([7])
        loaded.save(folder)
        assert reader.n_bits == 20
        assert content(reader) == content(loaded) == content(HammingIndex.load(folder))
    assert len(files_of(folder)) == 1


def test_an_index_taken_from_a_collection_no_longer_changes_with_it(tmp_path, rng):
    with Collection.create(tmp_path / "c", 12) as collection:
        codes = random_codes(rng, 100, 12)
        collection.add(codes)
        collection.add(codes[:5])
        before = content(collection)
        index, reader = collection.index(), Collection.open(tmp_path / "c")
        collection.remove(np.arange(60))
        collection.compact()
        assert content(index) == before
        index.remove([99])
        index.upsert(codes[:1], ids=[98])
        assert content(reader) == content(collection)
        assert len(collection) == 45
        reader.close()


@pytest.mark.parametrize("n_rows", [0, 2])
def test_a_change_that_is_interrupted_is_undone_and_the_next_one_works(
    tmp_path, rng, monkeypatch, n_rows
):
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 50, 12))
        before, left, put = content(collection), [n_rows], tables._put

        def interrupted(*arguments, **named):
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            put(*arguments, **named)

        with monkeypatch.context() as patched:
            patched.setattr(tables, "_put", interrupted)
            with pytest.raises(KeyboardInterrupt):
                collection.add(random_codes(rng, 20, 12))
            with pytest.raises(KeyboardInterrupt):
                collection.remove(np.arange(20))
            with pytest.raises(KeyboardInterrupt):
                collection.add(random_codes(rng, 60, 12))
        assert content(collection) == before
        with Collection.open(tmp_path / "c") as reader:
            assert content(reader) == before
        collection.remove([1])
        assert len(collection) == len(HammingIndex.load(tmp_path / "c")) == 49


def test_an_interrupt_just_after_a_transaction_began_leaves_nothing_behind(
    tmp_path, rng, monkeypatch
):
    begin = Database._begin

    def interrupted(self, known_change):
        begin(self, known_change)
        raise KeyboardInterrupt

    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 50, 12))
        before = content(collection)
        with monkeypatch.context() as patched:
            patched.setattr(Database, "_begin", interrupted)
            with pytest.raises(KeyboardInterrupt):
                collection.add(random_codes(rng, 20, 12))
        assert content(collection) == before
        collection.check()
        collection.add(random_codes(rng, 20, 12))
        assert len(collection) == 70
    with Collection.open(tmp_path / "c") as again:
        assert len(again) == 70


def test_a_change_that_is_interrupted_after_its_commit_is_there(tmp_path, rng, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 50, 12))
        with monkeypatch.context() as patched:
            patched.setattr(Database, "_delete_strays", interrupted)
            with pytest.raises(KeyboardInterrupt):
                collection.add(random_codes(rng, 3, 12))
            with pytest.raises(KeyboardInterrupt):
                collection.compact()
        assert len(collection) == len(HammingIndex.load(tmp_path / "c")) == 53
        collection.remove([0])
        assert len(collection.check()["segments"]) == len(files_of(tmp_path / "c")) == 1


def test_ids_that_are_there_or_not_are_refused_and_nothing_changes(tmp_path, rng):
    codes = random_codes(rng, 3, 12)
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(codes, ids=[5, 6, 7])
        collection.seal()
        collection.add(codes, ids=[1, 2, 3])
        before, change = content(collection), collection.info()["change"]
        with pytest.raises(InputError, match="ids must be new, 6 exists already"):
            collection.add(codes, ids=[4, 6, 8])
        with pytest.raises(InputError, match="ids must be new, 2 exists already"):
            collection.add(codes, ids=[4, 8, 2])
        with pytest.raises(InputError, match="ids must be of items that exist, 9 is not"):
            collection.remove([1, 5, 9])
        with pytest.raises(InputError, match="ids must differ, 4 comes more than once"):
            collection.upsert(codes, ids=[4, 5, 4])
        with pytest.raises(InputError, match="must have 12 bits"):
            collection.add(random_codes(rng, 3, 13))
        assert content(collection) == before
        collection.add(codes[:0])
        collection.remove([])
        collection.upsert(codes[:0], ids=[])
        assert collection.info()["change"] == change


def test_the_largest_id_can_be_used_and_then_ids_must_be_given(tmp_path, rng):
    codes = random_codes(rng, 2, 12)
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(codes, ids=[2**63 - 2, 0])
        with pytest.raises(InputError, match="ids must be given"):
            collection.add(codes)
    with Collection.open(tmp_path / "c", writable=True) as collection:
        collection.seal()
        collection.add(codes, ids=[3, 2**62])
        collection.compact()
        assert collection.check()["next_id"] == 2**63 - 1
        assert collection.ids.tolist() == [0, 3, 2**62, 2**63 - 2]


def test_files_stay_few_and_grow_by_doubling(tmp_path, rng):
    with Collection.create(tmp_path / "c", 12) as collection:
        for n_adds in range(1, 40):
            collection.add(random_codes(rng, 40, 12))
            sizes = [s["items"] for s in collection.info()["segments"]]
            assert sizes == [40 << bit for bit in reversed(range(6)) if n_adds >> bit & 1]


def test_merges_stop_at_a_size_unless_compaction_is_asked_for(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(rules, "MERGE_BYTES", 2 * 100)
    with Collection.create(tmp_path / "c", 12) as collection:
        for _ in range(6):
            collection.add(random_codes(rng, 40, 12))
        assert [s["items"] for s in collection.info()["segments"]] == [80, 80, 80]
        collection.compact()
        assert [s["items"] for s in collection.info()["segments"]] == [240]
        assert len(files_of(tmp_path / "c")) == 1


def test_a_file_of_which_most_was_removed_is_written_anew_and_an_empty_one_dropped(tmp_path, rng):
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 100, 12))
        collection.remove(np.arange(50))
        assert collection.info()["removed"] == 50
        collection.remove([50])
        assert collection.info()["removed"] == 0
        assert files_of(tmp_path / "c") == ["2.seg"]
        collection.remove(np.arange(51, 100))
        assert files_of(tmp_path / "c") == []
        assert collection.add(random_codes(rng, 1, 12)).tolist() == [100]


def test_replacing_most_of_a_file_writes_it_anew(tmp_path, rng):
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 100, 12))
        for start in (0, 30):
            collection.upsert(random_codes(rng, 30, 12), ids=np.arange(start, start + 30))
        assert collection.info()["removed"] == 0
        assert len(collection.check()["segments"]) == len(files_of(tmp_path / "c")) == 1


def test_arrays_that_came_or_were_returned_may_be_changed(tmp_path, rng):
    with Collection.create(tmp_path / "c", 12) as collection:
        packed, given = np.packbits(rng.integers(0, 2, (10, 12)), axis=1), np.arange(20, 30)
        codes = BinaryCodes(packed, 12)
        before = as_dictionary(range(30), BinaryCodes(np.tile(packed, (3, 1)), 12))
        for ids in (collection.add(codes), collection.add(codes), given):
            if ids is given:
                collection.upsert(codes, ids)
            ids[:] = 7
        packed[:] = 0
        assert content(collection) == before
        collection.seal()
        assert content(collection) == before


def test_marks_of_removal_far_apart_come_back(tmp_path, rng):
    gone = np.array([0, 16383, 16384, 39999])
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 40_000, 12))
        collection.remove(gone[:2])
        collection.remove(gone[2:])
        assert collection.ids.tolist() == np.setdiff1d(np.arange(40_000), gone).tolist()
        with Collection.open(tmp_path / "c") as reader:
            assert np.array_equal(reader.ids, collection.ids)


def test_a_snapshot_is_a_collection_of_its_own(tmp_path, rng):
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 100, 12))
        collection.add(random_codes(rng, 5, 12))
        collection.remove([3, 101])
        before = content(collection)
        with Collection.open(tmp_path / "c") as reader:
            reader.snapshot(tmp_path / "linked")
            reader.snapshot(tmp_path / "copied", link=False)
        collection.compact()
        collection.remove(np.arange(50, 100))
        assert os.stat(tmp_path / "copied" / "segments" / "1.seg").st_nlink == 1
        for name in ("linked", "copied"):
            with Collection.open(tmp_path / name, writable=True) as copy:
                copy.check()
                assert content(copy) == before
                copy.add(random_codes(rng, 50, 12))
        with pytest.raises(InputError, match="must not hold a collection yet"):
            collection.snapshot(tmp_path / "linked")
        with pytest.raises(InputError, match="must not hold a collection yet"):
            collection.snapshot(tmp_path / "c")
        assert len(collection) == 53


def test_what_a_collection_tells_of_itself_fits_into_json(tmp_path, rng):
    with Collection.create(tmp_path / "c", 64) as collection:
        collection.add(random_codes(rng, 100, 64))
        collection.remove([5])
        collection.add(random_codes(rng, 2, 64))
        told = json.loads(json.dumps(collection.check()))
        assert told == collection.info()
        size = os.path.getsize(tmp_path / "c" / "segments" / "1.seg")
        segment = {"file": "segments/1.seg", "items": 99, "removed": 1, "bytes": size}
        assert told["segments"] == [segment]
        assert (told["items"], told["unsealed"], told["bits"], told["next_id"]) == (101, 2, 64, 102)
        assert repr(collection) == f"Collection({str(tmp_path / 'c')!r})"


def test_a_folder_that_holds_anything_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for write in (lambda: Collection.create(tmp_path, 8), lambda: HammingIndex(8).save(tmp_path)):
        with pytest.raises(InputError, match=r"holds notes\.txt"):
            write()
    assert os.listdir(tmp_path) == ["notes.txt"]
    with pytest.raises(InputError, match="is one"):
        Collection.create(tmp_path / "notes.txt", 8)
    with pytest.raises(InputError, match="there is no"):
        Collection.create(tmp_path / "no" / "where", 8)
    with pytest.raises(InputError, match="must hold a collection, there is no"):
        Collection.open(tmp_path)
    with pytest.raises(InputError, match="n_bits must be an integer from 1 to 4096"):
        Collection.create(tmp_path / "c", 0)
    with pytest.raises(InputError, match="kind must be one of"):
        Collection.create(tmp_path / "c", 8, kind="scam")
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_an_index_in_memory_needs_no_sqlite():
    """Collections ask for it when they are wanted."""
    source = "import sys; sys.modules['sqlite3'] = None; from rankbits.index import HammingIndex"
    subprocess.run([sys.executable, "-c", source], check=True)


def test_a_collection_is_not_created_twice(tmp_path):
    Collection.create(tmp_path / "c", 8).close()
    with pytest.raises(InputError, match=r"must not hold a collection yet.*use Collection\.open"):
        Collection.create(tmp_path / "c", 8)


def test_a_reader_changes_nothing(tmp_path, rng):
    Collection.create(tmp_path / "c", 8).close()
    with Collection.open(tmp_path / "c") as reader:
        for change in (
            lambda: reader.add(random_codes(rng, 1, 8)),
            lambda: reader.upsert(random_codes(rng, 1, 8), ids=[1]),
            lambda: reader.remove([]),
            reader.seal,
            reader.compact,
        ):
            with pytest.raises(InputError, match="open it with writable=True"):
                change()


def test_a_closed_collection_says_so(tmp_path, rng):
    collection = Collection.create(tmp_path / "c", 8)
    collection.close()
    collection.close()
    for use in (lambda: len(collection), lambda: collection.add(random_codes(rng, 1, 8))):
        with pytest.raises(InputError, match="is closed"):
            use()


def test_threads_may_share_a_reader_while_another_writes(tmp_path, rng):
    queries = random_codes(rng, 2, 12)
    failed = []
    with Collection.create(tmp_path / "c", 12, kind="scan") as collection:
        collection.add(random_codes(rng, 100, 12))
        with Collection.open(tmp_path / "c", kind="scan") as reader:

            def search():
                try:
                    for _ in range(20):
                        _, ids = reader.search(queries, 3)
                        assert (ids >= 0).all()
                except Exception as error:  # noqa: BLE001  a thread must tell
                    failed.append(error)

            threads = [threading.Thread(target=search) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(15):
                collection.add(random_codes(rng, 30, 12))
            for thread in threads:
                thread.join()
    assert failed == []


def test_without_verification_only_damage_inside_of_a_segment_goes_unnoticed(tmp_path, rng):
    with Collection.create(tmp_path / "c", 12) as collection:
        collection.add(random_codes(rng, 100, 12))
    path = tmp_path / "c" / "segments" / "1.seg"
    raw = bytearray(path.read_bytes())
    raw[4096] ^= 1
    path.write_bytes(raw)
    with Collection.open(tmp_path / "c", verify=False) as collection:
        assert len(collection) == 100
        with pytest.raises(FileFormatError, match=r"1\.seg is damaged: block 0, codes of rows 0"):
            collection.check()
    raw[8] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FileFormatError, match="header does not match"):
        Collection.open(tmp_path / "c", verify=False)


def test_a_collection_is_used_on_after_the_process_went_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Collection.create("c", 8) as collection:
        monkeypatch.chdir("/")
        collection.add(np.arange(3, dtype=np.uint8)[:, None])
        collection.seal()
        assert collection.info()["items"] == collection.check()["items"] == 3
        collection.snapshot(tmp_path / "copy")
        collection.compact()
    monkeypatch.chdir(tmp_path)
    with Collection.open("c") as collection:
        index = HammingIndex.load("copy")
        monkeypatch.chdir("/")
        assert collection.info()["items"] == len(index) == 3
        assert collection.folder == tmp_path / "c"
        assert collection.search(np.zeros((1, 1), np.uint8), 1)[1].tolist() == [[0]]
        assert len(index.codes()) == 3


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_files_have_the_permissions_that_the_umask_leaves(tmp_path, umask):
    before = os.umask(umask)
    try:
        with Collection.create(tmp_path / "c", 8) as collection:
            collection.add(np.arange(3, dtype=np.uint8)[:, None])
            collection.seal()
            collection.add(np.arange(3, dtype=np.uint8)[:, None])
            paths = list((tmp_path / "c").rglob("*"))
            modes = {path.name: path.stat().st_mode & 0o777 for path in paths if path.is_file()}
            collection.snapshot(tmp_path / "copy", link=False)
    finally:
        os.umask(before)
    assert {"collection.sqlite", "collection.sqlite-wal", "writer.lock"} < set(modes)
    assert set(modes.values()) == {0o666 & ~umask}
    folders = [tmp_path / "c", tmp_path / "c" / "segments", tmp_path / "copy"]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o777 & ~umask}
