"""Some of the worst requests, beside ordinary ones; `make soak` sends all of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent / "attacks.py"


def attack(*names, items, seconds):
    """The counts of a run, on a machine that may be busy with other tests."""
    options = ["--items", str(items), "--seconds", str(seconds), "--patience", "10"]
    command = [sys.executable, str(TOOL), *options, *(["--only", *names] if names else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_bad_requests_take_nobody_down():
    names = ["empty strings, 1 MB", "histograms", "a client that leaves its search"]
    counts = attack(*names, items=5000, seconds=0.2)
    assert (counts["attacks"], counts["violations"]) == (3, 0)


@pytest.mark.slow
def test_the_worst_requests_take_nobody_down():
    counts = attack(items=20_000, seconds=0.5)
    assert counts["attacks"] > 30
    assert counts["violations"] == 0
