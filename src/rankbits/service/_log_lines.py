"""Lines of the log: a failure that repeats is one line a minute, and no reason to fill a disk."""

import asyncio
import errno
import logging
import time
from collections.abc import Sequence
from typing import Any

_LOGGERS = ("asyncio", "rankbits.service", "uvicorn.error")
_SECONDS = 60.0
_MOST_KINDS = 1000
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("rankbits.service")


class OncePerMinute(logging.Filter):
    """Lets the first line of a kind through, and then one a minute with the number left out."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        super().__init__()
        self._seconds = seconds
        self._kinds: dict[tuple[Any, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is printed."""
        error = record.exc_info[0] if record.exc_info else None
        kind = (record.name, str(record.msg).partition("\n")[0], error)
        now, (before, n_left_out) = time.monotonic(), self._kinds.get(kind, (None, 0))
        if before is not None and now - before < self._seconds:
            self._kinds[kind] = before, n_left_out + 1
            return False
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        self._kinds[kind] = now, 0
        if n_left_out:
            record.msg = f"{record.msg} ({n_left_out} more like it were not printed)"
        return True


def limit_log_lines(names: Sequence[str] = _LOGGERS) -> None:
    """Print repeated failures once a minute."""
    for name in names:
        logger = logging.getLogger(name)
        if not any(isinstance(one, OncePerMinute) for one in logger.filters):
            logger.addFilter(OncePerMinute())


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the event loop says when something fails outside of a request."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _OUT_OF_RESOURCES:
        _log.warning("a connection could not be accepted: %s", error.strerror)
    else:
        loop.default_exception_handler(context)
