"""Codes whose bytes are written to behind their back: an error, never a wrong sum or a crash."""

import subprocess
import sys

import numpy as np
import pytest

from oracles.counting import random_codes
from rankbits import BinaryCodes, affinity, count_ties
from rankbits.codes import hamming_distances
from rankbits.errors import InputError
from rankbits.histogram import largest_codes

N_ITEMS = 700
ODD_LENGTHS = [1, 3, 12, 31, 33, 60, 67, 121, 127, 135, 249, 255, 500, 1001, 4093]
AFFINITIES = {
    "classes": lambda n: affinity.classes(np.arange(5) % 3, np.arange(n) % 4),
    "judgements": lambda n: affinity.judgements([(0, 0, 1), (4, n - 1, 2)], 5, n),
    "tags": lambda n: affinity.tags(np.eye(5, 3), np.eye(n, 3) + np.eye(n, 3, -3)),
    "graded tags": lambda n: affinity.tags(np.ones((5, 3)), np.tri(n, 3, dtype=int), graded=True),
    "levels": lambda n: affinity.levels(np.arange(5 * n).reshape(5, n) % 7),
    "many levels": lambda n: affinity.levels(np.arange(5 * n).reshape(5, n) % 300),
}
CHANGED = "codes changed while they were being compared"


def changed_codes(n, n_bits):
    """Codes at the greatest distance from zeros, with all spare bits set after the checks."""
    packed = np.packbits(np.ones((n, n_bits), np.uint8), axis=1)
    codes = BinaryCodes(packed, n_bits)
    packed[:] = 255
    return codes


@pytest.mark.parametrize("kind", AFFINITIES)
@pytest.mark.parametrize("n_bits", ODD_LENGTHS)
def test_set_spare_bits_are_an_error_of_every_count(dispatch, n_bits, kind):
    queries = BinaryCodes.from_bits(np.zeros((5, n_bits), np.uint8))
    database = changed_codes(N_ITEMS, n_bits)
    with pytest.raises(InputError, match=CHANGED):
        count_ties(queries, database, AFFINITIES[kind](N_ITEMS))


@pytest.mark.parametrize("n_items", [2, 1500, 13_000])
@pytest.mark.parametrize("n_bits", [12, 31, 60, 127])
def test_set_spare_bits_are_an_error_however_many_items_there_are(dispatch, n_bits, n_items):
    queries = BinaryCodes.from_bits(np.zeros((5, n_bits), np.uint8))
    for same in AFFINITIES.values():
        with pytest.raises(InputError, match=CHANGED):
            count_ties(queries, changed_codes(n_items, n_bits), same(n_items))


@pytest.mark.parametrize("n_bits", ODD_LENGTHS)
def test_set_spare_bits_are_an_error_of_distances_and_largest_codes(dispatch, n_bits):
    queries = BinaryCodes.from_bits(np.zeros((5, n_bits), np.uint8))
    for function in (hamming_distances, largest_codes):
        with pytest.raises(InputError, match=CHANGED):
            function(queries, changed_codes(40, n_bits))


def test_set_spare_bits_of_the_own_item_are_an_error():
    packed = np.array([[0], [0xF0]], np.uint8)
    codes = BinaryCodes(packed, 4)
    same = affinity.classes([1, 1], [1, 1])
    hist = count_ties(codes, codes, same, exclude_self=np.array([1, 0]))
    assert hist.items.sum() == 2
    packed[1] = 0xFF
    with pytest.raises(InputError, match=CHANGED):
        count_ties(codes, codes, same, exclude_self=np.array([1, 0]))


def test_codes_of_no_changed_bytes_are_counted_as_before(dispatch, rng):
    for n_bits in ODD_LENGTHS:
        queries, database = random_codes(rng, 5, n_bits), random_codes(rng, N_ITEMS, n_bits)
        for kind, same in AFFINITIES.items():
            hist = count_ties(queries, database, same(N_ITEMS))
            assert (hist.items.sum(axis=1) == N_ITEMS).all(), kind


def test_bytes_that_change_while_they_are_counted_never_crash(tmp_path):
    script = """
import sys, threading, time
import numpy as np
from rankbits import BinaryCodes, affinity, count_ties
from rankbits.errors import InputError
rng = np.random.default_rng(0)
packed = np.zeros((20_000, 2), np.uint8)
mask = np.array([0xFF, 0xF0], np.uint8)
codes, queries = BinaryCodes(packed, 12), BinaryCodes(packed[:300].copy(), 12)
shared = BinaryCodes(packed[:300], 12)
labels = rng.integers(0, 5, 20_000)
hot = np.eye(5)[labels]
kinds = [
    affinity.classes(labels[:300], labels),
    affinity.tags(hot[:300], hot),
    affinity.judgements([(0, 0, 1)], 300, 20_000),
]
done = False
def write():
    while not done:
        packed[:] = rng.integers(0, 256, packed.shape, np.uint8)
        packed[:] &= mask
writer = threading.Thread(target=write)
writer.start()
end = time.monotonic() + 3
results = set()
while time.monotonic() < end:
    for same in kinds:
        for mine in (queries, shared):
            try:
                hist = count_ties(mine, codes, same)
                assert (hist.items.sum(axis=1) == 20_000).all()
                results.add("counted")
            except InputError as error:
                assert "changed while" in str(error) or "negative" in str(error), error
                results.add("refused")
done = True
writer.join()
print(sorted(results))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
