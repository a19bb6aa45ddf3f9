"""Memory that is taken and freed again and again is kept instead of given back to the system.

The C library gives large pieces back to the system as soon as they are freed, and each time one is
taken anew the system fills it with zeros page by page. That costs a tenth of a count of ties, and
two thirds of the time in which a network reads pictures, where every layer takes megabytes.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4  # numbers of glibc's mallopt
_KEPT_BYTES = 32 << 20  # the largest threshold that glibc learns by itself; it trims at twice that
_LARGEST, _PADDING = 2**31 - 1, 64 << 20  # what mallopt can be told, and what is taken at a time
_USUAL_MAPPINGS = 65_536


def keep_freed_memory() -> bool:
    """Tell the C library of this process what it would learn; False where it cannot be told."""
    return _set(
        {
            _MMAP_THRESHOLD: _KEPT_BYTES,
            _TRIM_THRESHOLD: 2 * _KEPT_BYTES,
            _TOP_PAD: 0,
            _MMAP_MAX: _USUAL_MAPPINGS,
        }
    )


@contextmanager
def all_memory_kept() -> Iterator[None]:
    """Keep all that is freed within a block, whatever its size, and give it back at the end."""
    _set({_MMAP_MAX: 0, _TRIM_THRESHOLD: _LARGEST, _TOP_PAD: _PADDING})
    try:
        yield
    finally:
        if keep_freed_memory():
            _library().malloc_trim(0)


def _set(options: dict[int, int]) -> bool:
    library = _library()
    if library is None:
        return False
    is_set = [library.mallopt(*option) for option in options.items()]
    return all(is_set)


@cache
def _library() -> Any:
    """The C library, if it is glibc."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
