"""What this machine can do at best, measured: compiles machine_bounds.cpp at first use.

The library is not part of the package, since only benchmarks need it. It is built in a temporary
folder, for what every machine of this kind has, and for counting bits, which nearly every one has.
"""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".cpp")


@cache
def _library() -> ctypes.CDLL:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        sys.exit(
            "the bounds of this machine are measured by compiled code, and there is no C++ "
            "compiler: install g++, or name one in the environment variable CXX"
        )
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "machine_bounds.so"
        options = ["-std=c++20", "-O3", "-shared", "-fPIC"]
        if platform.machine() in ("x86_64", "AMD64"):
            options.append("-mpopcnt")
        subprocess.run([compiler, *options, str(_SOURCE), "-o", str(built)], check=True)
        library = ctypes.CDLL(str(built))  # stays mapped when the file is gone
    for function in (
        library.increments_per_second,
        library.popcounts_per_second,
        library.read_bytes_per_second,
    ):
        function.restype = ctypes.c_double
    return library


def increments_per_second(n_bins: int, *, is_joint: bool) -> float:
    """Increments of counters at random distances: n_bins counters, or if joint n_bins squared."""
    call = _library().increments_per_second
    return float(call(ctypes.c_size_t(n_bins), ctypes.c_bool(is_joint)))


def popcounts_per_second() -> float:
    """Pairs of 64 bits that are loaded, compared and counted."""
    return float(_library().popcounts_per_second())


def read_bytes_per_second(n_bytes: int) -> float:
    """Bytes read of an array of n_bytes that is summed over and over."""
    return float(_library().read_bytes_per_second(ctypes.c_size_t(n_bytes)))
