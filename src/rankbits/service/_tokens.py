"""The bearer token that a change needs."""

import hashlib
import hmac
import os
from typing import Any

from fastapi import Request

from rankbits.errors import InputError
from rankbits.service._problems import RequestProblem

VARIABLE = "RANKBITS_TOKEN"
_LEAST = 16  # characters


def load_token(file: str | os.PathLike[str] | None) -> str:
    """The bearer token of changes, which must have 16 characters or more.

    Parameters
    ----------
    file : str, path-like or None
        File that holds the token. None takes it from the variable RANKBITS_TOKEN.
    """
    source = VARIABLE if file is None else os.fspath(file)
    if file is None:
        token = os.environ.get(VARIABLE, "")
    else:
        with open(file, encoding="ascii", errors="replace") as stream:
            token = stream.read().strip()
    return check_token(source, token)


def check_token(source: str, token: Any) -> str:
    """A token that nobody guesses and that a header can carry; `source` says where it came from."""
    is_text = isinstance(token, str) and token.isascii() and token.isprintable()
    if not is_text or len(token) < _LEAST or " " in token:
        raise InputError(
            f"{source} must hold a token of at least {_LEAST} ASCII characters without spaces, to "
            "accept changes; make one with: python3 -c 'import secrets; "
            "print(secrets.token_urlsafe(32))'"
        )
    return str(token)


def require_token(request: Request, token: str | None) -> None:
    """Refuse a change without the token, in a time that does not depend on the one that came."""
    if token is None:
        raise RequestProblem("writes-off", "start the server with --writable to change items")
    values = request.headers.getlist("authorization")
    scheme, _, given = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    digests = (hashlib.sha256(text.strip().encode()).digest() for text in (given, token))
    if not hmac.compare_digest(*digests) or scheme.lower() != "bearer":
        raise RequestProblem(
            "unauthorized",
            "changes need the header Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": 'Bearer realm="rankbits"'},
        )
