"""A process that works through hostile cases, and one that watches it.

A case may end the process that runs it, or never end. So a second process begins them one after
the other and tells each of them before and after, and the first one starts it again behind a case
that ended it. Every case is a seed, so that one command repeats it.
"""

import argparse
import faulthandler
import json
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from violations import Report

TRIES = 3  # of a case that takes too long: a busy machine may take its time, but not three times


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def work(seeds, run_case, too_long, patience=30.0):
    """Run cases and tell each before and after: sort of the violation or None, and its fields.

    A case that has not ended after `patience` seconds hangs; a sync may wait for other programs.
    """
    faulthandler.enable()
    for seed in seeds:
        say(begins=seed)
        for _ in range(TRIES):
            faulthandler.dump_traceback_later(patience, exit=True)
            outcome = run_case(seed)
            faulthandler.cancel_dump_traceback_later()
            if outcome["sort"] != too_long:
                break
        say(ended=seed, **outcome)
        if len(seeds) == 1:
            sys.stderr.write("\n".join(str(value) for value in outcome.values()) + "\n")
    say(done=True)


class Watch:
    """The processes of a run, what they tell, and the report of it."""

    def __init__(self, tool, script, options, take_in):
        self._script, self._options, self._take_in = script, options, take_in
        self._tool, self._arguments = tool, ()
        self.report = Report(tool, goes_on=options.keep_going)

    def run(self, *arguments):
        """Work through all cases in a folder of its own, and end with the report."""
        self._arguments = arguments
        base = Path(tempfile.mkdtemp(dir=self._options.folder)).resolve()
        try:
            self._watch(base)
        finally:
            clear(base)
        self.report.finish()

    def _watch(self, base):
        first, last = self._options.seed, self._options.seed + self._options.cases
        errors = base / "errors"
        while first < last:
            command = [sys.executable, self._script, "--work", base, "--seed", first]
            command += ["--cases", last - first, *self._arguments]
            with errors.open("w") as file:
                process = subprocess.Popen(
                    [*map(str, command)], stdout=subprocess.PIPE, stderr=file, text=True
                )
                try:
                    begun, is_done = self._follow(process)
                finally:
                    process.kill()
                    process.wait()
            text = errors.read_text(errors="replace")
            if self._options.cases == 1:
                sys.stderr.write(text)
            if is_done:
                return
            if begun is None:
                raise SystemExit(f"the process that works began no case:\n{text[-3000:]}")
            self.report.count("cases")
            sort = "hangs" if "Timeout (0:" in text else f"ends the process ({process.returncode})"
            sort = "AddressSanitizer" if "AddressSanitizer" in text else sort
            self._tell(begun, sort, text[:2500])
            first = begun + 1

    def _follow(self, process):
        """Take in what the process tells: the case that it began last, and whether it was done."""
        begun = None
        for line in process.stdout:
            message = json.loads(line)
            if "done" in message:
                process.wait()
                return begun, True
            begun = message.get("begins", begun)
            if "ended" in message:
                self.report.count("cases")
                self._take_in(self.report, message)
                if message["sort"]:
                    self._tell(begun, message["sort"], f"{message['words']}{message['detail']}")
        process.wait()
        return begun, False

    def _tell(self, seed, sort, detail):
        flags = "".join(f" {argument}" for argument in self._arguments)
        command = f"python tests/durability/{self._tool}.py --seed {seed} --cases 1{flags}"
        self.report.violation(sort, f"seed {seed}: {detail}", command)


def parse_options(description, *flags):
    """The options that all of these tools have, and flags of one of them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    for name, words in flags:
        parser.add_argument(name, action="store_true", help=words)
    return parser.parse_args()


def clear(base):
    """Folders that a case left without permission, pipes and huge files go as well."""
    for path in base.rglob("*"):
        if path.is_symlink() or stat.S_ISFIFO(path.lstat().st_mode):
            path.unlink()
    shutil.rmtree(base, ignore_errors=True)
