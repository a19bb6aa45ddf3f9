"""The `rankbits` command: files in, JSON or tables out.

JSON goes to standard output, progress and warnings to standard error. Bad input exits 1 with one
line, bad usage exits 2, Ctrl-C exits 130.
"""

import os

# Between two operations torch's threads spin for milliseconds by default, on cores that another
# fit may need: two fits at once then wait for each other's idle threads. The OpenMP library reads
# this when torch is imported, and spins for some microseconds instead.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")

from rankbits.cli._app import app, main

__all__ = ["app", "main"]
