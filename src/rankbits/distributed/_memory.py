"""Memory of workers: what a task frees is kept for the next one.

Counting and encoding take some megabytes at a time and free them again. The C library gives such
memory back to the system at once, until it has learned that it is needed again and again, and each
time it is taken anew the system fills it with zeros page by page, which costs a tenth of a count.
"""

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's mallopt
_KEPT_BYTES = 32 << 20  # the largest threshold that glibc learns by itself; it trims at twice that


@cache
def keep_freed_memory() -> bool:
    """Tell the C library of this process what it would learn; False where it cannot be told."""
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    is_set = [
        set_option(_MMAP_THRESHOLD, _KEPT_BYTES),
        set_option(_TRIM_THRESHOLD, 2 * _KEPT_BYTES),
    ]
    return all(is_set)
