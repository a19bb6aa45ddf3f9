"""Threads stay between calls: calls may come from several threads at once, after a fork, and up to
the end of the process, and answer the same whatever the number of threads."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from rankbits import BinaryCodes, affinity, count_ties
from rankbits.index import HammingIndex

THREADS = "/proc/self/status"


@pytest.fixture(scope="module")
def searches():
    """Named calls with a number of threads, and what they answer on one."""
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (20_000, 8), np.uint8)
    queries = packed[:200] ^ np.uint8(1)
    calls = {}
    for kind in ("scan", "mih", "ivf"):
        index = HammingIndex(64, kind)
        index.add(packed)
        calls[kind] = lambda n, index=index: index.search(queries, 10, n_threads=n)
    codes, labels = BinaryCodes(packed[:3000], 64), rng.integers(0, 5, 3000)
    same = affinity.classes(labels[:300], labels)
    calls["count"] = lambda n: (count_ties(codes[:300], codes, same, n_threads=n).counts,)
    return {name: (call, [part.tolist() for part in call(1)]) for name, call in calls.items()}


def check(searches, n_threads, n_rounds=1):
    for _ in range(n_rounds):
        for call, expected in searches.values():
            assert [part.tolist() for part in call(n_threads)] == expected


@pytest.mark.parametrize("n_threads", [2, 3, 8, 64])
def test_any_number_of_threads_answers_the_same(searches, n_threads):
    check(searches, n_threads, 3)


def test_calls_from_many_threads_at_once_all_end_and_answer_the_same(searches):
    errors = []

    def work(n_threads):
        try:
            check(searches, n_threads, 4)
        except BaseException as error:  # noqa: BLE001 - to be seen on the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(1 + i % 4,), daemon=True) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []


def n_native_threads():
    with open(THREADS, encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))


@pytest.mark.skipif(not os.path.exists(THREADS), reason="counts threads as Linux tells them")
def test_threads_stay_and_no_more_are_started_than_needed(searches):
    check(searches, 3)
    before = n_native_threads()
    check(searches, 3, 5)
    assert n_native_threads() == before > 2


AFTER_FORK = """
import os, sys
import numpy as np
from rankbits.index import HammingIndex
packed = np.random.default_rng(0).integers(0, 256, (50_000, 8), np.uint8)
index = HammingIndex(64, "scan", n_threads=3)
index.add(packed)
expected = index.search(packed[:500], 5)[1]
for _ in range(3):  # a child, its child and so on
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    assert (index.search(packed[:500], 5)[1] == expected).all()
print("same", flush=True)
"""

AT_THE_END = """
import numpy as np
from rankbits.index import HammingIndex
packed = np.random.default_rng(0).integers(0, 256, (50_000, 8), np.uint8)
index = HammingIndex(64, "scan", n_threads=4)
index.add(packed)
index.search(packed[:500], 5)
print("same", flush=True)
"""


@pytest.mark.parametrize("script", [AFTER_FORK, AT_THE_END], ids=["fork", "end"])
def test_a_process_that_forks_or_ends_is_none_the_worse_for_threads(script):
    for _ in range(5):
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "same\n", "")
