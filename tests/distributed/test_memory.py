"""Workers keep the memory that a task frees."""

import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes, resource
from rankbits.distributed._memory import keep_freed_memory

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
n_bytes = 3 << 20


def faults_of_one_use():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    place = libc.malloc(n_bytes)
    ctypes.memset(place, 1, n_bytes)
    libc.free(place)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


assert keep_freed_memory()
faults_of_one_use()
print(faults_of_one_use())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library is another one")
def test_memory_that_was_freed_is_not_given_back_to_the_system():
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100  # of 768 pages
