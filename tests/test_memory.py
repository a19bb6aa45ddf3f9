"""Memory that is freed is kept for the next use."""

import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes, resource
from rankbits._memory import all_memory_kept, keep_freed_memory

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def faults_of_one_use(n_bytes):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    place = libc.malloc(n_bytes)
    ctypes.memset(place, 1, n_bytes)
    libc.free(place)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def faults_of_next_use(n_bytes):
    faults_of_one_use(n_bytes)
    return faults_of_one_use(n_bytes)


def resident_bytes():
    return 4096 * int(open("/proc/self/statm").read().split()[1])


"""
_SMALL, _LARGE = 3 << 20, 100 << 20


def run(lines: str) -> list[int]:
    program = [sys.executable, "-c", _PROGRAM + lines]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the C library is another one")


def test_memory_that_was_freed_is_not_given_back_to_the_system():
    (faults,) = run(f"assert keep_freed_memory()\nprint(faults_of_next_use({_SMALL}))")
    assert faults < 100  # of 768 pages


def test_large_memory_is_kept_within_the_block_and_given_back_after_it():
    within, kept, after, left = run(
        "with all_memory_kept():\n"
        f"    print(faults_of_next_use({_LARGE}), resident_bytes())\n"
        f"print(faults_of_next_use({_LARGE}), resident_bytes())"
    )
    assert within < 100 < after  # of 25,600 pages
    assert kept - left > _LARGE // 2
