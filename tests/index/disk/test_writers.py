"""Who may write, who is told that he may not, and what opening for writing leaves alone."""

import os
import stat
import threading

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection, HammingIndex
from rankbits.index.disk import building


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(building, "SEAL_AT", 40)


def codes(n, value=1):
    return BinaryCodes(np.full((n, 2), value, np.uint8), 16)


@pytest.fixture
def folder(tmp_path):
    with Collection.create(tmp_path / "c", 16) as collection:
        collection.add(codes(50))
    return tmp_path / "c"


def test_a_writer_whose_lock_file_was_deleted_is_told_before_anything_changes(folder):
    with Collection.open(folder, writable=True) as first:
        first.add(codes(3))
        os.remove(folder / "writer.lock")
        with Collection.open(folder, writable=True) as second:
            assert second.add(codes(60, 2)).tolist() == list(range(53, 113))
            for change in (lambda: first.add(codes(60, 3)), lambda: first.remove([0])):
                with pytest.raises(InputError, match=r"opened again.*nothing was changed"):
                    change()
            assert second.add(codes(1)).tolist() == [113]
    with Collection.open(folder) as reader:
        reader.check()
        assert len(reader) == 114


def test_two_writers_with_a_lock_each_never_get_the_same_ids(folder):
    """As if the file system did not know locks: the number of the change decides."""
    with Collection.open(folder, writable=True) as first:
        first._database._lock.release()
        with Collection.open(folder, writable=True) as second:
            first._database._lock.require = lambda: None
            second.add(codes(2, 2))
            with pytest.raises(InputError, match=r"another process has written change \d+"):
                first.add(codes(2, 3))
            assert len(second) == 52
        first._database._lock.release = lambda: None


def in_child(action):
    """What an action in a forked process says, at most 200 characters."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = action()
        except BaseException as error:  # noqa: BLE001  a fork must not return
            said = f"{type(error).__name__}: {error}"
        os.write(writer, str(said).encode()[:200])
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_is_told_to_open_again(folder):
    with Collection.open(folder, writable=True) as collection:
        for action in (lambda: collection.add(codes(1)), lambda: collection.refresh().ids):
            assert "open it again after a fork" in in_child(action)
        assert in_child(collection.close) == "None"
        with pytest.raises(InputError, match="one writer at a time"):
            Collection.open(folder, writable=True)
        assert collection.add(codes(1)).tolist() == [50]
    Collection.open(folder, writable=True).close()


def test_a_file_that_a_second_writer_took_away_is_missed_before_the_commit(folder, monkeypatch):
    with Collection.open(folder, writable=True) as collection:
        built = building.read_segment

        def taken_away(path, **options):
            segment = built(path, **options)
            path.unlink()
            return segment

        monkeypatch.setattr(building, "read_segment", taken_away)
        with pytest.raises(InputError, match="another process is writing; nothing"):
            collection.add(codes(80))
        monkeypatch.undo()
        assert len(collection) == len(HammingIndex.load(folder)) == 50


def test_only_files_of_its_own_making_are_swept(folder, tmp_path):
    segments, outside = folder / "segments", tmp_path / "outside"
    outside.write_bytes(b"elsewhere")
    foreign = ["notes.segmentation.txt", "12.seg.bak", "a.seg", "012.seg", ".seg", ".9.seg.tmp"]
    for name in foreign:
        (segments / name).write_bytes(b"not ours")
    (segments / "77.seg").symlink_to(outside)
    (segments / "78.seg").mkdir()
    for name in ("79.seg", ".80.seg.0123abcd"):
        (segments / name).write_bytes(b"left by a kill")
    with Collection.open(folder, writable=True) as collection:
        collection.add(codes(90))
        collection.compact()
        left = set(os.listdir(segments))
    named = {os.path.basename(entry["file"]) for entry in HammingIndexInfo(folder)}
    assert left == {*foreign, "77.seg", "78.seg", *named}
    assert outside.read_bytes() == b"elsewhere"


def HammingIndexInfo(folder):
    with Collection.open(folder) as reader:
        return reader.info()["segments"]


def test_a_folder_of_segments_elsewhere_is_not_written_through(folder, tmp_path):
    os.rename(folder / "segments", tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "99.seg").write_bytes(b"of somebody")
    (folder / "segments").symlink_to(tmp_path / "elsewhere")
    for write in (
        lambda: Collection.open(folder, writable=True),
        lambda: HammingIndex(16).save(folder),
    ):
        with pytest.raises(InputError, match="it is a link"):
            write()
    assert (tmp_path / "elsewhere" / "99.seg").exists()
    assert len(HammingIndex.load(folder)) == 50


@pytest.mark.parametrize("name", ["collection.sqlite-wal", "writer.lock", "segments/1.seg"])
def test_pipes_and_links_in_place_of_files_are_refused_at_once(folder, tmp_path, name):
    path = folder / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises((InputError, FileFormatError)):
        Collection.open(folder, writable=True)
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises((InputError, FileFormatError, Exception), match=r"link|must be|symbolic"):
        Collection.open(folder, writable=True)


def test_a_truncated_file_is_an_error_before_the_search_reads_it(folder):
    index = HammingIndex.load(folder)
    safe = HammingIndex.load(folder, mmap=False)
    (segment,) = (folder / "segments").glob("*.seg")
    os.truncate(segment, 4096)
    for use in (lambda: index.search(codes(1), 3), lambda: index.codes([1])):
        with pytest.raises(FileFormatError, match="was truncated while it was in use"):
            use()
    assert safe.search(codes(1), 3)[0].tolist() == [[0, 0, 0]]


def test_files_have_the_mode_that_the_umask_leaves_whatever_threads_do(tmp_path):
    before = os.umask(0o022)
    try:
        index = HammingIndex(16)
        index.add(codes(50))
        threads = [threading.Thread(target=index.save, args=(tmp_path / str(n),)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o644}
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
