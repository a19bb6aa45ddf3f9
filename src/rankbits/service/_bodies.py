"""Bodies: a request out of JSON or of arrays, an answer as the one or the other."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np
import orjson
from fastapi import Request, Response
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from rankbits import _wire
from rankbits._json import as_json
from rankbits.errors import InputError
from rankbits.service._forms import Form
from rankbits.service._json_fields import LISTS, no_such_field, read_field, read_fields
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem
from rankbits.service._request_memory import PER_BODY_BYTE, PER_RESULT

JSON = "application/json"
_ARRAYS = ("vectors", "codes", "ids", "allowed", "weights")
_SMALL_BODY = 1 << 14  # bytes that are parsed in less than a millisecond
_PIECE = 2048  # elements of a list that are written at a time
FormType = TypeVar("FormType", bound=Form)


class Given(dict[str, Any]):
    """The fields of a request: what the form has checked, and arrays in place of lists."""

    def __init__(self, form: Form, arrays: Mapping[str, Any]) -> None:
        super().__init__({**vars(form), **arrays})
        self.has_memory = False  # whether memory for the answer is reserved too
        self.request: Request | None = None

    async def require_client(self) -> None:
        """End a request whose client has left."""
        if self.request is not None and await self.request.is_disconnected():
            raise ClientDisconnect


@asynccontextmanager
async def reading(parts: Parts, request: Request, form: type[FormType]) -> AsyncIterator[Given]:
    """The request of a body in either form; memory for a large one is reserved during the block."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    parsers = {JSON: _of_json, _wire.MEDIA_TYPE: _of_arrays}
    if kind not in parsers:
        raise RequestProblem(
            "unsupported-media-type", f"bodies must be {JSON} or {_wire.MEDIA_TYPE}"
        )
    length = request.headers.get("content-length", "")
    n_bytes = int(length) if length.isdecimal() else parts.limits.body_bytes
    is_large, parse = n_bytes > _SMALL_BODY, parsers[kind]
    # For the answer as well: to wait for more memory while holding some could last for ever.
    n_needed = PER_BODY_BYTE * n_bytes + PER_RESULT * parts.limits.results if is_large else 0
    async with parts.memory.reserved(n_needed):
        body = bytearray()  # it grows in place: to join the pieces of a large one takes long
        async for piece in request.stream():
            body += piece
        if is_large:
            given: Given = await parts.batcher.run_aside(parse, parts, form, body)
        else:
            given = parse(parts, form, body)
        given.request, given.has_memory = request, is_large
        yield given


def _of_json(parts: Parts, form: type[FormType], body: bytearray) -> Given:
    fields = read_fields(body, _names(form), parts.bounds)
    lists = {name: value for name, value in fields.items() if _is_list(name, value)}
    return _given(form, fields, lists)


def _of_arrays(parts: Parts, form: type[FormType], body: bytearray) -> Given:
    names = _names(form)
    try:
        arrays, texts = _wire.load(body)
    except InputError as error:
        raise RequestProblem("malformed", str(error)) from None
    known = [name for name in _ARRAYS if name in names]
    for name, array in arrays.items():
        if name not in known:
            raise RequestProblem(
                "invalid", f"arrays must be among {', '.join(known)}, got {name!r:.60}"
            )
        _require_type(name, array)
    for name in texts:
        if name not in names:
            raise RequestProblem("invalid", f"{name!r:.60}: {no_such_field(name)}")
    if len(arrays.get("allowed", ())) > parts.limits.allowed:
        raise RequestProblem("limit", f"allowed must be at most {parts.limits.allowed}")
    fields = {
        name: read_field(text.encode("utf-8", "surrogatepass"), name, parts.bounds)
        for name, text in texts.items()
    }
    lists = {name: value for name, value in fields.items() if _is_list(name, value)}
    return _given(form, fields, {**lists, **arrays})


@cache
def _names(form: type[Form]) -> set[str]:
    """What the fields of a form are called in a body."""
    return {field.alias or name for name, field in form.model_fields.items()}


def _is_list(name: str, value: Any) -> bool:
    return name in LISTS and value is not None


def _given(form: type[FormType], fields: Mapping[str, Any], lists: Mapping[str, Any]) -> Given:
    """The request, after the form has checked that lists are there, and all else."""
    placeholders: dict[str, Any] = {name: [] for name in lists}
    try:
        return Given(form.model_validate({**fields, **placeholders}), lists)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        errors = [
            {"field": ".".join(map(str, one["loc"])), "message": one["msg"]} for one in details
        ]
        first = errors[0]
        detail = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
        raise RequestProblem("invalid", detail, errors=errors[:20]) from None


def _require_type(name: str, array: np.ndarray) -> None:
    kinds, n_dims = {
        "vectors": ("f", 2),
        "codes": ("u", 2),
        "ids": ("i", 1),
        "allowed": ("i", 1),
        "weights": ("f", 1),
    }[name]
    is_signed_id = kinds == "i" and array.size and array.min() < 0
    if array.dtype.kind != kinds or array.ndim != n_dims or is_signed_id:
        what = {"f": "floats", "u": "bytes", "i": "integers from 0 on"}[kinds]
        raise RequestProblem("invalid", f"{name} must be {what} with {n_dims} dimensions")


def wants_arrays(request: Request) -> bool:
    """Whether the answer shall be binary; a list of several kinds gives JSON."""
    accept = request.headers.get("accept", "*/*")
    kinds = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    if any(kind in (JSON, "*/*", "application/*", "") for kind in kinds):
        return False
    if _wire.MEDIA_TYPE in kinds:
        return True
    raise RequestProblem("not-acceptable", f"answers are {JSON} or {_wire.MEDIA_TYPE}")


def json_response(content: Any, status: int = 200) -> Response:
    """An answer as JSON; what no number can say is null."""
    return Response(json_bytes(content), status, media_type=JSON)


def small_json_response(content: Any) -> Response:
    """The same for what is written in less than a millisecond."""
    return Response(_dumps(content), media_type=JSON)


def json_bytes(content: Any) -> bytes:
    """JSON, in which arrays are lists and what no number can say is null.

    Lists are written some thousand elements at a time, so that other threads run in between.
    """
    if isinstance(content, dict):
        pairs = (_dumps(key) + b":" + json_bytes(content[key]) for key in content)
        return b"{" + b",".join(pairs) + b"}"
    if isinstance(content, list) and content and isinstance(content[0], list):
        return b"[" + b",".join(map(json_bytes, content)) + b"]"
    size = content.size if isinstance(content, np.ndarray) else 0
    size = len(content) if isinstance(content, list) else size
    if size > _PIECE:
        step = max(1, _PIECE * len(content) // size)
        pieces = [content[start : start + step] for start in range(0, len(content), step)]
        return b"[" + b",".join(_dumps(piece)[1:-1] for piece in pieces) + b"]"
    return _dumps(content)


def writable(array: np.ndarray) -> np.ndarray:
    """An array as it can be written: float32 as float64, whose digits say its numbers exactly."""
    return np.ascontiguousarray(array, np.float64 if array.dtype.kind == "f" else None)


def _dumps(content: Any) -> bytes:
    try:
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # halves of characters, and numbers beyond 64 bits
        return json.dumps(as_json(content), separators=(",", ":")).encode()


def array_response(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Response:
    """An answer as arrays, and facts as JSON texts of its header."""
    texts = {name: json.dumps(as_json(value)) for name, value in facts.items()}
    return Response(_wire.dump(arrays, texts), media_type=_wire.MEDIA_TYPE)
