"""Storage that fails: every write, sync and change of names of a script fails once.

    python tests/durability/failing.py --seed 0
    python tests/durability/failing.py --seed 0 --call 57 --error EIO --way reopen   # one run
    python tests/durability/failing.py --seed 0 --looks --random 2500

With `--looks` calls that change nothing fail too (opening, reading, mapping, locking, closing,
asking for a status), for want of files or memory as well, and the script also loads and checks.

A writer makes changes of every sort to a collection that a reader holds open. One call of its
storage fails once, with EIO or ENOSPC, or all calls fail from then on: the disk is full (a short
write, then ENOSPC) or dead (EIO). When an error has told the writer so, the storage works again.
The writer goes on in one of several ways, then both are killed and the folder is opened again.

It must open and pass its check. A change that returned is there; one that raised is there as a
whole or not at all, and not at all if its error said so. A state that a process has seen is not
taken back. So the content must be that of a history: the changes that returned, in order, with or
without those whose outcome the writer was not told.
"""

import argparse
import errno
import os
import shutil
import signal
import tempfile
from pathlib import Path

import internals
import numpy as np
from changes import (
    N_BITS,
    apply_change,
    check_writer,
    content_at,
    content_of,
    make_change,
    random_change,
)
from children import Child, encoded
from histories import judge
from saves import run_saves
from storage import FAIL_ON, FAIL_ONCE, SHORTEN, load_storage, read_trace
from violations import Report, Violation

from rankbits.errors import InputError, RankbitsError
from rankbits.index import Collection

WAYS = ("retry", "onward", "reopen", "reopen and stop", "stop")
FAULTS = {  # what happens at the chosen call; "full" and "dead" last until the writer has noticed
    "EIO": (FAIL_ONCE, errno.EIO),
    "ENOSPC": (FAIL_ONCE, errno.ENOSPC),
    "full": (SHORTEN, errno.ENOSPC),
    "dead": (FAIL_ON, errno.EIO),
}
FAULTS_OF_LOOKS = {
    **{name: (FAIL_ONCE, getattr(errno, name)) for name in ("EIO", "EMFILE", "ENOMEM", "EINTR")},
    **{f"{name} on": (FAIL_ON, getattr(errno, name)) for name in ("EIO", "EMFILE", "ENOMEM")},
}
ALL_FAULTS = FAULTS | FAULTS_OF_LOOKS
KINDS = ("add", "upsert", "remove", "seal", "add", "compact", "snapshot", "copy", "save", "upsert")
KINDS_OF_LOOKS = ("load", "check")
N_AFTER = 3  # changes after the failure


# The two processes


