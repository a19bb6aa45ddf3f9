"""A long count can be stopped, lets other threads run, and takes little memory."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from oracles.counting import random_codes
from rankbits import affinity, count_ties
from rankbits.errors import InputError

LONG_COUNT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it: make test &
import numpy as np
from rankbits import BinaryCodes, affinity, count_ties
rng = np.random.default_rng(0)
queries, database = (
    BinaryCodes(rng.integers(0, 256, (n, 16), np.uint8), 128) for n in (100_000, 200_000)
)
same = {affinity}
print("counting", flush=True)
try:
    count_ties(queries, database, same)
except KeyboardInterrupt:
    print("stopped")
"""
LONG_AFFINITIES = {
    "classes": "affinity.classes(rng.integers(0, 9, 100_000), rng.integers(0, 9, 200_000))",
    "tags": "affinity.tags(np.ones((100_000, 9), bool), np.ones((200_000, 9), bool))",
    "judgements": "affinity.judgements([(0, 0, 1)], 100_000, 200_000)",
    "neighbours": "affinity.neighbours(np.ones((100_000, 1)), np.ones((200_000, 1)), [1.0], [1])",
}


@pytest.mark.unsanitized  # what it measures takes longer there
@pytest.mark.parametrize(
    ("kind", "n_threads"),
    [("classes", 1), ("classes", 2), ("tags", 2), ("judgements", 1), ("neighbours", 1)],
)
def test_ctrl_c_stops_a_long_count_within_a_second(kind, n_threads):
    script = LONG_COUNT.replace("{affinity}", LONG_AFFINITIES[kind])
    environment = {**os.environ, "RANKBITS_NUM_THREADS": str(n_threads)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout.readline() == "counting\n"
        time.sleep(0.4)
        assert process.poll() is None
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n"
        assert time.monotonic() - start < 1.0
        assert process.wait(timeout=10) == 0


def test_other_python_threads_run_while_one_counts(rng):
    queries, database = random_codes(rng, 2_000, 128), random_codes(rng, 50_000, 128)
    same = affinity.classes(np.zeros(2_000, int), np.zeros(50_000, int))
    counting = threading.Thread(
        target=count_ties, args=(queries, database, same), kwargs={"n_threads": 1}
    )
    start = time.monotonic()
    counting.start()
    n_steps, longest, last = 0, 0.0, time.monotonic()
    while counting.is_alive():
        time.sleep(0.001)
        n_steps, longest, last = (
            n_steps + 1,
            max(longest, time.monotonic() - last),
            time.monotonic(),
        )
    took = time.monotonic() - start
    assert n_steps > 10
    assert longest < 0.5 * took


def test_a_signal_handler_that_raises_its_own_error_stops_a_count_with_it(rng):
    class Alarm(Exception):
        pass

    def ring(*args):
        raise Alarm

    queries, database = random_codes(rng, 20_000, 128), random_codes(rng, 100_000, 128)
    same = affinity.classes(np.zeros(20_000, int), np.zeros(100_000, int))
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Alarm):
            count_ties(queries, database, same)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


MEMORY = """
import sys, threading, time
import numpy as np
from rankbits import BinaryCodes, affinity, count_ties

def anonymous_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

folder, kind = sys.argv[1:]
database = BinaryCodes.load(folder + "/codes.npy")
rng = np.random.default_rng(0)
queries = BinaryCodes(rng.integers(0, 256, (8, 8), np.uint8), 64)
if kind == "tags":
    mine = rng.integers(0, 2, (8, 3))
    same = affinity.tags(mine, np.load(folder + "/tags.npy", mmap_mode="r"))
elif kind == "judgements":
    same = affinity.judgements([(0, 5, 1), (3, 7, 4)], 8, len(database))
else:
    same = affinity.classes(np.arange(8), np.load(folder + "/labels.npy", mmap_mode="r"))
few = np.arange(1000)
count_ties(queries, database[:1000], affinity.classes(np.arange(8), few), n_threads=2)
peak, done = 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, anonymous_kb())
        time.sleep(0.0005)

before = anonymous_kb()
watcher = threading.Thread(target=watch)
watcher.start()
hist = count_ties(queries, database, same, n_threads=2)
done = True
watcher.join()
assert hist.items.sum() == 8 * len(database)
print(peak - before - hist.counts.nbytes // 1024)
"""


def has_anonymous_rss():
    try:
        with open("/proc/self/status") as status:
            return "RssAnon" in status.read()
    except OSError:
        return False


@pytest.fixture(scope="module")
def mapped_folder(tmp_path_factory):
    """Four million items of 64 bits on disk, with a class and three tags each."""
    folder = tmp_path_factory.mktemp("mapped")
    rng = np.random.default_rng(1)
    n_items = 4_000_000
    np.save(folder / "codes.npy", rng.integers(0, 2**63, n_items).view(np.uint8).reshape(-1, 8))
    np.save(folder / "labels.npy", rng.integers(0, 10, n_items))
    np.save(folder / "tags.npy", rng.integers(0, 2, (n_items, 3), np.uint8))
    return folder


@pytest.mark.unsanitized
@pytest.mark.skipif(not has_anonymous_rss(), reason="/proc/self/status has no RssAnon here")
@pytest.mark.parametrize("kind", ["classes", "tags", "judgements"])
def test_a_count_takes_at_most_16_mb_beyond_what_is_mapped_and_returned(mapped_folder, kind):
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(mapped_folder), kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(done.stdout) <= 16 * 1024


def test_a_wrong_number_of_threads_is_refused(rng, monkeypatch):
    codes = random_codes(rng, 2, 8)
    same = affinity.classes([1, 2], [1, 2])
    with pytest.raises(InputError, match="n_threads must be an integer from 1 to 1024, got 0"):
        count_ties(codes, codes, same, n_threads=0)
    monkeypatch.setenv("RANKBITS_NUM_THREADS", "many")
    with pytest.raises(InputError, match="RANKBITS_NUM_THREADS must be a number"):
        count_ties(codes, codes, same)
