"""Ctrl-C is a KeyboardInterrupt at whatever moment it comes, and what was there can be used on."""

import random
import signal
import subprocess
import sys
import time

import pytest

# Works until it is interrupted, over and over: each interrupt must come out as KeyboardInterrupt,
# and what is found after it must be what was found before.
CHILD = """
import signal, sys
import numpy as np
from rankbits import BinaryCodes
from rankbits.index.engines import Request
from rankbits.index.engines.ivf import Ivf, IvfOptions
from rankbits.index.engines.mih import Mih, MihOptions
from rankbits.index.engines.scan import Scan
from rankbits.index.store.segment import Segment

signal.signal(signal.SIGINT, signal.SIG_IGN)
work, n_threads, n_rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
n = 3_000_000 if work.startswith("build") else 400_000  # so that workers look several times
packed = rng.integers(0, 256, (n, 10), np.uint8)  # five tables: one of two workers waits at the end
segment = Segment.of(BinaryCodes(packed, 80), range(n))
queries = rng.integers(0, 256, (3000, 10), np.uint8)
everything, request = np.empty(0, np.uint64), Request(10, 80, False, n_threads, IvfOptions())
if work.startswith("build"):
    def step():
        Mih(segment, MihOptions(copies=work == "build"), n_threads)
else:
    engine = (Scan if work == "scan" else Ivf)(segment, IvfOptions(n_lists=100), n_threads)
    expected = engine.search(queries[:20], everything, request).ids.tolist()
    def step():
        engine.search(queries, everything, request)
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ in range(n_rounds):
    try:
        print("ready", flush=True)
        while True:
            step()
    except KeyboardInterrupt:
        pass
    if not work.startswith("build"):
        assert engine.search(queries[:20], everything, request).ids.tolist() == expected
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("done", flush=True)
"""


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("work", ["build", "build one copy", "scan", "ivf"])
def test_an_interrupt_at_any_moment_is_a_keyboard_interrupt(work, n_threads):
    n_rounds, rng = 12, random.Random(n_threads)
    command = [sys.executable, "-c", CHILD, work, str(n_threads), str(n_rounds)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as process:
        try:
            for _ in range(n_rounds):
                line = process.stdout.readline()
                assert line == "ready\n", process.stderr.read()
                time.sleep(0.001 + rng.random() * 0.25)
                process.send_signal(signal.SIGINT)
            line = process.stdout.readline()
            assert line == "done\n", process.stderr.read()
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
