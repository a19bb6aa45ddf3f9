"""What stands before every route: limits, the host name, headers of safety, and the metrics.

It is plain ASGI, outside of the routes: a body is counted while it arrives and never read as a
whole first, and whatever goes wrong within becomes a response. A request takes its place among
those that are worked on once its body is there: clients that send slowly keep nobody else out.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect

from rankbits.service._limits import Limits
from rankbits.service._metrics import Metrics
from rankbits.service._origins import require_host, require_own_page
from rankbits.service._problems import RequestProblem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log = logging.getLogger("rankbits.service")
_WITH_BODY = ("POST", "PUT")  # their routes read it before they do anything
_UNLIMITED = ("/healthz", "/readyz", "/metrics")  # they must answer when nothing else can
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)


class Guard:
    """Middleware around the routes.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    metrics : Metrics
    hosts : names that the Host header may have beside addresses, or None for any
    """

    def __init__(
        self, app: Any, limits: Limits, metrics: Metrics, hosts: frozenset[str] | None
    ) -> None:
        self._app, self.limits, self._metrics, self._hosts = app, limits, metrics, hosts
        self._arriving: dict[_Exchange, None] = {}  # bodies, the oldest first
        self._n_working = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self)
        started = time.perf_counter()
        self._metrics.in_flight += 1
        try:
            await self._answer(exchange)
        finally:
            self._metrics.in_flight -= 1
            self._n_working -= exchange.has_place
            self._arriving.pop(exchange, None)
            route, method, status = _route(scope), _method(scope), str(exchange.status)
            self._metrics.count(
                "rankbits_requests_total", route=route, method=method, status=status
            )
            seconds = time.perf_counter() - started
            self._metrics.observe("rankbits_request_seconds", seconds, route=route)

    async def _answer(self, exchange: "_Exchange") -> None:
        problem: RequestProblem | None = None
        try:
            headers = exchange.scope["headers"]
            require_host([value for key, value in headers if key == b"host"], self._hosts)
            require_own_page(exchange.scope["method"], dict(headers))
            exchange.require_body()
            if exchange.scope["method"] not in _WITH_BODY:
                self.take_place(exchange)
            async with asyncio.timeout(self.limits.seconds) as exchange.clock:
                await self._app(exchange.scope, exchange.receive, exchange.send)
        except RequestProblem as refusal:
            problem = refusal
            self._metrics.count("rankbits_refused_total", reason=refusal.kind)
        except TimeoutError:
            problem = self._too_slow(exchange)
        except ClientDisconnect:  # nobody is left to be answered
            return
        except asyncio.CancelledError:  # as uvicorn does with what is left when the server ends
            problem = RequestProblem("unavailable", "the server ends; try again later")
        except Exception:  # noqa: BLE001 - whatever it is, the caller gets an answer
            _log.exception("a request failed: %s", exchange.scope["path"])
            problem = RequestProblem(
                "internal", "the request was not answered; the server's log says why"
            )
        if problem is not None and not exchange.has_begun:
            await problem.response()(exchange.scope, exchange.receive, exchange.send)

    def take_place(self, exchange: "_Exchange") -> None:
        """Count a request that has arrived among those that are worked on."""
        if exchange.scope["path"] in _UNLIMITED or exchange.has_place:
            return
        most = self.limits.requests
        if self._n_working >= most:
            detail = f"{most} requests at once are the most; try again"
            raise RequestProblem("too-many-requests", detail)
        exchange.has_place = True
        self._n_working += 1

    def expect_body(self, exchange: "_Exchange") -> None:
        """A body is on its way; when they are too many, the oldest is given up."""
        self._arriving[exchange] = None
        if len(self._arriving) > self.limits.requests:
            oldest = next(iter(self._arriving))
            del self._arriving[oldest]
            oldest.end_at(0)

    def end_body(self, exchange: "_Exchange") -> None:
        """A body is there."""
        self._arriving.pop(exchange, None)
        self.take_place(exchange)

    def _too_slow(self, exchange: "_Exchange") -> RequestProblem:
        seconds = self.limits.seconds
        kind = "slow-body" if exchange.waits_for_body else "timeout"
        self._metrics.count("rankbits_refused_total", reason=kind)
        if not exchange.waits_for_body:
            return RequestProblem(kind, f"there was no answer after {seconds} seconds")
        detail = (
            f"a body may take {seconds} seconds and pause for {self.limits.idle_seconds}, less "
            "while many others arrive"
        )
        return RequestProblem(kind, detail, headers={"Connection": "close"})


class _Exchange:
    """One request and its response, as far as they have come."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, guard: Guard) -> None:
        self.scope, self._receive, self._send, self._guard = scope, receive, send, guard
        self.status = 499  # of a client that leaves before the answer
        self.has_begun = self.waits_for_body = self.has_place = False
        self.clock: asyncio.Timeout | None = None
        self._most, self._idle = guard.limits.body_bytes, guard.limits.idle_seconds
        self._n_bytes, self._is_complete = 0, False

    def header(self, name: bytes) -> str:
        """The first header of a name, or nothing."""
        values = (value for key, value in self.scope["headers"] if key == name)
        return next(values, b"").decode("latin-1")

    def require_body(self) -> None:
        """Refuse by its headers a body that is too large or compressed."""
        length = self.header(b"content-length")
        if length.isdecimal() and int(length) > self._most:
            raise self._too_large()
        if self.header(b"content-encoding").strip().lower() not in ("", "identity"):
            raise RequestProblem(
                "unsupported-media-type", "bodies must come without Content-Encoding"
            )

    async def receive(self) -> MutableMapping[str, Any]:
        """The next part of the request, counted; a client that pauses for too long is given up."""
        if self._is_complete:  # what comes after it is only that the client has left
            return await self._receive()
        if not self._is_expected:  # it is there already, as those of small requests are
            self._is_complete = True
            self._guard.end_body(self)
            return self._counted(await self._receive())
        clock, self.waits_for_body = self.clock, True
        end = None if clock is None else clock.when()
        self._guard.expect_body(self)
        self.end_at(asyncio.get_running_loop().time() + self._idle)
        message = await self._receive()
        if clock is not None and end is not None:
            clock.reschedule(end)
        self.waits_for_body = bool(message.get("more_body"))
        self._counted(message)
        if not self.waits_for_body:
            self._is_complete = True
            self._guard.end_body(self)
        return message

    @property
    def _is_expected(self) -> bool:
        """Whether parts of the body are still on their way, as far as uvicorn knows."""
        cycle = getattr(self._receive, "__self__", None)
        return bool(getattr(cycle, "more_body", True))

    def _counted(self, message: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """A part of the body, unless it is too much."""
        self._n_bytes += len(message.get("body", b""))
        if self._n_bytes > self._most:
            raise self._too_large()
        return message

    def end_at(self, moment: float) -> None:
        """End the request at this time of the event loop, if it does not end before."""
        if self.clock is not None and moment < (self.clock.when() or moment):
            self.clock.reschedule(moment)

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """A part of the response, with the headers that all have."""
        if message["type"] == "http.response.start":
            self.has_begun, self.status = True, message["status"]
            message = {**message, "headers": [*message["headers"], *_HEADERS]}
        await self._send(message)

    def _too_large(self) -> RequestProblem:
        detail = f"a body may have {self._most} bytes; send fewer queries at once"
        return RequestProblem("body-too-large", detail, headers={"Connection": "close"})


def _route(scope: Scope) -> str:
    """The pattern of the path, or one word for all that lead nowhere."""
    return str(getattr(scope.get("route"), "path", "none"))


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"
