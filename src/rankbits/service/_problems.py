"""Errors as problem details (RFC 9457): JSON objects that a program can tell apart."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi.responses import JSONResponse

from rankbits.errors import FileFormatError, InputError, RankbitsError, UnknownOutcomeError

_log = logging.getLogger("rankbits.service")
MEDIA_TYPE = "application/problem+json"
_PREFIX = "urn:rankbits:problem:"
KINDS: dict[str, tuple[int, str]] = {  # status and title by the last word of the type
    "malformed": (400, "The body cannot be read"),
    "unauthorized": (401, "A bearer token is needed"),
    "writes-off": (403, "This server does not accept changes"),
    "foreign-page": (403, "Pages of other sites are not answered"),
    "not-found": (404, "There is no such thing"),
    "method-not-allowed": (405, "This path does not take this method"),
    "not-acceptable": (406, "The answer has no such form"),
    "slow-body": (408, "The body took too long to arrive"),
    "slow-headers": (408, "The headers took too long to arrive"),
    "body-too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body has a form that is not read"),
    "misdirected": (421, "This server does not answer to this host name"),
    "invalid": (422, "The request does not fit this collection"),
    "limit": (422, "The request exceeds a limit"),
    "too-many-requests": (429, "Too many requests at once"),
    "headers-too-large": (431, "The headers are too large"),
    "internal": (500, "The server has a bug"),
    "timeout": (503, "The answer took too long"),
    "unavailable": (503, "The server cannot answer now"),
    "storage": (503, "The storage failed"),
}


class RequestProblem(Exception):  # noqa: N818 - a problem, as RFC 9457 calls it
    """An error that becomes a response."""

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.errors = kind, detail, errors
        self.status, self.title = KINDS[kind]
        self.headers = dict(headers or {})
        if self.status in (429, 503):
            self.headers.setdefault("Retry-After", "1")

    def to_dict(self) -> dict[str, Any]:
        """The members of the problem details."""
        members: dict[str, Any] = {
            "type": _PREFIX + self.kind,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        return members if self.errors is None else {**members, "errors": self.errors}

    def response(self) -> JSONResponse:
        """The response to send."""
        return JSONResponse(
            self.to_dict(), self.status, headers=self.headers, media_type=MEDIA_TYPE
        )


def problem_of(error: RankbitsError) -> RequestProblem:
    """What a caller is told about an error of the library."""
    if isinstance(error, InputError) and not isinstance(error, FileFormatError):
        return RequestProblem("invalid", " ".join(str(error).split()))
    return storage_problem(error)


def storage_problem(error: Exception, kind: str = "storage") -> RequestProblem:
    """What a caller is told about files that cannot be used: not where they are.

    The log has it all, once a minute and kind however many requests fail.
    """
    if isinstance(error, UnknownOutcomeError):
        detail = "the change may or may not be on the disk; look whether it is there"
    else:
        detail = "a file of the server cannot be used"
    _log.error(f"{kind}: {detail}: %s", " ".join(str(error).split()))
    return RequestProblem(kind, f"{detail}; the server's log says more")
