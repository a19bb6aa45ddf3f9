"""Whatever lies in a folder, a command leaves what rankbits did not write byte for byte."""

import os
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankbits import _folders, methods
from rankbits._folders import remove_own, write_folder_atomically
from rankbits._inventory import NAME, find_foreign, take_inventory, write_own
from rankbits.compress._folder import _WORK, foreign_finder
from rankbits.errors import InputError
from rankbits.index import HammingIndex
from rankbits.methods import persistence


def write_model(folder, seed=0):
    methods.get("lsh", n_bits=8, random_state=seed).fit(np.eye(4)).save(folder)


def write_result(folder):
    """A folder as compress leaves it, as far as replacing goes."""
    folder.mkdir()
    write_model(folder / "model")
    index = HammingIndex(8)
    index.add(np.arange(5, dtype=np.uint8)[:, None])
    index.save(folder / "index")
    (folder / "README.md").write_text("commands")
    take_inventory(folder)


KINDS = {
    "model": (write_model, persistence.find_foreign),
    "result": (write_result, foreign_finder(overwrite=False)),
    "overwritten result": (write_result, foreign_finder(overwrite=True)),
    "inventory": (write_result, find_foreign),
}
OWN_NAMES = [
    "model.json",
    "model.safetensors",
    "README.md",
    "index/writer.lock",
    "model/model.json",
]
NAMES = st.sampled_from(
    [
        "notes.txt", "photos/cat.jpg", "model/notes.txt", "index/thesis.tex", ".hidden", "a/b/c",
        "index/segments/mine.seg", "index.html", "vectors.npy", "README.md.bak", "model/sub/x",
    ]
)  # fmt: skip
FOREIGN = st.dictionaries(
    NAMES, st.sampled_from(["file", "link", "folder", "pipe"]), min_size=1, max_size=3
)


def put(folder, name, kind, elsewhere):
    path = folder / name
    if os.path.lexists(path) or any(p.is_file() for p in path.parents):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        path.write_bytes(os.urandom(9))
    elif kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)


def everything_in(folder):
    """What every path is, and the bytes of files."""
    content = {}
    for path in sorted(folder.rglob("*")):
        mode = os.lstat(path).st_mode
        is_file = stat.S_ISREG(mode)
        content[str(path)] = (stat.S_IFMT(mode), path.read_bytes() if is_file else b"")
    return content


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    place = tmp_path_factory.mktemp("originals")
    for name, (write, _) in KINDS.items():
        write(place / name)
    return place


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(FOREIGN)
def test_a_folder_with_anything_foreign_is_refused_and_stays_as_it_is(
    originals, tmp_path_factory, kind, foreign
):
    tmp_path = tmp_path_factory.mktemp("foreign")
    (tmp_path / "elsewhere").write_text("not to be touched")
    folder = tmp_path / "out"
    shutil.copytree(originals / kind, folder)
    for name, what in foreign.items():
        put(folder, name, what, tmp_path / "elsewhere")
    before = everything_in(tmp_path)
    with pytest.raises(InputError, match="holds something else"), \
            write_folder_atomically(folder, KINDS[kind][1]):  # fmt: skip
        raise AssertionError("it began to write")
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_our_own_and_unchanged_is_replaced(originals, tmp_path, kind):
    folder = tmp_path / "out"
    shutil.copytree(originals / kind, folder)
    with write_folder_atomically(folder, KINDS[kind][1]) as place:
        (place / "new").touch()
    assert os.listdir(folder) == ["new"]
    assert os.listdir(tmp_path) == ["out"]


def change_index(folder):
    from rankbits.index import Collection

    with Collection.open(folder / "index", writable=True) as collection:
        collection.add(np.array([[77]], np.uint8))
        collection.seal()


