"""Power loss: record the writes and syncs of a script, then see what a cut at any moment leaves.

    python tests/durability/power_loss.py --seed 0
    python tests/durability/power_loss.py --seed 0 --call 57   # the states after one call

A writer runs a script (create, changes of every sort, snapshots, saves into new and existing
folders) with storage.c recording. Every prefix of the record is replayed on a model of a disk:

- Data written to a file since its last fsync may be there, be missing, be torn (any subset of
  its 512-byte sectors) or be there without what was written before it. Where a missing write would
  have made the file longer, the file ends earlier or has zeros. Truncations count as writes.
- Names (create, mkdir, rename, link, unlink) that were changed since the last fsync of their folder
  are there up to some moment and missing from then on: any prefix. Journalling file systems
  (ext4, XFS, btrfs) write metadata operations in the order in which they were made, so a later
  one is never there without an earlier one; an fsync of a folder therefore also brings all
  operations to the disk that were made before the last one in that folder. An fsync of a file is
  not taken to bring its name along, although most file systems do. `--unordered` takes any subset
  of them instead, which is harsher than any file system that a collection should be kept on.
- SQLite's -shm file never survives; it is rebuilt from the -wal file.

For each prefix: nothing of what was not synced, all of it, names without data, data without names,
and random choices. In each state, what was acknowledged is there, and the change that was under
way is there as a whole or not at all; the collection passes its check and can be changed. A
creation, snapshot or copy that was not acknowledged may be absent: then opening is an InputError
that says so, and creating again works.
"""

import argparse
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import internals
import numpy as np
from changes import (
    N_BITS,
    check_writer,
    content_of,
    make_change,
    random_change,
)
from disk_model import FOLDER, Disk
from storage import load_storage, read_trace
from violations import Report, Violation

from rankbits.errors import InputError, RankbitsError
from rankbits.index import Collection

KINDS = ("add", "seal", "upsert", "snapshot", "add", "remove", "copy", "compact", "save", "add")


# The script


