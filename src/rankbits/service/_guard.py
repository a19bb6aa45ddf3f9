"""What stands before every route: limits, the host name, headers of safety, and the metrics.

It is plain ASGI, outside of the routes: a body is counted while it arrives and never read as a
whole first, and whatever goes wrong within becomes a response.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect

from rankbits.service._limits import Limits
from rankbits.service._metrics import Metrics
from rankbits.service._problems import RequestProblem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log = logging.getLogger("rankbits.service")
_UNLIMITED = ("/healthz", "/readyz", "/metrics")  # they must answer when nothing else can
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
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
    hosts : names that the Host header may have, or None for any
    """

    def __init__(
        self, app: Any, limits: Limits, metrics: Metrics, hosts: frozenset[str] | None
    ) -> None:
        self._app, self._limits, self._metrics, self._hosts = app, limits, metrics, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._limits.body_bytes)
        started = time.perf_counter()
        self._metrics.in_flight += 1
        try:
            await self._answer(exchange)
        finally:
            self._metrics.in_flight -= 1
            route, method, status = _route(scope), _method(scope), str(exchange.status)
            self._metrics.count(
                "rankbits_requests_total", route=route, method=method, status=status
            )
            seconds = time.perf_counter() - started
            self._metrics.observe("rankbits_request_seconds", seconds, route=route)

    async def _answer(self, exchange: "_Exchange") -> None:
        problem: RequestProblem | None = None
        try:
            self._require_host(exchange)
            self._require_place(exchange)
            exchange.require_body()
            async with asyncio.timeout(self._limits.seconds):
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

    def _require_host(self, exchange: "_Exchange") -> None:
        """Refuse other names: by one of its own, a foreign page could read a local server."""
        if self._hosts is None:
            return
        names = [value for key, value in exchange.scope["headers"] if key == b"host"]
        if len(names) != 1 or host_name(names[0].decode("latin-1")) not in self._hosts:
            raise RequestProblem(
                "misdirected", f"the Host header must be one of {sorted(self._hosts)}"
            )

    def _require_place(self, exchange: "_Exchange") -> None:
        if exchange.scope["path"] in _UNLIMITED or self._metrics.in_flight <= self._limits.requests:
            return
        raise RequestProblem(
            "too-many-requests", f"{self._limits.requests} requests at once are the most; try again"
        )

    def _too_slow(self, exchange: "_Exchange") -> RequestProblem:
        seconds = self._limits.seconds
        kind = "slow-body" if exchange.waits_for_body else "timeout"
        self._metrics.count("rankbits_refused_total", reason=kind)
        what = "the body was not there" if exchange.waits_for_body else "there was no answer"
        close = {"Connection": "close"} if exchange.waits_for_body else {}
        return RequestProblem(kind, f"{what} after {seconds} seconds", headers=close)


class _Exchange:
    """One request and its response, as far as they have come."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, most_bytes: int) -> None:
        self.scope, self._receive, self._send, self._most = scope, receive, send, most_bytes
        self.status = 499  # of a client that leaves before the answer
        self.has_begun = self.waits_for_body = self._has_body = False
        self._n_bytes = 0

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
        """The next part of the request, counted."""
        self.waits_for_body = not self._has_body  # what comes behind the body is that nobody waits
        message = await self._receive()
        self._n_bytes += len(message.get("body", b""))
        self.waits_for_body = bool(message.get("more_body"))
        self._has_body = not self.waits_for_body
        if self._n_bytes > self._most:
            raise self._too_large()
        return message

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """A part of the response, with the headers that all have."""
        if message["type"] == "http.response.start":
            self.has_begun, self.status = True, message["status"]
            message = {**message, "headers": [*message["headers"], *_HEADERS]}
        await self._send(message)

    def _too_large(self) -> RequestProblem:
        detail = f"a body may have {self._most} bytes; send fewer queries at once"
        return RequestProblem("body-too-large", detail, headers={"Connection": "close"})


def host_name(host: str) -> str:
    """A Host header without its port.

    >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.lower().rpartition(":")
    return (
        name
        if colon and (port.isdecimal() or not port) and not port.endswith("]")
        else host.lower()
    )


def _route(scope: Scope) -> str:
    """The pattern of the path, or one word for all that lead nowhere."""
    return str(getattr(scope.get("route"), "path", "none"))


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"
