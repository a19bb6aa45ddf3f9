"""A short slice of the worst requests, beside ordinary ones; `make soak` sends all of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent / "attacks.py"


@pytest.mark.slow
def test_the_worst_requests_take_nobody_down():
    names = ["empty strings, 16 MB", "weighted_bits within limits", "histograms", "pictures"]
    names += ["includes", "a client that leaves its search"]
    options = ["--items", "20000", "--seconds", "0.5", "--only", *names]
    done = subprocess.run(
        [sys.executable, str(TOOL), *options], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["violations"] == 0
