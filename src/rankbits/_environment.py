"""Where a number was measured: versions, processor, threads, memory."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


def environment(n_threads: int | None) -> dict[str, Any]:
    """Versions of what computes, and the processors it may use; ready for JSON."""
    from rankbits import __version__

    return {
        "rankbits": __version__,
        "python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
        "machine": platform.machine(),
        "processors": _processors(),
        "threads": n_threads,
    }


def _version(package: str) -> str | None:
    """Version of an installed package, None if it is not there; nothing is imported."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory_mb() -> float | None:
    """The most memory this process has had so far, in MB; None where nobody counts it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
