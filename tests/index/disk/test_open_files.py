"""What becomes of an open collection whose files are deleted, renamed or replaced behind it.

The files are changed by other processes, as they would be: one that opens and closes a database
takes SQLite's locks away from its own process.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from rankbits.errors import FileFormatError, UnknownOutcomeError
from rankbits.index import Collection
from rankbits.index.disk import tables

CODES = np.arange(40, dtype=np.uint8).reshape(20, 2)
DATABASE = "collection.sqlite"


@pytest.fixture
def folder(tmp_path):
    """A collection; beside it another one, and a copy of the first as it was two changes before."""
    folder = tmp_path / "one"
    with Collection.create(folder, 16) as collection:
        collection.add(CODES[:5])
    shutil.copytree(folder, tmp_path / "older")
    with Collection.open(folder, writable=True) as collection:
        collection.add(CODES[5:7])
        collection.add(CODES[7:9])
    with Collection.create(tmp_path / "other", 16) as collection:
        for code in CODES[::-1]:
            collection.add(code[None])
    return folder


def run(command, folder):
    """Run a command of the shell beside the collection, which is called `one`."""
    subprocess.run(command, shell=True, check=True, cwd=folder.parent)


REPLACEMENTS = {
    "all files of the database are deleted": f"rm one/{DATABASE}*",
    "the database is deleted": f"rm one/{DATABASE}",
    "the log is deleted": f"rm one/{DATABASE}-wal",
    "the index of the log is deleted": f"rm one/{DATABASE}-shm",
    "the log is replaced": f"cp one/{DATABASE}-wal x; mv x one/{DATABASE}-wal",
    "the database is replaced by a copy": f"cp one/{DATABASE} x; mv x one/{DATABASE}",
    "the folder is renamed": "mv one two",
    "the folder is replaced by another collection": "mv one two; cp -r other one",
}
WRITTEN_OVER = {
    "by another collection": f"cp other/{DATABASE} one/{DATABASE}",
    "by an older copy": f"cp older/{DATABASE} one/{DATABASE}",
}


@pytest.mark.parametrize("command", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_a_writer_acknowledges_nothing_once_its_files_are_not_at_their_names(folder, command):
    with Collection.open(folder, writable=True) as collection:
        collection.add(CODES[9:10])
        run(command, folder)
        for change in (lambda: collection.add(CODES[10:]), lambda: collection.remove([1])):
            with pytest.raises(
                FileFormatError, match=r"has to be opened again: .* nothing was changed"
            ):
                change()


@pytest.mark.parametrize("command", WRITTEN_OVER.values(), ids=WRITTEN_OVER)
def test_a_writer_whose_database_is_written_over_acknowledges_nothing(folder, command):
    with Collection.open(folder, writable=True) as collection:
        run(command, folder)
        with pytest.raises(
            FileFormatError, match=r"another program has written to its collection\.sqlit"
        ):
            collection.add(CODES[9:])


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_what_was_acknowledged_before_a_log_was_deleted_is_there_after_closing(folder, ending):
    with Collection.open(folder, writable=True) as collection:
        collection.add(CODES[9:12])
        run(f"rm one/{DATABASE}{ending}", folder)
        with pytest.raises(FileFormatError, match="has to be opened again"):
            collection.add(CODES[12:])
    with Collection.open(folder, writable=True) as collection:
        collection.check()
        np.testing.assert_array_equal(collection.codes(np.arange(12)).packed, CODES[:12])
        collection.add(CODES[12:])


def test_files_that_vanish_while_a_change_is_committed_leave_its_outcome_open(folder):
    write_state = tables.write_state

    def delete_and_write(*arguments):
        run(f"rm one/{DATABASE}*", folder)
        write_state(*arguments)

    with (
        Collection.open(folder, writable=True) as collection,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(tables, "write_state", delete_and_write)
        with pytest.raises(
            UnknownOutcomeError, match=r"collection\.sqlite was deleted or replaced"
        ):
            collection.add(CODES[9:])


@pytest.mark.parametrize("command", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_a_reader_whose_files_are_not_at_their_names_is_told_so(folder, command):
    with Collection.open(folder, writable=True), Collection.open(folder) as reader:
        assert len(reader) == 9
        run(command, folder)
        with pytest.raises(FileFormatError, match=r"opened again: .*deleted or replaced since"):
            reader.search(CODES[:1], k=1)


def test_a_reader_sees_the_changes_that_were_written_over_its_database(folder):
    with Collection.open(folder) as reader:
        assert len(reader) == 9
        run(WRITTEN_OVER["by another collection"], folder)
        np.testing.assert_array_equal(reader.codes(reader.ids).packed, CODES[::-1])


def test_a_reader_does_not_go_back_to_an_older_database(folder):
    with Collection.open(folder) as reader:
        assert len(reader) == 9
        run(WRITTEN_OVER["by an older copy"], folder)
        with pytest.raises(
            FileFormatError, match=r"an older collection\.sqlite was put in its place"
        ):
            reader.search(CODES[:1], k=1)


def test_a_reader_goes_on_when_its_writer_moves_the_log_into_the_database(folder):
    with Collection.open(folder) as reader:
        for n in range(9, 12):
            with Collection.open(folder, writable=True) as writer:
                writer.add(CODES[n : n + 1])
                writer.seal()
                writer._database._connection.empty_log()
            assert len(reader) == n + 1


def as_nobody(call):
    """The exit code of a process without rights that calls a function."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            code = call()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.unsanitized
@pytest.mark.skipif(os.getuid() != 0, reason="needs a user without rights")
def test_a_database_that_opens_only_to_be_read_is_not_open_to_write(folder):
    """What SQLite may not open to write it opens to read, and does not say so."""
    public = Path(tempfile.mkdtemp())  # those of pytest are closed to others
    folder = shutil.copytree(folder, public / "one")
    for path in (public, folder, folder / "segments"):
        path.chmod(0o777)
    (folder / "writer.lock").chmod(0o666)
    (folder / DATABASE).chmod(0o444)

    def open_to_write():
        try:
            Collection.open(folder, writable=True)
        except Exception as error:  # noqa: BLE001  another process: told by its exit code
            return 7 if "could not be opened: attempt to write a readonly" in str(error) else 8
        return 9

    try:
        assert as_nobody(open_to_write) == 7
    finally:
        shutil.rmtree(public)
