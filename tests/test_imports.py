"""What is imported, and when: a room loads what it stands on and nothing above it."""

import subprocess
import sys

import pytest

import rankbits


def modules_after(statement):
    """Names of the modules that a fresh process has after one statement."""
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()


def ours(names):
    return [name for name in names if name.startswith("rankbits")]


def test_the_lowest_room_loads_no_room_above_it():
    assert len(ours(modules_after("import rankbits.codes"))) <= 30


def test_the_root_alone_loads_no_room():
    assert ours(modules_after("import rankbits")) == ["rankbits"]


@pytest.mark.parametrize("name", [*rankbits.__all__, *rankbits._ROOM_OF, *rankbits._ROOMS])
def test_every_name_of_the_root_is_there(name):
    assert getattr(rankbits, name) is not None
    assert name in dir(rankbits)
