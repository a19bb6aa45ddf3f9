"""The `rankbits` command: files in, JSON or tables out.

JSON goes to standard output, progress and warnings to standard error. Bad input exits 1 with one
line, bad usage exits 2, Ctrl-C exits 130.
"""

from rankbits.cli._app import app, main

__all__ = ["app", "main"]