def read(folder, tell, wait):
    """The reader: search once, keep everything open, and look again when told to."""
    collection = Collection.open(folder)
    collection.search(np.zeros((1, -(-N_BITS // 8)), np.uint8), 5)
    tell("ready")
    while wait():
        try:
            tell("sees", who="a reader", content=encoded(content_of(collection)))
        except RankbitsError as error:
            tell("broke", what="a reader that was open cannot read any more", text=str(error))
        tell("looked")


class Writer:
    """Makes changes, tells what became of each, and goes on in some way when one failed."""

    def __init__(self, folder, changes, way, library, tell):
        self._folder, self._changes, self._way = folder, changes, way
        self._library, self._tell = library, tell
        self._collection = None
        self._n_left = len(changes)
        self._has_failed = False

    def run(self):
        self._open()
        for number, change in enumerate(self._changes):
            if self._n_left == 0:
                break
            self._n_left -= 1
            self._attempt(number, change)
        self._tell("done", hits=self._library.storage_hits(), hit=self._hit())

    def _hit(self):
        return self._library.storage_hit().decode()

    def _open(self):
        while self._collection is None:
            try:
                self._collection = Collection.open(self._folder, writable=True)
            except RankbitsError as error:
                if self._has_failed or not self._library.storage_hits():
                    self._tell("broke", what="a writer cannot open it any more", text=str(error))
                    signal.pause()
                self._recover()

    def _attempt(self, number, change):
        try:
            after = apply_change(self._collection, change)
        except RankbitsError as error:
            if isinstance(error, InputError) and not internals.says_unreadable(str(error)):
                self._tell("refused", change=number, text=str(error))
                return
            self._tell("failed", change=number, text=str(error))
            if self._has_failed:
                what = "a change fails although the storage works again"
                self._tell("broke", what=what, text=str(error))
            self._go_on(number, change)
        else:
            self._tell("returned", change=number)
            self._collection = after
            self._open()

    def _recover(self):
        """The storage works again; a few more changes and the run ends."""
        self._library.storage_plan(0, 0, 0)
        self._has_failed = True
        self._n_left = min(self._n_left, N_AFTER)

    def _go_on(self, number, change):
        self._recover()
        if self._way == "stop":
            self._n_left = 0
            return
        if change.kind == "save" or self._way.startswith("reopen"):
            self._collection.close()
            self._collection = None
            self._open()
            self._tell("sees", who="a writer", content=encoded(content_of(self._collection)))
        if self._way == "reopen and stop":
            self._n_left = 0
        elif self._way == "retry":
            self._attempt(number, change)


# One run


class Runs:
    """Everything that runs of one seed share: a collection to begin with, and a script."""

    def __init__(self, base, seed, library, *, with_looks=False):
        rng = np.random.default_rng(seed)
        self._base, self._library, self._with_looks = base, library, with_looks
        self._template = base / "template"
        self.first = {}
        with Collection.create(self._template, N_BITS) as collection:
            for kind in ("add", "seal", "add", "remove", "upsert"):
                change = random_change(rng, self.first, kind, 0)
                make_change(collection, change)
                self.first = change.applied(self.first)
        self.changes, model = [], self.first
        for number, kind in enumerate(self._kinds(rng)):
            self.changes.append(random_change(rng, model, kind, number))
            model = self.changes[-1].applied(model)

    def _kinds(self, rng):
        """One of each sort in random order, and an add large enough to be sealed in between."""
        kinds = KINDS + KINDS_OF_LOOKS if self._with_looks else KINDS
        return [str(kind) for kind in rng.permutation(kinds)]

    def calls(self, *, has_reader):
        """The calls of a run in which nothing fails."""
        self._run(None, "stop", has_reader=has_reader)
        return [call for call in read_trace(self._base / "trace") if call.name != "mark"]

    def violation(self, call, fault, way, *, has_reader):
        """What is wrong after one run, and at which call: ("", "") if nothing is."""
        messages = self._run((call, fault), way, has_reader=has_reader)
        hit = next((m["hit"] for m in messages if m["event"] == "done"), "")
        try:
            histories = judge(messages, self.changes, self.first, believes=True)
            self._check_folder(histories)
        except Violation as violation:
            return self._sort(str(violation), messages), hit
        return "", hit

    def _sort(self, sentence, messages):
        """Whether only an untrue "nothing was changed" is to blame."""
        if "no history explains" in sentence:
            try:
                self._check_folder(judge(messages, self.changes, self.first, believes=False))
            except Violation:
                return sentence
            return "an error said that nothing was changed, and it was"
        return sentence

    def _run(self, fault, way, *, has_reader):
        place = self._base / "run"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        folder = place / "collection"
        shutil.copytree(self._template, folder)
        reader = Child(lambda tell, wait: read(folder, tell, wait)) if has_reader else None
        if reader:
            reader.messages_until("ready")
        writer = Child(lambda tell, wait: self._write(place, fault, way, tell))
        try:
            messages = writer.messages_until("done")
            if reader:
                reader.command()
                messages += reader.messages_until("looked")
        finally:
            writer.kill()
            if reader:
                reader.kill()
        return messages

    def _write(self, place, fault, way, tell):
        self._library.storage_watch(os.fsencode(place))
        if fault is None:
            self._library.storage_record(os.fsencode(self._base / "trace"))
        else:
            self._library.storage_plan(*plan_of(fault))
        self._library.storage_widen(self._with_looks)
        Writer(place / "collection", self.changes, way, self._library, tell).run()

    def _check_folder(self, histories):
        folder = self._base / "run" / "collection"
        try:
            model = content_at(folder)
        except RankbitsError as error:
            raise Violation(f"it cannot be opened again: {error}") from error
        histories.see(model, "who opens it again")
        for number, (is_sure, models) in histories.targets.items():
            check_target(self.changes[number].target(folder), models, is_sure=is_sure)
        check_writer(folder, model)


def plan_of(fault):
    """What the library is told of a call and what happens there."""
    plan, error = ALL_FAULTS[fault[1]]
    return plan, fault[0], error


def check_target(folder, models, *, is_sure):
    """A snapshot that was acknowledged is whole; any other is whole, or can be made again."""
    try:
        model = content_at(folder)
    except RankbitsError as error:
        if is_sure:
            raise Violation(f"a snapshot that was acknowledged cannot be read: {error}") from error
        if not isinstance(error, InputError) or not internals.says_unfinished(str(error)):
            raise Violation(f"a snapshot that failed reads as: {error}") from error
        try:
            Collection.create(folder, N_BITS).close()
        except RankbitsError as second:
            raise Violation(f"a snapshot that failed blocks its folder: {second}") from second
    else:
        if model not in models:
            raise Violation("a snapshot holds something else")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scripts", type=int, default=1, help="how many seeds, from --seed on")
    parser.add_argument("--every", type=int, default=1, help="only every N-th call")
    parser.add_argument("--call", type=int, help="only this call")
    parser.add_argument("--syncs", action="store_true", help="only calls that sync")
    parser.add_argument("--error", choices=ALL_FAULTS, help="only this error")
    parser.add_argument("--looks", action="store_true", help="calls that change nothing fail too")
    parser.add_argument("--saves", type=int, default=0, help="also save and load files, so often")
    parser.add_argument("--random", type=int, help="as many runs, at random, instead of all")
    parser.add_argument("--way", choices=WAYS, help="go on in this way only")
    parser.add_argument("--reader", choices=("yes", "no"), help="with, or without, a reader only")
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    library = load_storage()
    internals.seal_early()
    internals.wait_briefly()
    report = Report("failing", goes_on=options.keep_going)
    for seed in range(options.seed, options.seed + options.scripts):
        with tempfile.TemporaryDirectory(dir=options.folder) as base:
            runs = Runs(Path(base).resolve(), seed, library, with_looks=options.looks)
            if options.random != 0:
                run_script(runs, seed, options, report)
            place, rng = Path(base).resolve() / "saves", np.random.default_rng(seed)
            if options.saves:
                run_saves(place, rng, options.saves, FAULTS_OF_LOOKS, library, report)
    report.finish()


def run_script(runs, seed, options, report):
    """Let each call of one script fail in each way, or as many as are to be drawn."""
    calls = {reader: runs.calls(has_reader=reader == "yes") for reader in ("yes", "no")}
    report.count("calls", max(map(len, calls.values())))
    cases = list(cases_of(calls, seed, options))
    if options.random is not None:
        drawn = np.random.default_rng(seed).permutation(len(cases))[: options.random]
        cases = [cases[number] for number in drawn]
    for case in cases:
        run_once(runs, (seed, *case), options, report)


def cases_of(calls, seed, options):
    """Calls that are to fail, how, how the writer goes on, and whether there is a reader."""
    n_calls = max(map(len, calls.values()))
    faults = FAULTS_OF_LOOKS if options.looks else FAULTS
    first = 1 + seed % options.every
    for call in [options.call] if options.call else range(first, n_calls + 1, options.every):
        for fault in [options.error] if options.error else faults:
            for number, way in enumerate(WAYS):
                if options.way not in (None, way):
                    continue
                for reader in readers(options, call + number):
                    name = calls[reader][call - 1].name if call <= len(calls[reader]) else "none"
                    if is_worth_it(name, fault, options):
                        yield call, fault, way, reader


def is_worth_it(name, fault, options):
    """Whether a call can fail in that way, and is among those to look at."""
    if name == "none" or (options.syncs and name != "sync"):
        return False
    return fault != "full" or name == "write"


def readers(options, number):
    """With a reader always; without one, which lets the writer tidy up, in every third run."""
    if options.reader:
        return [options.reader]
    return ["yes", "no"] if number % 3 == 0 else ["yes"]


def run_once(runs, case, options, report):
    seed, call, fault, way, reader = case
    sentence, hit = runs.violation(call, fault, way, has_reader=reader == "yes")
    report.count("runs")
    report.count("runs_hit", bool(hit))
    report.count(f"runs_{fault}")
    if sentence:
        repeat = (
            f"python tests/durability/failing.py --seed {seed} --call {call} --error '{fault}' "
            f"--way '{way}' --reader {reader}{' --looks' if options.looks else ''}"
        )
        sort, _, detail = sentence.partition(":")
        report.violation(sort, f"call {call} ({hit}), {fault}, {way}:{detail}", repeat)


if __name__ == "__main__":
    main()
