"""The HTTP protocol of uvicorn, with bounds on what a connection may do outside of a request.

uvicorn closes connections that are idle between requests. The others are bounded here: headers
without an end, half of a request, silence, requests in a row, and answers that nobody takes.
"""

from typing import Any

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankbits.service._connections import Connections
from rankbits.service._problems import RequestProblem

_MOST_PIPELINED = 16  # requests of a connection that wait for the one that is answered
_FAREWELL_SECONDS = 1.0  # in which a client that still sends can read why it was refused


class BoundedProtocol(HttpToolsProtocol):
    """One connection; `protocol_of` gives the class that belongs to a server."""

    registry: Connections
    waits_since = ends_at = drained_at = 0.0
    n_header_bytes = n_silent_bytes = n_unsent_bytes = 0
    is_refused = False

    @property
    def is_answering(self) -> bool:
        """Whether a request has come and its answer has not been handed over."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_waiting(self) -> bool:
        """Whether the client is to do something: to ask, to send its body, to take an answer."""
        is_sending = self.is_answering and self.cycle.more_body
        return not self.is_answering or is_sending or self.transport.get_write_buffer_size() > 0

    def look(self, now: float) -> None:
        """Close the connection if it has waited for too long, or if nobody takes the answer."""
        n_unsent = self.transport.get_write_buffer_size()
        if not 0 < self.n_unsent_bytes <= n_unsent:
            self.drained_at = now
        self.n_unsent_bytes = n_unsent
        if n_unsent and now - self.drained_at > self.registry.limits.idle_seconds:
            self.transport.abort()
        elif not n_unsent and not self.is_answering and now > self.ends_at:
            self._end()

    def _wait(self, seconds: float) -> None:
        """Begin to wait for the client, no longer than this."""
        self.waits_since = self.loop.time()
        self.ends_at = self.waits_since + seconds

    def _end(self) -> None:
        if self.n_silent_bytes and not self.is_refused:
            seconds = self.registry.limits.header_seconds
            self._refuse("slow-headers", f"headers may take {seconds} seconds")
        else:
            self.transport.abort()

    # Beginning and end

    def connection_made(self, transport: Any) -> None:
        """Take the connection in, or say that there are too many."""
        super().connection_made(transport)
        self._wait(self.registry.limits.header_seconds)
        if not self.registry.admit(self):
            self._refuse("unavailable", "the server has as many connections as it can hold")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.registry.forget(self)
        super().connection_lost(exc)

    # What arrives

    def data_received(self, data: bytes) -> None:
        """Parse the next bytes; those that make nothing complete are counted."""
        if self.is_refused:
            return
        self.n_silent_bytes += len(data)
        super().data_received(data)
        is_too_much = self.n_silent_bytes > self.registry.limits.header_bytes
        if is_too_much and not self.is_refused:
            self._refuse_headers()

    def on_message_begin(self) -> None:
        """The first byte of a request: its headers have their time from here on."""
        super().on_message_begin()
        self._wait(self.registry.limits.header_seconds)
        self.n_header_bytes = 0

    def on_url(self, url: bytes) -> None:
        """A part of the request's address."""
        self._count_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or one that follows a body."""
        self._count_header(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A request, which waits if another one of this connection is being answered."""
        self.n_silent_bytes = 0
        if len(self.pipeline) >= _MOST_PIPELINED:
            detail = f"{_MOST_PIPELINED} requests of a connection may wait for their answers"
            self._refuse("too-many-requests", detail)
            raise HttpParserError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which the application counts."""
        self.n_silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request."""
        self.n_silent_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The end of an answer: the connection waits for the next request."""
        self._wait(self.registry.limits.idle_seconds)
        super().on_response_complete()

    def _count_header(self, n_bytes: int) -> None:
        self.n_header_bytes += n_bytes
        if self.n_header_bytes > self.registry.limits.header_bytes:
            self._refuse_headers()
            raise HttpParserError  # so that nothing more is parsed

    # What is refused

    def _refuse_headers(self) -> None:
        n_bytes = self.registry.limits.header_bytes
        self._refuse("headers-too-large", f"headers may have {n_bytes} bytes")

    def _refuse(self, kind: str, detail: str) -> None:
        """Answer with a problem where no other answer has begun, and close.

        What still arrives is dropped for a moment: to close at once would take the answer away.
        """
        self.is_refused = True
        if self.is_answering:
            self.transport.close()
            return
        self.transport.write(raw_response(RequestProblem(kind, detail)))
        self.transport.write_eof()
        self._wait(_FAREWELL_SECONDS)

    def send_400_response(self, msg: str) -> None:
        """Answer to what is no HTTP."""
        if not self.is_refused:
            super().send_400_response(msg)


def protocol_of(connections: Connections) -> type[BoundedProtocol]:
    """The protocol of a server's connections."""
    return type("ServerProtocol", (BoundedProtocol,), {"registry": connections})


def raw_response(problem: RequestProblem) -> bytes:
    """The bytes of an answer that closes its connection."""
    response = problem.response()
    headers = [(b"connection", b"close"), *response.raw_headers]
    lines = [f"HTTP/1.1 {problem.status} {problem.title}".encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", bytes(response.body)])
