"""All connections of a server: so many that the process always has files left to open.

Connections that wait for too long are closed a moment later. When there are too many, the one that
has waited longest makes room, so somebody who opens thousands keeps nobody else out.
"""

import asyncio
import os
import resource
from typing import Any

from rankbits.service._limits import Limits

BACKLOG = 64  # connections that wait to be accepted
_SPARE_FILES = 64  # for the collection, the items and the log, while all connections are open
_FEWEST = 8
_SWEEP_SECONDS = 0.25


class Connections:
    """All connections of a server.

    Parameters
    ----------
    limits : Limits
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.most = limits, most_connections(limits.connections)
        self._all: set[Any] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    def admit(self, connection: Any) -> bool:
        """Take in a connection, in place of the one that has waited longest if they are many."""
        if len(self._all) >= self.most and not self._make_room():
            return False
        self._all.add(connection)
        if self._sweeper is None:
            self._plan_sweep()
        return True

    def forget(self, connection: Any) -> None:
        """A connection that is closed."""
        self._all.discard(connection)

    def _make_room(self) -> bool:
        waiting = [one for one in self._all if one.is_waiting]
        if waiting:
            longest = min(waiting, key=lambda one: one.waits_since)
            longest.transport.abort()
            self.forget(longest)  # it is closed when the loop comes to it
        return bool(waiting)

    def _plan_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Close every connection whose time is over."""
        now = asyncio.get_running_loop().time()
        for connection in list(self._all):
            connection.look(now)
        self._sweeper = None
        if self._all:
            self._plan_sweep()


def most_connections(most: int) -> int:
    """As many connections as the limit of open files leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    return max(_FEWEST, min(most, soft - n_open_files() - BACKLOG - _SPARE_FILES))


def n_open_files() -> int:
    """Open files of this process, where the system tells."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 32