CHANGES = {
    "README.md": lambda folder: (folder / "README.md").write_text("my own words"),
    "codes": lambda folder: (folder / "model" / "model.json").write_bytes(b"{}"),
    "gone": lambda folder: (folder / "README.md").unlink(),
    "index": change_index,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_result_that_was_changed_is_replaced_only_if_that_is_said(originals, tmp_path, change):
    folder = tmp_path / "out"
    shutil.copytree(originals / "result", folder)
    CHANGES[change](folder)
    before = everything_in(folder)
    with pytest.raises(InputError, match="--overwrite"), \
            write_folder_atomically(folder, foreign_finder(overwrite=False)):  # fmt: skip
        raise AssertionError("it began to write")
    assert everything_in(folder) == before
    with write_folder_atomically(folder, foreign_finder(overwrite=True)) as place:
        (place / "new").touch()
    assert os.listdir(folder) == ["new"]


def test_a_change_that_is_only_in_the_log_of_an_index_counts(originals, tmp_path):
    """As after a kill: the acknowledged change is in collection.sqlite-wal alone."""
    from rankbits.index import Collection

    folder = tmp_path / "out"
    shutil.copytree(originals / "result", folder)
    collection = Collection.open(folder / "index", writable=True)
    collection.add(np.array([[77]], np.uint8))
    shutil.copytree(folder, tmp_path / "killed")
    collection.close()
    assert "collection.sqlite-wal" in find_foreign(tmp_path / "killed")


def test_an_index_that_was_only_read_is_not_changed(originals, tmp_path):
    from rankbits.index import Collection

    folder = tmp_path / "out"
    shutil.copytree(originals / "result", folder)
    with Collection.open(folder / "index") as collection:
        assert len(collection) == 5
        assert find_foreign(folder) is None
    Collection.open(folder / "index", writable=True).close()
    HammingIndex.load(folder / "index")
    assert find_foreign(folder) is None


def test_what_comes_while_the_new_folder_is_written_stays(originals, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(originals / "result", folder)

    def write():
        with write_folder_atomically(folder, find_foreign) as place:
            (place / "new").touch()
            (folder / "notes.txt").write_text("written meanwhile")

    with pytest.raises(InputError, match=r"holds something else, notes\.txt"):
        write()
    assert (folder / "notes.txt").read_text() == "written meanwhile"
    assert (folder / "README.md").exists()
    assert os.listdir(tmp_path) == ["out"]


def test_the_folder_in_which_a_process_works_is_not_replaced(tmp_path, monkeypatch):
    write_model(tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    with pytest.raises(InputError, match="a mount point or the folder in which this process works"):
        write_model(".", seed=1)
    write_model("../other", seed=1)


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "model")
    write_model(tmp_path / "other")
    (tmp_path / "model").mkdir()
    with pytest.raises(InputError, match="model is read-only"):
        write_model(tmp_path / "model")


def test_a_link_is_followed_to_the_folder_and_nothing_behind_links_in_it_is_touched(tmp_path):
    write_model(tmp_path / "model")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    write_model(tmp_path / "link", seed=1)
    assert (tmp_path / "link").is_symlink()
    shutil.move(tmp_path / "model" / "model.json", tmp_path / "elsewhere.json")
    (tmp_path / "model" / "model.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InputError, match=r"holds something else, model\.json"):
        write_model(tmp_path / "model", seed=2)
    assert (tmp_path / "model" / "model.json").is_symlink()


def test_own_files_among_others_are_replaced_and_no_others(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    write_own(tmp_path, {"index.html": b"first"})
    write_own(tmp_path, {"index.html": b"second", "tables.md": b"table"})
    assert (tmp_path / "index.html").read_bytes() == b"second"
    (tmp_path / "tables.md").write_text("my table")
    (tmp_path / "cells.csv").write_text("my cells")
    before = everything_in(tmp_path)
    for name in ("tables.md", "cells.csv", "notes.txt"):
        with pytest.raises(InputError, match=f"{name} would be replaced"):
            write_own(tmp_path, {"index.html": b"third", name: b"ours"})
    assert everything_in(tmp_path) == before


def test_a_link_under_a_name_of_ours_is_not_written_through(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "index.html").symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(InputError, match="would be replaced"):
        write_own(tmp_path, {"index.html": b"page"})
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_kill_between_two_own_files_leaves_none_that_is_taken_for_the_users(
    tmp_path, monkeypatch
):
    from rankbits import _inventory

    write_own(tmp_path, {"a": b"old a", "b": b"old b"})
    real = _inventory.write_atomically

    def dying(path, **options):
        if path.name == "b":
            raise KeyboardInterrupt
        return real(path, **options)

    monkeypatch.setattr(_inventory, "write_atomically", dying)
    with pytest.raises(KeyboardInterrupt):
        write_own(tmp_path, {"a": b"new a", "b": b"new b"})
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"new a"
    write_own(tmp_path, {"a": b"newest a", "b": b"newest b"})
    assert (tmp_path / "b").read_bytes() == b"newest b"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"files": {}}', b"\xff", b'{"format": "rankbits files"}']
)
def test_a_folder_whose_inventory_is_damaged_is_refused(originals, tmp_path, content):
    folder = tmp_path / "out"
    shutil.copytree(originals / "result", folder)
    (folder / NAME).write_bytes(content)
    for overwrite in (False, True):
        assert "holds something else" in foreign_finder(overwrite=overwrite)(folder)


def test_a_work_folder_loses_what_is_of_the_run_and_nothing_else(tmp_path):
    work = tmp_path / ".out.work"
    own = [
        "cell-itq-8-0123456789ab.json", "items-0123456789ab.npy",
        "model-itq-8-0123456789ab.model/model.json", ".cell-0123456789ab.json.01234567",
        "part0-model-itq-8-0123456789ab.model/model.safetensors",
        ".model-itq-8-0123456789ab.model.01234567.part/model.json",
    ]  # fmt: skip
    foreign = ["notes.txt", "model-itq-8-0123456789ab.model/notes.txt", "sub/cell.json"]
    for name in [*own, *foreign]:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    remove_own(work, _WORK)
    left = sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file())
    assert left == sorted(foreign)
    for name in foreign:
        (work / name).unlink()
    remove_own(work, _WORK)
    assert not (work / "sub").exists()


def test_a_folder_that_a_kill_left_aside_is_found_by_readers(originals, tmp_path):
    shutil.copytree(originals / "result", tmp_path / "out")
    os.rename(tmp_path / "out", _folders._backup(tmp_path / "out"))
    assert _folders.present_folder(tmp_path / "out") == tmp_path / ".out.old"


KILLED_AT_EVERY_STEP = """
import os, sys
from pathlib import Path
from rankbits import _folders
from rankbits._inventory import find_foreign, take_inventory

folder = Path(sys.argv[1])
STEPS = ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync", "open", "close")

def write(content):
    with _folders.write_folder_atomically(folder, find_foreign) as place:
        (place / "sub").mkdir()
        (place / "sub" / "content").write_text(content)
        take_inventory(place)

def die_at(n):
    left = [n]
    def dying(call):
        def wrapped(*args, **options):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return call(*args, **options)
        return wrapped
    for step in STEPS:
        setattr(os, step, dying(getattr(os, step)))

n, was_killed = 0, True
while was_killed:
    write("old")
    if os.fork() == 0:
        die_at(n)
        write("new")
        os._exit(0)
    was_killed = os.wait()[1] != 0
    present = _folders.present_folder(folder)
    assert find_foreign(present) is None, n
    assert (present / "sub" / "content").read_text() in ("old", "new"), n
    n += 1
write("last")
assert os.listdir(folder.parent) == [folder.name]
print(n)
"""


def test_a_kill_at_every_step_of_replacing_leaves_the_old_folder_or_the_new_one(tmp_path):
    command = [sys.executable, "-c", KILLED_AT_EVERY_STEP, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
