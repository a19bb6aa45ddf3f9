"""Models made by strangers: those of every method, changed in every way, with checksums repaired.

    python tests/durability/hostile_models.py --cases 3000 --seed 0
    python tests/durability/hostile_models.py --seed 1234 --cases 1    # repeats one case

A case takes a valid model of one method or kind of encoder, changes its record, its arrays, its
files or what their names stand for, and does with it all that can be done with a model. The answer
is a result of the right shape or an error of rankbits in one line, within a second of computing and
a gigabyte. Anything else is a violation: another exception, a warning, a crash, code of the folder
that is run, a file outside of it that is changed. Under AddressSanitizer computing may take three
times as long. An export to ONNX is not held to a second, as that of an honest model takes longer.
"""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processor time is then that of the case
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import shutil
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from forged_models import FEW, Model, build_templates, choose_shapes, rows_for
from hostile_arrays import (
    change_bytes,
    change_header,
    change_names,
    change_shapes,
    change_values,
)
from hostile_folders import change_files
from hostile_model_uses import Wrong, uses_of
from hostile_records import (
    change_architecture,
    change_facts,
    change_method,
    change_parameters,
    change_record,
    change_sizes,
    change_text,
)
from hostile_rows import pick
from watched import Watch, clear, parse_options, work

from rankbits.errors import RankbitsError

IS_SANITIZED = "ASAN_OPTIONS" in os.environ
LIMIT = 3.0 if IS_SANITIZED else 1.0  # seconds of the processor for one use of a model
MOST_BYTES = 1 << 30
TOO_LONG = "takes too long"
PATIENCE = 240.0 if IS_SANITIZED else 60.0  # seconds; an export alone takes some of them
VICTIM = b"a file of somebody else\n"
_SHARE_OF_FILES = 0.12  # of the cases, in which the files themselves are others
_RUNS = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "pickle.find_class",
)
_TALKS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request")


CHANGES = {
    change_record: 5,
    change_architecture: 6,
    change_facts: 3,
    change_parameters: 4,
    change_method: 2,
    change_sizes: 3,
    change_values: 6,
    change_shapes: 5,
    change_names: 3,
    change_header: 4,
    change_bytes: 2,
    change_text: 3,
}


class Guard:
    """Listens to the interpreter: what runs code, talks to others or writes outside of the case."""

    def __init__(self):
        self.place, self.events = None, []
        sys.addaudithook(self._hear)

    def _hear(self, event, args):
        if self.place is None:
            return
        if event.startswith(_RUNS) or event in _TALKS:
            self.events.append(f"{event} {args!r:.200}")
        elif event == "open" and isinstance(args[0], str | bytes | Path) and _writes(args[2]):
            if not os.fsdecode(args[0]).startswith(
                (str(self.place), tempfile.gettempdir(), os.devnull)
            ):
                self.events.append(f"writes {args[0]!r:.200}")
        elif event in ("exec", "compile") and str(self.place) in repr(args):
            self.events.append(f"{event} {args!r:.200}")


def _writes(flags):
    return isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)


class Case:
    """One model that is about to become hostile."""

    def __init__(self, base, templates, seed):
        self.rng = np.random.default_rng(seed)
        self.place = base / "case"
        clear(self.place)
        number = seed % len(templates)
        self.template, self.folder = templates[number], self.place / "model"
        self.honest = base / f"template-{number}"
        shutil.copytree(self.honest, self.folder)
        self.victim, self.canary = self.place / "victim", self.place / "canary"
        self.victim.write_bytes(VICTIM)
        self.words = [f"{self.template}: "]

    def say(self, text):
        self.words.append(f"{text}; ")

    def change(self):
        """One change or a few on top of each other, checksums repaired; files last."""
        model = Model(self.folder)
        changes = [change for change, weight in CHANGES.items() for _ in range(weight)]
        if self.rng.random() > _SHARE_OF_FILES:
            for _ in range(int(pick(self.rng, (1, 1, 1, 2, 3)))):
                try:
                    pick(self.rng, changes)(self, model, self.rng)
                except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
                    self.say(f"(not applied: {error!r:.80})")  # what came before was too much
            model.write(self.folder)
        else:
            change_files(self, self.rng)


