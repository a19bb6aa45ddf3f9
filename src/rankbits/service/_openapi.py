"""The OpenAPI description: forms with the numbers of this collection, and every status."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from rankbits import _wire
from rankbits.service import _problems
from rankbits.service._bodies import JSON
from rankbits.service._forms import Form, ProblemDetails
from rankbits.service._parts import Parts

_REF = "#/components/schemas/{model}"
_EVERYWHERE = (406, 408, 413, 421, 429, 500, 503)
_OF_BODIES = (400, 415, 422)


def body(form: type[Form], *, is_binary: bool = True) -> dict[str, Any]:
    """The body of a request in its forms."""
    content: dict[str, Any] = {JSON: {"schema": {"$ref": _REF.format(model=form.__name__)}}}
    if is_binary:
        content[_wire.MEDIA_TYPE] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}


def statuses(*special: int, has_body: bool = False, is_binary: bool = False) -> dict[Any, Any]:
    """Every problem that a route may answer with, and its binary form."""
    codes = {*special, *_EVERYWHERE, *(_OF_BODIES if has_body else ())}
    responses: dict[Any, Any] = {
        status: {"description": _description(status), "content": _problem_content()}
        for status in sorted(codes)
    }
    if is_binary:
        binary = {"schema": {"type": "string", "format": "binary"}}
        responses[200] = {"description": "Done", "content": {_wire.MEDIA_TYPE: binary}}
    return responses


def _description(status: int) -> str:
    return "; or ".join(title for code, title in _problems.KINDS.values() if code == status)


def _problem_content() -> dict[str, Any]:
    return {_problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="ProblemDetails")}}}


def describe(app: FastAPI, parts: Parts, forms: list[type[Form]]) -> dict[str, Any]:
    """The description, in which lengths and limits are those of the collection."""
    description = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = description.setdefault("components", {}).setdefault("schemas", {})
    models: list[type[BaseModel]] = [*forms, ProblemDetails]
    for model in models:
        schema = model.model_json_schema(ref_template=_REF, by_alias=True)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for form in forms:
        _narrow(schemas[form.__name__], parts)
    description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return description


def _narrow(schema: dict[str, Any], parts: Parts) -> None:
    """Put the lengths and limits of a collection into a form."""
    limits, properties = parts.limits, schema["properties"]
    batch = {"minItems": 1, "maxItems": limits.batch}
    width = parts.encoder.row_shape[0] if parts.encoder.takes_vectors else 0
    code = {"type": "string", "pattern": hex_pattern(parts.store.n_bits)}
    row = {"type": "array", "items": {"type": "number"}, "minItems": width, "maxItems": width}
    for name, item in (("codes", code), ("vectors", row)):
        if name in properties:
            _set_array(properties[name], {"type": "array", "items": item, **batch})
    for name, item in (("code", code), ("vector", row)):
        if name in properties:
            _set_array(properties[name], item)
    for name in ("ids", "texts", "pictures"):
        if name in properties:
            _set_array(properties[name], batch)
    if "k" in properties:
        _set_array(properties["k"], {"maximum": limits.k})
    for name in ("vectors", "texts", "pictures"):
        if name not in parts.accepts:
            properties.pop(name, None)
    properties.pop("vector" if "vectors" not in parts.accepts else "", None)


def _set_array(schema: dict[str, Any], facts: dict[str, Any]) -> None:
    """Add facts to the alternative that is not null."""
    for choice in schema.get("anyOf", [schema]):
        if choice.get("type") != "null":
            choice.update(facts)


def hex_pattern(n_bits: int) -> str:
    """Hexadecimal digits of a code, whose unused last bits are zero.

    >>> hex_pattern(8), hex_pattern(10)
    ('^[0-9a-fA-F]{2}$', '^[0-9a-fA-F]{2}[048cC]0$')
    """
    spare = -n_bits % 8
    n_free = 2 * (-(-n_bits // 8)) - -(-spare // 4)
    last = {0: "", 1: "[02468aAcCeE]", 2: "[048cC]", 3: "[08]"}[spare % 4]
    return f"^[0-9a-fA-F]{{{n_free}}}{last}{'0' * (spare // 4)}$"