def record(place, trace, steps, library, *, is_synced):
    """Run the steps in a child: create first, then each change, with marks around each."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if not is_synced:
                os.fsync = lambda fd: None  # shows that this tool sees what it should
            library.storage_watch(os.fsencode(place))
            library.storage_record(os.fsencode(trace))
            run_steps(place / "collection", steps, library)
            status = 0
        finally:
            os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise SystemExit("the script to be recorded failed")
    library.storage_watch(b"")
    return read_trace(trace)


def run_steps(folder, steps, library):
    library.storage_mark(b"begin")
    collection = Collection.create(folder, N_BITS)
    library.storage_mark(b"end")
    for change in steps:
        library.storage_mark(b"begin")
        collection = make_change(collection, change)
        library.storage_mark(b"end")
    library.storage_mark(b"close")
    collection.close()


def script(seed):
    """Changes of each kind, and the model after each."""
    rng = np.random.default_rng(seed)
    kinds = [*KINDS, *rng.permutation(KINDS), *rng.permutation(KINDS)]
    steps, models = [], [{}]
    for number, kind in enumerate(kinds):
        steps.append(random_change(rng, models[-1], str(kind) if models[-1] else "add", number))
        models.append(steps[-1].applied(models[-1]))
    return steps, models


# What must hold


class Checker:
    """Looks at states of folders, each different one once."""

    def __init__(self, base, steps, models, report):
        self._place, self._steps, self._models, self._report = base, steps, models, report
        self._seen = set()

    def check(self, names, content_of_file, n_begun, n_ended):
        """One state of the whole disk, folder by folder: they share no file that changes."""
        contents = {}
        for path, file in names.items():
            if file is not FOLDER and not path.endswith("-shm"):
                contents[path] = contents.get(path) or content_of_file(file)
        for folder, models, is_sure in self._promises(n_begun, n_ended):
            files = {
                path: None if names[path] is FOLDER else contents[path]
                for path in sorted(names)
                if (path == folder or path.startswith(f"{folder}/")) and not path.endswith("-shm")
            }
            self._check_folder(folder, files, models, is_sure=is_sure)

    def _promises(self, n_begun, n_ended):
        """Folders, the contents that each may have, and whether it must be there."""
        if n_begun:
            last = max(n_ended - 1, 0)
            yield "collection", self._models[last : max(n_begun, 1)], n_ended > 0
        for number, change in enumerate(self._steps[: n_begun - 1] if n_begun else ()):
            if change.kind in ("snapshot", "copy"):
                is_sure = number + 1 < n_ended
                yield f"{change.kind}-{change.number}", [self._models[number]], is_sure

    def _check_folder(self, folder, files, models, *, is_sure):
        key = hashlib.blake2b(repr((folder, is_sure, list(map(id, models)))).encode())
        for path, data in files.items():
            key.update(repr((path, data is None, len(data or b""))).encode())
            key.update(data or b"")
        if key.digest() in self._seen:
            return
        self._seen.add(key.digest())
        self._report.count("distinct_folders")
        place = self._place / folder
        self._build(files)
        try:
            model = self._open(place, models, is_sure=is_sure)
            if model is not None:
                check_writer(place, model)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _build(self, files):
        for path, data in files.items():
            if data is None:
                (self._place / path).mkdir()
            else:
                (self._place / path).write_bytes(data)

    def _open(self, place, models, *, is_sure):
        """What is there; None if that is nothing, and it may be nothing."""
        try:
            with Collection.open(place) as reader:
                model = content_of(reader)
                reader.check()
        except RankbitsError as error:
            if is_sure:
                raise Violation(f"what was acknowledged cannot be opened: {error}") from error
            require_absent(place, error)
            self._report.count("absent")
            return None
        if model not in models:
            raise Violation(f"the content is another: {len(model)} items")
        return model


def require_absent(place, error):
    """What opening says where nothing was acknowledged; creating must work then."""
    if not isinstance(error, InputError) or not internals.says_unfinished(str(error)):
        raise Violation(f"a creation that was cut reads as: {error}") from error
    try:
        with Collection.create(place, N_BITS) as collection:
            collection.add(np.zeros((1, 3), np.uint8))
            collection.check()
    except RankbitsError as second:
        raise Violation(f"a creation that was cut cannot be repeated: {second}") from second


def replay(calls, root, checker, options, report):
    """Cut the power after every call, and before the first."""
    disk, n_begun, n_ended, number = Disk(str(root)), 0, 0, 0
    for call in calls:
        if call.name == "mark":
            n_begun, n_ended = n_begun + (call.path == "begin"), n_ended + (call.path == "end")
        else:
            number += 1
            disk.apply(call)
        if options.call not in (None, number):
            continue
        rng = np.random.default_rng([options.seed, number, n_ended])
        for names, content in disk.states(rng, options.random, is_ordered=not options.unordered):
            report.count("states")
            try:
                checker.check(names, content, n_begun, n_ended)
            except Violation as violation:
                sort, _, detail = str(violation).partition(":")
                what = f"after call {number} ({call.name} {call.path}), {n_ended} acknowledged"
                command = "python tests/durability/power_loss.py"
                model = f"--random {options.random}{' --unordered' * options.unordered}"
                repeat = f"{command} --seed {options.seed} --call {number} {model}"
                report.violation(sort, f"{what}:{detail}", repeat)
    require_same(disk, root)
    return number


def require_same(disk, root):
    """With nothing lost, the model must hold what the real folder holds: the trace has no gaps."""
    for path, file in disk.names.items():
        if file is not FOLDER and not path.endswith("-shm"):
            assert (root / path).read_bytes() == file.current, f"the trace lacks writes to {path}"
    real = {str(path.relative_to(root)) for path in root.rglob("*")}
    assert real == set(disk.names), f"the trace lacks names: {sorted(real ^ set(disk.names))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scripts", type=int, default=1, help="how many seeds, from --seed on")
    parser.add_argument("--random", type=int, default=6, help="random states for each call")
    parser.add_argument("--call", type=int, help="only the states after this call")
    parser.add_argument("--steps", type=int, default=None, help="only so many changes")
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--unordered", action="store_true", help="any subset of names, as on ext2")
    parser.add_argument("--without-sync", action="store_true", help="must be found out")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    library = load_storage()
    internals.seal_early()
    report = Report("power_loss", goes_on=options.keep_going)
    for seed in range(options.seed, options.seed + options.scripts):
        options.seed = seed
        with tempfile.TemporaryDirectory(dir=options.folder) as base:
            base = Path(base).resolve()
            for name in ("recorded", "states"):
                (base / name).mkdir()
            steps, models = script(seed)
            steps = steps[: options.steps]
            recorded = base / "recorded"
            is_synced = not options.without_sync
            calls = record(recorded, base / "trace", steps, library, is_synced=is_synced)
            checker = Checker(base / "states", steps, models, report)
            report.count("calls", replay(calls, recorded, checker, options, report))
    report.finish()


if __name__ == "__main__":
    main()
