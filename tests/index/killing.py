"""Kill a writer of a collection over and over: what it had acknowledged is there, and nothing half.

    python tests/index/killing.py --every 1 --random 1000 --seed 0

`--every N` kills at every N-th call that changes a file (write, fsync, rename, unlink, ...), before
the call and in the midst of it, over a script of changes of every sort; a small C library that is
preloaded counts the calls, those of SQLite too. `--random N` kills N times after a random time.
A child tells each change that returned through a pipe. After the kill the collection must hold the
changes that were told, or these and the next one; it must pass its check and take more changes.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rankbits.errors import InputError
from rankbits.index import Collection, HammingIndex
from rankbits.index.disk import building
from rankbits.index.store import changes

N_BITS = 20
N_OPERATIONS = 24
KINDS = ("add", "add", "upsert", "remove", "seal", "compact", "snapshot", "save")


def script(rng, model, n):
    """Random changes, and the dictionary that must result after each; the first is before all."""
    operations, states = [], [model]
    for _ in range(n):
        kind = rng.choice(KINDS) if states[-1] else "add"
        known = np.array(sorted(states[-1]), np.int64)
        ids, codes = known[:0], b""
        if kind in ("add", "upsert"):
            ids = rng.choice(4000, int(rng.choice([1, 3, 30])), replace=False).astype(np.int64)
            ids = np.setdiff1d(ids, known) if kind == "add" else np.union1d(ids, known[:2])
            bits = rng.integers(0, 2, (len(ids), N_BITS), dtype=np.uint8)
            codes = np.packbits(bits, axis=1)
        if kind == "remove":
            ids = rng.choice(known, min(len(known), int(rng.choice([1, 3, 20]))), replace=False)
        operations.append((kind, ids, codes))
        states.append(applied(states[-1], kind, ids, codes))
    return operations, states


def applied(model, kind, ids, codes):
    gone = set(ids.tolist()) if kind == "remove" else set()
    left = {key: code for key, code in model.items() if key not in gone}
    if kind in ("add", "upsert"):
        left.update({int(key): code.tobytes() for key, code in zip(ids, codes, strict=True)})
    return left


def write(folder, operations, tell):
    """The child: make each change, and tell so when it returned."""
    if not (folder / "collection.sqlite").exists():
        Collection.create(folder, N_BITS).close()
    tell()
    collection = Collection.open(folder, writable=True)
    for number, (kind, ids, codes) in enumerate(operations):
        if kind in ("add", "upsert"):
            getattr(collection, kind)(codes, ids=ids)
        elif kind == "remove":
            collection.remove(ids)
        elif kind == "snapshot":
            collection.snapshot(folder.with_name(f"snapshot-{number}"))
        elif kind == "save":
            index = collection.index()
            collection.close()
            index.save(folder)
            collection = Collection.open(folder, writable=True)
        else:
            getattr(collection, kind)()
        tell()
    collection.close()


def killed(folder, operations, fatal):
    """Run a child; `fatal` is (call, torn), or seconds. Changes told, and whether it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if isinstance(fatal, tuple):
                ctypes.CDLL(None).kill_at(ctypes.c_long(fatal[0]), ctypes.c_int(fatal[1]))
            write(folder, operations, lambda: os.write(writer, b"."))
        except BaseException:  # noqa: BLE001  a fork must not return
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    os.close(writer)
    if isinstance(fatal, float):
        time.sleep(fatal)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    told = b""
    while more := os.read(reader, 4096):
        told += more
    os.close(reader)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"a writer failed, with fatal={fatal}")
    return len(told), os.WIFSIGNALED(status)


def content(collection):
    ids = collection.ids
    return dict(zip(ids.tolist(), map(bytes, collection.codes(ids).packed), strict=True))


def survivor(folder, told, states):
    """What is in the folder, which must be one of two states."""
    if told == 0:  # not even the creation was acknowledged
        try:
            Collection.open(folder).close()
        except InputError:
            Collection.create(folder, N_BITS).close()
    with Collection.open(folder) as reader:
        found = content(reader)
    allowed = states[max(told - 1, 0) : told + 1]
    if found not in allowed:
        raise SystemExit(f"{len(found)} items, want {[len(state) for state in allowed]}")
    with Collection.open(folder, writable=True) as collection:
        files = sorted(os.listdir(folder / "segments"))
        named = sorted(Path(s["file"]).name for s in collection.check()["segments"])
        if content(collection) != found or files != named:
            raise SystemExit(f"the writer sees something else, or files {files} beside {named}")
        collection.add(np.zeros((1, 3), np.uint8), ids=[5000])
        collection.remove([5000])
    return found


def check_snapshots(folder, told, operations, states):
    for number, (kind, *_) in enumerate(operations):
        path = folder.with_name(f"snapshot-{number}")
        if kind != "snapshot" or not path.exists():
            continue
        try:
            found = content(HammingIndex.load(path))
        except InputError:
            if number + 1 < told:
                raise
        else:
            if found != states[number]:
                raise SystemExit(f"snapshot {number} holds something else")


def kill_at_every_call(base, step, seed):
    operations, states = script(np.random.default_rng(seed), {}, N_OPERATIONS)
    n_kills, call = 0, 1 + seed % step
    is_torn = 0
    while True:
        folder = base / "every" / "collection"
        folder.parent.mkdir()
        told, was_killed = killed(folder, operations, (call, is_torn))
        if was_killed:
            survivor(folder, told, states)
            check_snapshots(folder, told, operations, states)
        shutil.rmtree(folder.parent)
        if not was_killed:
            return n_kills, call
        n_kills += 1
        call, is_torn = call + step * is_torn, 1 - is_torn


def kill_at_random(base, n, seed):
    rng = np.random.default_rng(seed)
    folder, model, n_told, n_kills = base / "random" / "collection", {}, 0, 0
    folder.parent.mkdir()
    while n_kills < n:
        operations, states = script(rng, model, 100)
        told, was_killed = killed(folder, operations, float(rng.uniform(0.0, 0.1)))
        model = survivor(folder, told, states)
        check_snapshots(folder, told, operations, states)
        for path in folder.parent.glob("snapshot-*"):
            shutil.rmtree(path)
        n_told, n_kills = n_told + told, n_kills + was_killed
    shutil.rmtree(folder.parent)
    return n_told


def preloaded(folder):
    """Compile the library that kills, and the environment that loads it."""
    library = folder / "kill_at.so"
    source = Path(__file__).with_name("kill_at.c")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **one_thread, "LD_PRELOAD": str(library)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--scripts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as base:
        if options.every and not hasattr(ctypes.CDLL(None), "kill_at"):
            environment = preloaded(Path(base))
            raise SystemExit(
                subprocess.run([sys.executable, *sys.argv], env=environment).returncode
            )
        building.SEAL_AT, changes.SMALL = 40, 8
        report = {"kills_at_calls": 0, "calls": 0, "kills_at_random": options.random}
        for seed in range(options.seed, options.seed + options.scripts if options.every else 0):
            n_kills, n_calls = kill_at_every_call(Path(base), options.every, seed)
            report["kills_at_calls"] += n_kills
            report["calls"] += n_calls
        if options.random:
            report["told"] = kill_at_random(Path(base), options.random, options.seed)
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
