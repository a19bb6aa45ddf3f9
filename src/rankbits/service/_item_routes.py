"""The routes of items: to look at them, and to change them where that is switched on."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response

from rankbits.codes import BinaryCodes
from rankbits.service import _bodies
from rankbits.service._answers import hex_of, image_of
from rankbits.service._forms import MAX_ID, Item, ItemBody, ItemList, UpsertAnswer, UpsertRequest
from rankbits.service._openapi import body, statuses
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem
from rankbits.service._queries import (
    chosen_way,
    codes_of,
    readable,
    require_batch,
    rows_of,
    run_for,
)
from rankbits.service._tokens import require_token

ItemId = Annotated[int, Path(ge=0, le=MAX_ID, description="Id of the item.")]
Label = Annotated[str | None, Query(max_length=1000, description="Only items with this label.")]
_MOST_LISTED = 100
_SECURITY: dict[str, Any] = {"security": [{"token": []}]}
_DAY = 86_400


def reading_routes(parts: Parts) -> APIRouter:
    """GET /items, /items/{id} and /items/{id}/image."""
    router = APIRouter(tags=["items"])

    @router.get(
        "/items",
        response_model=ItemList,
        responses=statuses(422),
        summary="List items in order of id",
    )
    async def list_items(
        after: Annotated[
            int, Query(ge=-1, le=MAX_ID, description="List from the next id on.")
        ] = -1,
        limit: Annotated[int, Query(ge=1, le=_MOST_LISTED, description="How many.")] = 20,
        label: Label = None,
    ) -> Response:
        """A page of items; `after` takes the `next` of the page before."""
        return _bodies.json_response(
            await parts.batcher.run(_list_items, parts, after, limit, label)
        )

    @router.get(
        "/items/{id}", response_model=Item, responses=statuses(404, 422), summary="Get an item"
    )
    async def get_item(id: ItemId) -> Response:  # noqa: A002 - the name in the path
        """The code of an item in hexadecimal digits, and what the table of items says about it."""
        return _bodies.json_response((await parts.batcher.run(_items, parts, [id]))[0])

    @router.get(
        "/items/{id}/image",
        responses={**statuses(404, 422), 200: _PICTURE},
        response_class=Response,
        summary="Get the picture of an item",
    )
    async def get_image(
        id: ItemId,  # noqa: A002
        size: Annotated[
            int | None, Query(ge=16, le=1024, description="Most pixels a side.")
        ] = None,
    ) -> Response:
        """The picture, in the size in which it is stored or no larger than `size`."""
        picture = None
        if parts.images is not None:
            run = parts.batcher.run if size is None else parts.batcher.run_aside
            picture = await run(parts.images.get, id, size)
        if picture is None:
            raise RequestProblem("not-found", f"there is no picture of item {id}")
        headers = {"Cache-Control": f"private, max-age={_DAY}"}
        return Response(picture[0], media_type=picture[1], headers=headers)

    return router


_PICTURE = {
    "description": "The picture",
    "content": {
        kind: {"schema": {"type": "string", "format": "binary"}}
        for kind in ("image/png", "image/jpeg", "image/gif", "image/bmp", "image/webp")
    },
}


def _items(parts: Parts, ids: list[int]) -> list[dict[str, Any]]:
    codes = hex_of(parts.store.codes_of(np.array(ids, np.int64)))
    return [
        {
            "id": item,
            "code": code,
            "fields": {} if parts.items is None else parts.items.fields(item),
            "image": image_of(parts, item),
        }
        for item, code in zip(ids, codes, strict=True)
    ]


def _list_items(parts: Parts, after: int, limit: int, label: str | None) -> dict[str, Any]:
    ids = parts.store.ids()
    if label is not None:
        if parts.items is None:
            raise RequestProblem("invalid", "label must go with a table of items")
        ids = np.intersect1d(ids, parts.items.labelled([label]), assume_unique=True)
    first = int(np.searchsorted(ids, after, side="right"))
    page = ids[first : first + limit].tolist()
    is_last = first + limit >= len(ids)
    moment = parts.store.moment()  # items that were removed since are left out
    page = [item for item in page if item in moment]
    return {"items": _items(parts, page), "next": None if is_last or not page else page[-1]}


def writing_routes(parts: Parts) -> APIRouter:
    """PUT and DELETE /items/{id}, and POST /items."""
    router = APIRouter(tags=["changes"])

    @router.put(
        "/items/{id}",
        response_model=UpsertAnswer,
        responses={201: {"model": UpsertAnswer}, **statuses(401, 403, has_body=True)},
        openapi_extra={**body(ItemBody, is_binary=False), **_SECURITY},
        summary="Add or replace an item",
    )
    async def put_item(request: Request, id: ItemId) -> Response:  # noqa: A002
        """The answer comes when the item is on the disk: 201 for a new one, 200 for another."""
        require_token(request, parts.token)
        async with _bodies.reading(parts, request, ItemBody) as given:
            way = chosen_way(given, ("vector", "code"))
            values = {"vector": "vectors", "code": "codes"}
            answer = await _upsert(parts, values[way], [given[way]], np.array([id], np.int64))
        return _bodies.json_response(answer, 201 if answer["created"] else 200)

    @router.delete(
        "/items/{id}",
        status_code=204,
        response_class=Response,
        responses=statuses(401, 403, 404, 422),
        openapi_extra=_SECURITY,
        summary="Remove an item",
    )
    async def delete_item(request: Request, id: ItemId) -> Response:  # noqa: A002
        """The answer comes when the disk no longer has it."""
        require_token(request, parts.token)
        await parts.batcher.write(parts.store.remove, id)
        parts.metrics.count("rankbits_written_items_total")
        return Response(status_code=204)

    @router.post(
        "/items",
        response_model=UpsertAnswer,
        responses=statuses(401, 403, has_body=True),
        openapi_extra={**body(UpsertRequest), **_SECURITY},
        summary="Add or replace many items",
    )
    async def upsert(request: Request) -> Response:
        """All of them or none, in one change; the answer comes when it is on the disk."""
        require_token(request, parts.token)
        async with _bodies.reading(parts, request, UpsertRequest) as given:
            way = chosen_way(given, ("vectors", "texts", "pictures", "codes"))
            require_batch(parts, given[way], way)
            answer = await _upsert(parts, way, given[way], np.asarray(given["ids"], np.int64))
        return _bodies.json_response(answer)

    return router


async def _upsert(parts: Parts, way: str, values: Any, ids: np.ndarray) -> dict[str, int]:
    values = await readable(parts, way, values)
    codes, factors = await run_for(parts, len(values), _codes_of_items, parts, way, values)
    change = await parts.batcher.write(parts.store.upsert, codes, ids, factors)
    parts.metrics.count("rankbits_written_items_total", len(ids))
    return {"created": change.n_created, "replaced": change.n_replaced}


def _codes_of_items(parts: Parts, way: str, values: Any) -> tuple[BinaryCodes, np.ndarray | None]:
    """Codes of new items, and their factors where the collection has them."""
    has_factors = parts.store.has_factors
    if way == "codes":
        if has_factors:
            raise RequestProblem(
                "invalid", "items must come as vectors, of which the model makes factors"
            )
        return codes_of(parts, values), None
    rows = rows_of(parts, way, values)
    factors = parts.encoder.factors(rows) if has_factors else None
    return parts.encoder.encode(rows, "items"), factors
