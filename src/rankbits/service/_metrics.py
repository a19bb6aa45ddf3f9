"""Counters and histograms in the text format of Prometheus.

Labels are routes, methods, statuses and reasons, never what a caller sends, so their number is
bounded. Everything is counted in the one thread of the event loop or under the lock.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What the server has done since it was started."""

    def __init__(self) -> None:
        self.started = time.time()
        self.in_flight = 0
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._histograms: dict[str, dict[Labels, _Histogram]] = defaultdict(dict)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counters[name][tuple(sorted(labels.items()))] += amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add an observation to a histogram."""
        key = tuple(sorted(labels.items()))
        with self._lock:
            if key not in self._histograms[name]:
                bounds = _SECONDS if name.endswith("_seconds") else _SIZES
                self._histograms[name][key] = _Histogram(bounds)
            self._histograms[name][key].add(value)

    def text(self, gauges: Mapping[str, float]) -> str:
        """All of them, and gauges that are read now."""
        lines: list[str] = []
        with self._lock:
            for name in sorted(self._counters):
                lines += _head(name, "counter")
                lines += [_line(name, key, n) for key, n in sorted(self._counters[name].items())]
            for name in sorted(self._histograms):
                lines += _head(name, "histogram")
                for key, histogram in sorted(self._histograms[name].items()):
                    lines += histogram.lines(name, key)
        values = {
            **gauges,
            "rankbits_requests_in_flight": self.in_flight,
            "process_resident_memory_bytes": resident_bytes(),
            "process_start_time_seconds": self.started,
        }
        for name, value in values.items():
            lines += [*_head(name, "gauge"), _line(name, (), value)]
        return "\n".join(lines) + "\n"


class _Histogram:
    """Observations by upper bound."""

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        place = sum(value > bound for bound in self.bounds)
        self.counts[place] += 1
        self.total += value

    def lines(self, name: str, labels: Labels) -> list[str]:
        lines, n = [], 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            n += count
            lines.append(_line(f"{name}_bucket", (*labels, ("le", str(bound))), n))
        return [
            *lines,
            _line(f"{name}_sum", labels, self.total),
            _line(f"{name}_count", labels, n),
        ]


_HELP = {
    "rankbits_requests_total": "Requests by route, method and status.",
    "rankbits_request_seconds": "Time from the first byte of a request to the end of its answer.",
    "rankbits_refused_total": "Requests that exceeded a limit or came to the wrong host.",
    "rankbits_queries_total": "Queries that were searched, by kind.",
    "rankbits_scan_queries": "Queries that were searched together in one call.",
    "rankbits_scan_seconds": "Time of one call of the native search.",
    "rankbits_written_items_total": "Items that were upserted or removed, acknowledged as durable.",
    "rankbits_items": "Items of the collection.",
    "rankbits_collection_change": "Number of the last change of the collection.",
    "rankbits_requests_in_flight": "Requests that are being answered.",
    "process_resident_memory_bytes": "Memory of the process, mapped files included.",
    "process_start_time_seconds": "When the server was started, seconds since 1970.",
}


def _head(name: str, kind: str) -> list[str]:
    return [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    pairs = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels)
    return f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def resident_bytes() -> int:
    """Memory of this process, 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
