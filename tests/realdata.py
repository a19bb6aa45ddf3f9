"""Real data sets, which the repository does not hold: tests that want one say what they skip."""

import os
from pathlib import Path

import pytest


def real(name):
    """A file or folder of the folder that RANKBITS_DATA names, or the test is skipped."""
    folder = os.environ.get("RANKBITS_DATA")
    if not folder or not (Path(folder) / name).exists():
        pytest.skip(f"RANKBITS_DATA names no folder with {name}: the real data is not read")
    return Path(folder) / name
