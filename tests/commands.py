"""Calling a command of rankbits in tests, and what every command promises of its errors."""

import json

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


def assert_one_line(done, *parts):
    """Bad input: exit 1, nothing on standard output, one line on standard error."""
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.output
    for part in parts:
        assert part in done.stderr
