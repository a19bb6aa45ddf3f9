"""Calling a command of rankbits in tests, and what every command promises of its errors."""

import json
import signal
import subprocess
import sys
import time

from typer.testing import CliRunner

from rankbits.cli import app


class Command:
    """One command by name."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *arguments):
        return CliRunner().invoke(app, [self.name, *map(str, arguments)])

    def printed(self, *arguments):
        """The JSON on standard output of a call that must succeed."""
        done = self(*arguments)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)


_INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it: make test &
from rankbits.cli import _app, main
command = _app.app
_app.app = lambda: (print("ready", file=sys.stderr), command())  # main has begun, and may be struck
main()
"""


def interrupted_after(seconds, *arguments):
    """Exit code, output and errors of a command that Ctrl-C strikes so long after its start."""
    command = [sys.executable, "-uc", _INTERRUPTIBLE, *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **streams) as process:
        assert process.stderr.readline() == "ready\n"
        time.sleep(seconds)
        assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def assert_one_line(done, *parts):
    """Bad input: exit 1, nothing on standard output, one line on standard error."""
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.output
    for part in parts:
        assert part in done.stderr
