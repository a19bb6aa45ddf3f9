"""Files and folders that are saved in one step, while the storage fails: what must be there then.

Each has an old content, which is there, and a new one, which takes its place. Whatever fails, one
of the two is there afterwards, and the new one if saving it returned.
"""

import os
import shutil
from typing import NamedTuple

import numpy as np
from changes import N_BITS, content_of, random_codes
from children import Child
from violations import Violation

from rankbits import BinaryCodes
from rankbits.errors import RankbitsError
from rankbits.histogram import TieHistogram
from rankbits.index import HammingIndex
from rankbits.methods import ITQ, load


class Saved(NamedTuple):
    name: str  # of the file or folder
    make: object  # what is to be saved, of a generator of random numbers
    load: object  # what lies at a path
    content: object  # what can be compared


def make_codes(rng):
    return BinaryCodes(random_codes(rng, 50), N_BITS)


def make_model(rng):
    return ITQ(n_bits=8, random_state=0).fit(rng.standard_normal((60, 10)))


def make_index(rng):
    index = HammingIndex(N_BITS)
    index.add(random_codes(rng, 60), np.arange(60))
    return index


def make_histogram(rng):
    return TieHistogram(rng.integers(0, 9, (3, 9, 2)), np.arange(2))


SAVED = {
    **{
        f"codes {ending}": Saved(
            f"codes.{ending}", make_codes, BinaryCodes.load, lambda codes: codes.packed.tobytes()
        )
        for ending in ("npy", "npz", "parquet", "safetensors")
    },
    "model": Saved("model", make_model, load, lambda model: model.planes_.tobytes()),
    "index": Saved("index", make_index, HammingIndex.load, content_of),
    "histogram": Saved(
        "hist.npz", make_histogram, TieHistogram.load, lambda hist: hist.counts.tobytes()
    ),
}
ACTIONS = ("save", "load")
DOCUMENTED = (RankbitsError, OSError, MemoryError)  # what saving and loading may raise


def run_saves(place, rng, n, plans, library, report):
    """Save and load everything while a random call fails, n times in all."""
    for name, saved in SAVED.items():
        old, new = saved.make(rng), saved.make(rng)
        for number in range(n // len(SAVED)):
            action = ACTIONS[number % 2]
            attempt = Attempt(place, saved, action, old, new)
            n_calls = attempt.run(library, None)["calls"]
            fault = str(rng.choice(list(plans)))
            call = int(rng.integers(1, n_calls + 1))
            report.count("saves" if action == "save" else "loads")
            try:
                outcome = attempt.run(library, (plans[fault][0], call, plans[fault][1]))
                report.count("saves_hit" if action == "save" else "loads_hit", outcome["hits"] > 0)
                attempt.check(outcome)
            except Violation as violation:
                sort, _, detail = str(violation).partition(":")
                report.violation(f"{name}, {action}, {sort}", f"call {call}, {fault}:{detail}", "")


class Attempt(NamedTuple):
    place: object  # a folder
    saved: Saved
    action: str
    old: object
    new: object

    @property
    def path(self):
        return self.place / self.saved.name

    def run(self, library, plan):
        """Do it in another process, where a call of the storage fails; what came of it."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        self.old.save(self.path)
        child = Child(lambda tell, wait: self._run(library, plan, tell))
        try:
            outcome = child.messages_until("done")[-1]
        finally:
            child.kill()
        if outcome["event"] == "broke":
            raise Violation(f"{outcome['what']}: {outcome['text']}")
        return outcome

    def _run(self, library, plan, tell):
        library.storage_watch(os.fsencode(self.place))
        library.storage_widen(1)
        if plan:
            library.storage_plan(*plan)
        has_returned, problem = run_action(self.saved, self.action, self.path, self.new)
        counts = {"calls": library.storage_calls(), "hits": library.storage_hits()}
        tell("done", has_returned=has_returned, problem=problem, **counts)

    def check(self, outcome):
        """Raise a Violation unless the right content is there, and can be replaced."""
        if outcome["problem"]:
            raise Violation(f"an error that is not documented: {outcome['problem']}")
        content_of_file, path = self.saved.content, self.path
        try:
            content = content_of_file(self.saved.load(path))
        except RankbitsError as error:
            raise Violation(f"what was saved cannot be loaded: {error}") from error
        before, after = content_of_file(self.old), content_of_file(self.new)
        if self.action == "load":
            possible = [before]
        else:
            possible = [after] if outcome["has_returned"] else [before, after]
        if content not in possible:
            raise Violation("something else than what was saved is there")
        self.new.save(path)
        if content_of_file(self.saved.load(path)) != after:
            raise Violation("it cannot be replaced any more")


def run_action(saved, action, path, new):
    """Whether it returned, and what it raised if that is not documented."""
    try:
        if action == "save":
            new.save(path)
        else:
            saved.content(saved.load(path))
    except DOCUMENTED:
        return False, ""
    except BaseException as error:  # noqa: BLE001  which is the finding
        return False, f"{type(error).__name__}: {error}"
    return True, ""
