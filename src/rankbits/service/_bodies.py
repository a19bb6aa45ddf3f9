"""Bodies: a request out of JSON or of arrays, an answer as the one or the other."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from fastapi import Request, Response
from pydantic import ValidationError

from rankbits import _wire
from rankbits._json import as_json
from rankbits.errors import InputError
from rankbits.service._forms import Form
from rankbits.service._problems import RequestProblem

JSON = "application/json"
_ARRAYS = ("vectors", "codes", "ids", "allowed", "weights")
FormType = TypeVar("FormType", bound=Form)


class Given(Mapping[str, Any]):
    """The fields of a request: what the form has checked, and arrays in place of lists."""

    def __init__(self, form: Form, arrays: Mapping[str, np.ndarray]) -> None:
        self._form, self._arrays = form, arrays

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name] if name in self._arrays else getattr(self._form, name)

    def __iter__(self) -> Any:
        return iter(type(self._form).model_fields)

    def __len__(self) -> int:
        return len(type(self._form).model_fields)


async def read(request: Request, form: type[FormType]) -> Given:
    """The request of a body in either form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON:
        return Given(_checked(form, await request.body()), {})
    if kind == _wire.MEDIA_TYPE:
        return _of_arrays(form, await request.body())
    raise RequestProblem("unsupported-media-type", f"bodies must be {JSON} or {_wire.MEDIA_TYPE}")


def _checked(form: type[FormType], body: bytes) -> FormType:
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        errors = [
            {"field": ".".join(map(str, one["loc"])), "message": one["msg"]} for one in details[:20]
        ]
        kind = "malformed" if details[0]["type"] == "json_invalid" else "invalid"
        first = errors[0]
        detail = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
        raise RequestProblem(kind, detail, errors=errors) from None


def _of_arrays(form: type[FormType], body: bytes) -> Given:
    try:
        arrays, texts = _wire.load(body)
        facts = {name: json.loads(text) for name, text in texts.items()}
    except (InputError, ValueError, RecursionError) as error:
        raise RequestProblem("malformed", str(error) or "the header nests too deeply") from None
    known = [name for name in _ARRAYS if name in form.model_fields]
    for name, array in arrays.items():
        if name not in known:
            raise RequestProblem(
                "invalid", f"arrays must be among {', '.join(known)}, got {name!r:.60}"
            )
        _require_type(name, array)
    # The form sees that exactly these are there, and checks everything else.
    placeholders: dict[str, Any] = {name: [] for name in arrays}
    return Given(_checked(form, json.dumps({**facts, **placeholders}).encode()), arrays)


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
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(as_json(content), allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type=JSON)


def array_response(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Response:
    """An answer as arrays, and facts as JSON texts of its header."""
    texts = {name: json.dumps(as_json(value)) for name, value in facts.items()}
    return Response(_wire.dump(arrays, texts), media_type=_wire.MEDIA_TYPE)
