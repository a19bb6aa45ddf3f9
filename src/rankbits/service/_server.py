"""Running the application with uvicorn: one process, its own socket, a quiet end."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from rankbits._check import extra
from rankbits.errors import RankbitsError
from rankbits.service._connections import BACKLOG, Connections
from rankbits.service._limits import Limits
from rankbits.service._log_lines import limit_log_lines, log_loop_error

_log = logging.getLogger("rankbits.service")
_SWITCH_SECONDS = 0.0002
_END_SECONDS = 5  # of the time after a signal, for threads to end once requests were cancelled


def serve(
    app: Any,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    on_ready: Callable[[str], None] | None = None,
    grace_seconds: int = 30,
    access_log: bool = False,
) -> None:
    """Serve an application until SIGTERM or Ctrl-C; requests that are being answered are finished.

    Parameters
    ----------
    app : ASGI application
        What `create_app` returned.
    host : str, default="127.0.0.1"
        Address to listen on. Only the default keeps other machines out.
    port : int, default=8000
        Port to listen on; 0 takes one that is free.
    on_ready : callable or None, default=None
        Called with the address once requests are accepted.
    grace_seconds : int, default=30
        How long the end may take after the signal. Requests may take all of it but some seconds to
        finish, then they are cancelled. A thread that runs on does not hold the process: it ends
        without it, with exit code 1, and a change that was not acknowledged is whole or not there.
    access_log : bool, default=False
        Whether each request is a line on standard error.
    """
    most_seconds = max(1, grace_seconds - _END_SECONDS)
    server = build_server(app, grace_seconds=most_seconds, access_log=access_log)
    limit_log_lines()
    # A thread that comes back from a search waits so long for the event loop to let it go on.
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Threads of BLAS go on spinning for milliseconds after a product, and searches wait for a core.
    with threadpool_limits(limits=1, user_api="blas"), listening(host, port) as listener:
        asyncio.run(_run(server, listener, on_ready, _LastResort(grace_seconds)))


def build_server(app: Any, *, grace_seconds: int = 30, access_log: bool = False) -> Any:
    """A server of uvicorn, which trusts no proxy and does not name itself."""
    uvicorn = extra("uvicorn", "rankbits serve", "serve")
    extra("httptools", "rankbits serve", "serve")
    from rankbits.service._protocol import protocol_of

    limits = _limits_of(app)
    config = uvicorn.Config(
        app,
        log_level="info" if access_log else "warning",
        access_log=access_log,
        timeout_graceful_shutdown=grace_seconds,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        http=protocol_of(Connections(limits)),
        timeout_keep_alive=limits.idle_seconds,
        backlog=BACKLOG,
    )
    return _server_class(uvicorn)(config)


def _limits_of(app: Any) -> Limits:
    """The limits of an application of ours; those of any other are the defaults."""
    parts = getattr(getattr(app, "state", None), "parts", None)
    return getattr(parts, "limits", None) or Limits()


class _LastResort:
    """Ends the process some time after its first signal, whatever its threads do."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(max(0.5, seconds - 1), self._leave)
        self._timer.daemon = True

    def start(self) -> None:
        """Begin to wait, once."""
        if self._timer.ident is None:
            self._timer.start()

    @staticmethod
    def _leave() -> None:
        _log.error("work that went on after the signal is given up")
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(1)


async def _run(
    server: Any,
    listener: socket.socket,
    on_ready: Callable[[str], None] | None,
    last_resort: _LastResort,
) -> None:
    def stop() -> None:
        last_resort.start()
        server.stop()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not task.done():
        await asyncio.sleep(0.01)
    if on_ready is not None and server.started:
        on_ready(url_of(listener))
    await task


def _server_class(uvicorn: Any) -> Any:
    """The server of uvicorn, which ends without raising the signal again."""

    class Server(uvicorn.Server):  # type: ignore[misc]
        def stop(self) -> None:
            """Finish; a second signal does not wait for requests."""
            self.force_exit = bool(self.should_exit)
            self.should_exit: bool = True

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; an address that is taken is one sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY; without, each answer waits for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            raise RankbitsError(f"{host}:{port} cannot be listened on: {error}") from None
        yield listener
    finally:
        listener.close()


def url_of(listener: socket.socket) -> str:
    """The address that a socket listens on."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