def run_case(base, templates, guard, seed):
    """What came of one case, for the report."""
    case = Case(base, templates, seed)
    case.change()
    outcome = {"template": case.template, "served": 0, "refused": 0, "words": "".join(case.words)}
    slowest, largest, rows = 0.0, 0, rows_for("images" in _kind_of(case))[0][:3]
    for use in uses_of(case, rows):
        before, start = begin_peak(), time.process_time()
        sort, detail, is_served = run_use(use, case, guard)
        seconds, taken = time.process_time() - start, peak() - before
        outcome["served" if is_served else "refused"] += 1
        if use.is_timed:
            slowest, largest = max(slowest, seconds), max(largest, taken)
        if sort is None and use.is_timed and seconds > LIMIT:
            sort, detail = TOO_LONG, f"{use.__name__}: {seconds:.1f} s"
        if sort is None and taken > MOST_BYTES:
            sort, detail = "takes too much memory", f"{use.__name__}: {taken >> 20} MB"
        if sort is not None:
            return {"sort": f"{sort}", "detail": detail, **outcome}
        if use.is_loading and not is_served:
            break  # there is nothing to be used
    outcome["slowest_seconds"], outcome["most_megabytes"] = round(slowest, 3), largest >> 20
    return {"sort": None, "detail": "", **outcome}


def _kind_of(case):
    """Words about the rows that the honest model reads."""
    shape = Model(case.honest).record["facts"].get("input_shape", [0])
    return "images" if len(shape) == 3 else "vectors"


def run_use(use, case, guard):
    """Sort and detail of a violation, or None; and whether the model was served."""
    guard.place, guard.events = case.place, []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # true of it
            use()
        is_served, sort, detail = True, None, ""
    except RankbitsError as error:
        text = str(error)
        is_plain = text and text.isprintable() and len(text) < 2000
        is_served, sort = False, None if is_plain else f"{use.__name__}: an error that is no line"
        detail = repr(text)[:500]
    except Wrong as error:
        is_served, sort, detail = True, f"{use.__name__}: a result that cannot be", str(error)
    except Exception as error:  # noqa: BLE001  what this tool looks for
        sort = f"{use.__name__}: raises {type(error).__name__}"
        is_served, detail = False, traceback.format_exc(limit=-5)
    finally:
        guard.place = None
    if sort is None and guard.events:
        sort, detail = f"{use.__name__}: does what a model must not", "; ".join(guard.events[:3])
    if sort is None and (case.canary.exists() or case.victim.read_bytes() != VICTIM):
        sort = f"{use.__name__}: runs code or changes a file outside of the folder"
    return sort, detail, is_served


def begin_peak():
    """Forget the largest memory so far; what is taken now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak():
    """The largest memory since then, in bytes."""
    return _status("VmHWM")


def _status(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return 0


def warm_up(base, templates, guard, *, with_export):
    """Use some honest models, which imports what they need; all must be served."""
    for number, name in enumerate(templates):
        if name not in FEW:
            continue
        case = Case(base, templates, number)
        rows = rows_for("images" in _kind_of(case))[0][:3]
        for is_first in (True, False):
            for use in uses_of(case, rows, with_all=name == "lsh" and with_export):
                sort, detail, is_served = run_use(use, case, guard)
                if not is_served or (sort and not is_first):
                    raise AssertionError(f"{name}: {use.__name__}: {sort}: {detail}")


def take_in(report, message):
    for name in ("served", "refused"):
        report.count(name, message[name])
    for name in ("slowest_seconds", "most_megabytes"):
        report.counts[name] = max(report.counts.get(name, 0), message.get(name, 0))
    by_model = report.counts.setdefault("by_model", {})
    counts = by_model.setdefault(message["template"], [0, 0])  # cases, those that were refused
    counts[0] += 1
    counts[1] += message["refused"] > 0 and message["served"] == 0


def main():
    flags = [
        ("--quick", "leave out models whose fit takes seconds"),
        ("--few", "one model of each family"),
    ]
    options = parse_options(__doc__.splitlines()[0], *flags)
    if not options.work:
        watch = Watch("hostile_models", __file__, options, take_in)
        watch.run(*["--quick"] * options.quick, *["--few"] * options.few)
        return
    sys.modules["openvino"] = None  # no sanitizer bears how it is loaded
    tempfile.tempdir = str(options.work / "temporary")
    Path(tempfile.tempdir).mkdir(exist_ok=True)
    shapes = choose_shapes(few=options.few, with_slow=not options.quick)
    templates = build_templates(options.work, shapes)
    guard = Guard()
    warm_up(options.work, templates, guard, with_export=not options.few)
    seeds = range(options.seed, options.seed + options.cases)
    work(seeds, lambda seed: run_case(options.work, templates, guard, seed), TOO_LONG, PATIENCE)


if __name__ == "__main__":
    main()
