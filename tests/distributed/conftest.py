"""One cluster for all tests of this room, and what must be left of it: nothing."""

import pytest

from clusters import TestCluster

collect_ignore = ["soak.py"]


@pytest.fixture(scope="session")
def cluster():
    running = TestCluster()
    yield running
    left = running.stop()
    assert not left, f"processes left behind: {left}"
