"""Ctrl-C at random moments: a KeyboardInterrupt, exit code 130, and a collection that is whole.

    python tests/durability/interrupts.py --interrupts 50 --seed 0

A process builds mih tables, scans, searches inverted lists, evaluates and adds to a collection,
over and over, until it is interrupted; it goes on with the same objects afterwards. Commands of the
command line are interrupted as well. Each process sets its own handler of SIGINT, because one that
was started in the background would ignore the signal.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import internals
import numpy as np
from changes import N_BITS, content_of, random_codes
from children import Child
from violations import Report

from rankbits import BinaryCodes, affinity, evaluate
from rankbits.cli import main as run_command
from rankbits.errors import RankbitsError
from rankbits.index import Collection, HammingIndex

WIDTH = 8  # bytes of a code
NAMES = ("mih", "scan", "ivf", "lists", "evaluate", "collection")  # of works
CLEAN_END = 0, 130  # exit codes of a command: it was done before, or it was interrupted


class Works:
    """What is interrupted, each thing of some tenths of a second."""

    def __init__(self, base, n, seed):
        rng = np.random.default_rng(seed)
        self._rng, self._n = rng, n
        self._codes = rng.integers(0, 256, (n, WIDTH), dtype=np.uint8)
        many = HammingIndex(8 * WIDTH)  # kernels look for signals every 50 ms
        many.add(rng.integers(0, 256, (10 * n, WIDTH), dtype=np.uint8))
        self._labels = rng.integers(0, 10, n)
        self._searched = {kind: self._index(kind) for kind in ("scan", "ivf")}
        self._folder = base / "many"
        many.save(self._folder)
        self._collection = Collection.create(base / "collection", N_BITS)
        self._batches = []
        self.of = {
            "mih": self.build_tables,
            "scan": lambda: self._searched["scan"].search(self._codes[:300], 10),
            "ivf": lambda: self._searched["ivf"].search(self._codes[:3000], 10),
            "lists": lambda: self._index("ivf").search(self._codes[:1], 10),
            "evaluate": self.evaluate,
            "collection": self.add,
        }

    def _index(self, kind):
        index = HammingIndex(8 * WIDTH, kind=kind)
        index.add(self._codes)
        return index

    def build_tables(self):
        """Of an index that comes from a folder, where everything but the tables is quick."""
        HammingIndex.load(self._folder, kind="mih").search(self._codes[:10], 10)

    def evaluate(self):
        codes = BinaryCodes(self._codes, 8 * WIDTH)
        labels = affinity.classes(self._labels[:500], self._labels)
        evaluate(codes[:500], codes, labels, ["AP", "nDCG@100"])

    def add(self):
        """Codes under ids of their own, so that a batch can be told from others."""
        number = len(self._batches)
        batch = {
            "codes": random_codes(self._rng, int(self._rng.choice([1, 45, 200]))),
            "returned": 0,
        }
        self._batches.append(batch)
        ids = number * 1000 + np.arange(len(batch["codes"]))
        self._collection.add(batch["codes"], ids=ids)
        batch["returned"] = 1

    def check(self):
        """What is wrong with the collection in the end; empty if nothing is."""
        self._collection.close()
        with Collection.open(self._collection.folder, writable=True) as collection:
            collection.check()
            content = content_of(collection)
        for number, batch in enumerate(self._batches):
            codes = [content.pop(number * 1000 + row, None) for row in range(len(batch["codes"]))]
            is_there = codes == [code.tobytes() for code in batch["codes"]]
            if not is_there and (batch["returned"] or any(code is not None for code in codes)):
                return f"batch {number} is not whole (add returned: {batch['returned']})"
        return f"{len(content)} items that nobody added" if content else ""


def work(base, n, seed, tell, wait):
    """The process that is interrupted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    works = Works(base, n, seed)
    tell("ready")
    while letter := wait():
        if letter == "q":
            break
        tell("outcome", name=outcome_of(works.of[NAMES[int(letter)]], tell))
    try:
        tell("checked", text=works.check(), n_batches=len(works._batches))
    except RankbitsError as error:
        tell("checked", text=str(error), n_batches=len(works._batches))


def outcome_of(task, tell):
    try:
        tell("started")
        while True:
            task()
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    except BaseException as error:  # noqa: BLE001  what this tool looks for
        return f"{type(error).__name__}: {error}"


