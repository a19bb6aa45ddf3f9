"""Kill a writer of a collection over and over: what it acknowledged is there, and nothing half.

    python tests/durability/killing.py --every 1 --random 1000 --seed 0
    python tests/durability/killing.py --every 1 --seed 0 --call 57   # repeats two kills

`--every N` kills at every N-th call that changes a file (write, fsync, rename, unlink, ...), before
the call and in the midst of it, over a script of changes of every sort; storage.c counts the calls,
those of SQLite too. `--random N` kills N times after a random time. A child tells each change that
returned through a pipe. After the kill the collection must hold the changes that were told, or
these and the next one; it must pass its check and take more changes.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import internals
import numpy as np
from changes import (
    N_BITS,
    check_writer,
    content_at,
    content_of,
    make_change,
    random_script,
)
from storage import KILL_BEFORE, KILL_WITHIN, load_storage
from violations import Report, Violation

from rankbits.errors import InputError, RankbitsError
from rankbits.index import Collection

N_CHANGES = 24


def write(folder, changes, tell):
    """The child: make each change, and tell so when it returned."""
    if not (folder / internals.DATABASE).exists():
        Collection.create(folder, N_BITS).close()
    tell()
    collection = Collection.open(folder, writable=True)
    for change in changes:
        collection = make_change(collection, change)
        tell()
    collection.close()


def run_child(folder, changes, prepare, seconds=None):
    """Run a child that dies. Changes that it told, and whether it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prepare()
            write(folder, changes, lambda: os.write(writer, b"."))
        except BaseException:  # noqa: BLE001  a fork must not return
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    os.close(writer)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    told = b""
    while more := os.read(reader, 4096):
        told += more
    os.close(reader)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise Violation("a writer that nobody disturbed failed: see above")
    return len(told), os.WIFSIGNALED(status)


def look(folder, n_told, changes, models):
    """What is in the folder, which must be one of two states."""
    try:
        model = read_survivor(folder, n_told, models)
        check_writer(folder, model)
        check_targets(folder, n_told, changes, models)
    except RankbitsError as error:
        raise Violation(f"it cannot be used any more: {error}") from error
    return model


def read_survivor(folder, n_told, models):
    if n_told == 0:  # not even the creation was acknowledged
        try:
            Collection.open(folder).close()
        except InputError as error:
            if not internals.says_unfinished(str(error)):
                raise
            Collection.create(folder, N_BITS).close()
    with Collection.open(folder) as reader:
        model = content_of(reader)
    allowed = models[max(n_told - 1, 0) : n_told + 1]
    if model not in allowed:
        sizes = [len(one) for one in allowed]
        raise Violation(f"the content is another: {len(model)} items instead of {sizes}")
    return model


def check_targets(folder, n_told, changes, models):
    for number, change in enumerate(changes):
        path = change.target(folder)
        if change.kind != "snapshot" or not path.exists():
            continue
        try:
            model = content_at(path)
        except InputError:
            if number + 1 < n_told:
                raise
        else:
            if model != models[number]:
                raise Violation(f"a snapshot holds something else: number {number}")


def kill_at_every_call(base, options, seed, library, report):
    changes, models = random_script(np.random.default_rng(seed), {}, N_CHANGES)
    call = options.call or 1 + seed % options.every
    was_killed = True
    while was_killed:
        for plan in (KILL_BEFORE, KILL_WITHIN):
            folder = base / "every" / "collection"
            folder.parent.mkdir()

            def prepare(plan=plan, folder=folder, call=call):
                library.storage_watch(os.fsencode(folder.parent))
                library.storage_plan(plan, call, 0)

            try:
                n_told, was_killed = run_child(folder, changes, prepare)
                if was_killed:
                    look(folder, n_told, changes, models)
                    report.count("kills_at_calls")
            except Violation as violation:
                command = f"--every 1 --seed {seed} --call {call}"
                tell_violation(report, violation, f"seed {seed}, call {call}, plan {plan}", command)
            shutil.rmtree(folder.parent)
        if options.call:
            return
        call += options.every
    report.count("calls", call)


def kill_at_random(base, n, seed, report):
    rng = np.random.default_rng(seed)
    folder, model, n_kills = base / "random" / "collection", {}, 0
    folder.parent.mkdir()
    while n_kills < n:
        changes, models = random_script(rng, model, 100)
        seconds = float(rng.uniform(0.0, 0.1))
        try:
            n_told, was_killed = run_child(folder, changes, lambda: None, seconds)
            model = look(folder, n_told, changes, models)
        except Violation as violation:
            command = f"--random {n} --seed {seed}"
            tell_violation(report, violation, f"seed {seed}, kill {n_kills}", command)
            shutil.rmtree(folder, ignore_errors=True)
            model, n_told, was_killed = {}, 0, True
        for path in folder.parent.glob("snapshot-*"):
            shutil.rmtree(path)
        n_kills += was_killed
        report.count("told", n_told)
        report.count("kills_at_random", was_killed)
    shutil.rmtree(folder.parent)


def tell_violation(report, violation, where, command):
    sort, _, detail = str(violation).partition(":")
    repeat = f"python tests/durability/killing.py {command}"
    report.violation(sort, f"{where}:{detail}", repeat)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--scripts", type=int, default=1, help="how many seeds, from --seed on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--call", type=int, help="only this call")
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    library = load_storage()
    internals.seal_early()
    report = Report("killing", goes_on=options.keep_going)
    with tempfile.TemporaryDirectory(dir=options.folder) as base:
        base = Path(base).resolve()
        for seed in range(options.seed, options.seed + options.scripts if options.every else 0):
            kill_at_every_call(base, options, seed, library, report)
        if options.random:
            kill_at_random(base, options.random, options.seed, report)
    report.finish()


if __name__ == "__main__":
    main()
