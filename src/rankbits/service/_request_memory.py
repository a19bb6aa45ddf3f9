"""Memory of the requests that are being answered: an estimate, reserved before it is taken.

Only requests that need much reserve anything, so a small search never waits behind large ones.
Whoever finds too little waits for its turn; where too many wait already, the answer is 503.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from rankbits.service._problems import RequestProblem

PER_BODY_BYTE = 8  # bytes while a byte of a body is received, read and answered
PER_RESULT = 256  # bytes while an item of an answer is collected and written
_MOST_WAITING = 64
_NOTHING = nullcontext()  # for small requests, which reserve nothing


class RequestMemory:
    """Bytes that large requests may take together.

    Parameters
    ----------
    n_bytes : how many there are
    """

    def __init__(self, n_bytes: int) -> None:
        self._total = self._free = n_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def reserved(self, n_bytes: int) -> AbstractAsyncContextManager[None]:
        """Hold so many bytes during a block, all that there are if it is more than that."""
        return self._reserved(min(n_bytes, self._total)) if n_bytes else _NOTHING

    @asynccontextmanager
    async def _reserved(self, n_bytes: int) -> AsyncIterator[None]:
        await self._take(n_bytes)
        try:
            yield
        finally:
            self._give_back(n_bytes)

    async def _take(self, n_bytes: int) -> None:
        if not self._waiting and n_bytes <= self._free:
            self._free -= n_bytes
            return
        if len(self._waiting) >= _MOST_WAITING:
            raise RequestProblem(
                "unavailable", "large requests have taken all memory that they may; try again"
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((n_bytes, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn had just come
                self._give_back(n_bytes)
            else:  # those behind it may have been waiting for its turn only
                self._give_back(0)
            raise

    def _give_back(self, n_bytes: int) -> None:
        self._free += n_bytes
        while self._waiting:
            needed, turn = self._waiting[0]
            if turn.done():  # whoever waited has left
                self._waiting.popleft()
            elif needed <= self._free:
                self._waiting.popleft()
                self._free -= needed
                turn.set_result(None)
            else:
                return