def interrupt_work(base, options, report):
    rng = np.random.default_rng(options.seed)
    child = Child(lambda tell, wait: work(base, options.items, options.seed, tell, wait))
    try:
        child.messages_until("ready")
        for _ in range(options.interrupts):
            number = NAMES.index(options.only or NAMES[rng.integers(len(NAMES))])
            child.command(str(number))
            child.messages_until("started")
            time.sleep(rng.uniform(0.0, 0.4))
            start = time.monotonic()
            os.kill(child.pid, signal.SIGINT)
            message = child.messages_until("outcome")[-1]
            seconds = time.monotonic() - start
            report.count("interrupts")
            report.count(f"interrupts_{NAMES[number]}")
            slowest = max(report.counts.get("slowest_seconds", 0), round(seconds, 2))
            report.counts["slowest_seconds"] = slowest
            name = message.get("name", message.get("what"))
            if name != "KeyboardInterrupt":
                tell_violation(report, options, f"{NAMES[number]}, {name.partition(':')[0]}", name)
            if message["event"] == "broke":
                return
        child.command("q")
        message = child.messages_until("checked")[-1]
        report.count("batches", message.get("n_batches", 0))
        if message["text"]:
            tell_violation(report, options, "the collection is not whole", message["text"])
    finally:
        child.kill()


# Commands


def command_lines(base, n, seed):
    """Commands that take a while, on files in a folder."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (4 * n, WIDTH), dtype=np.uint8)
    files = {name: str(base / f"{name}.npy") for name in ("codes", "queries", "labels", "few")}
    np.save(files["codes"], codes)
    np.save(files["queries"], codes[:2000])
    np.save(files["labels"], rng.integers(0, 10, 4 * n))
    np.save(files["few"], rng.integers(0, 10, 2000))
    bits = ["--bits", str(8 * WIDTH), "--codes", "packed"]
    pair = ["--queries", files["queries"], "--database", files["codes"]]
    labels = ["--query-labels", files["few"], "--database-labels", files["labels"]]
    index = HammingIndex(8 * WIDTH)
    index.add(codes[:n])
    index.save(base / "index")
    return [
        ["evaluate", *pair, *bits, *labels],
        ["index", "build", files["codes"], *bits, "--out", str(base / "built"), "--overwrite"],
        ["index", "add", str(base / "index"), files["codes"]],
        ["index", "search", str(base / "index"), files["queries"], "--kind", "mih", "-k", "50"],
    ]


def run_interrupted(arguments, seconds):
    """The exit code of a command that is interrupted after some time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 97
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            sys.argv = ["rankbits", *arguments]
            os.write(writer, b".")
            run_command()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 98
        finally:
            os._exit(status)
    os.read(reader, 1)
    os.close(reader)
    os.close(writer)
    time.sleep(0.02 + seconds)
    os.kill(child, signal.SIGINT)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def interrupt_commands(base, options, report):
    rng = np.random.default_rng(options.seed)
    lines = command_lines(base, options.items, options.seed)
    for _ in range(options.commands):
        arguments = lines[int(rng.integers(len(lines)))]
        code = run_interrupted(arguments, rng.uniform(0.0, 0.5))
        report.count("commands")
        report.count("commands_interrupted", code == 130)
        if code not in CLEAN_END:
            name = " ".join(arguments[:2]) if arguments[0] == "index" else arguments[0]
            tell_violation(report, options, f"rankbits {name} exits {code}", "")
    for name in ("index", "built"):
        if (base / name).exists():
            try:
                with Collection.open(base / name, writable=True) as collection:
                    collection.check()
            except RankbitsError as error:
                if name == "index" or not internals.says_unfinished(str(error)):
                    tell_violation(report, options, f"{name} is not whole", error)


def tell_violation(report, options, sort, detail):
    command = f"python tests/durability/interrupts.py --seed {options.seed}"
    repeat = f"{command} --interrupts {options.interrupts} --commands {options.commands}"
    repeat += f" --only {options.only}" if options.only else ""
    report.violation(sort, detail, repeat)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--interrupts", type=int, default=50)
    parser.add_argument("--commands", type=int, default=20, help="commands to interrupt")
    parser.add_argument("--only", choices=NAMES, help="interrupt only this work")
    parser.add_argument("--items", type=int, default=200_000, help="codes to work on")
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    internals.seal_early()
    report = Report("interrupts", goes_on=options.keep_going)
    with tempfile.TemporaryDirectory(dir=options.folder) as base:
        (Path(base) / "commands").mkdir()
        interrupt_work(Path(base), options, report)
        interrupt_commands(Path(base) / "commands", options, report)
    report.finish()


if __name__ == "__main__":
    main()
