"""The routes that search and encode, and those that tell how the server is."""

import time
from dataclasses import asdict
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from rankbits.codes import BinaryCodes
from rankbits.errors import RankbitsError
from rankbits.service import _bodies
from rankbits.service._answers import as_arrays, hex_of, search_response
from rankbits.service._forms import EncodeAnswer, EncodeRequest, SearchAnswer, SearchRequest
from rankbits.service._openapi import body, statuses
from rankbits.service._parts import Parts
from rankbits.service._problems import storage_problem
from rankbits.service._queries import chosen_way, readable, require_batch, rows_of, run_for
from rankbits.service._searching import finding

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def search_routes(parts: Parts) -> APIRouter:
    """POST /search and POST /encode."""
    router = APIRouter(tags=["search"])

    @router.post(
        "/search",
        response_model=SearchAnswer,
        responses=statuses(404, has_body=True, is_binary=True),
        openapi_extra=body(SearchRequest),
        summary="Find the nearest items of each query",
    )
    async def search(request: Request) -> Response:
        """Items in order of (distance, id), or of score where real-valued queries or a finer score
        are asked for. The answer is that of `Collection.search` in one process, to the last bit.
        """
        started = time.perf_counter()
        is_binary = _bodies.wants_arrays(request)
        async with (
            _bodies.reading(parts, request, SearchRequest) as given,
            finding(parts, given) as result,
        ):
            if is_binary:
                facts = {"milliseconds": _milliseconds(started)}
                return _bodies.array_response(as_arrays(result), facts)
            include = given["include"]
            return await search_response(parts, result, include, lambda: _milliseconds(started))

    @router.post(
        "/encode",
        response_model=EncodeAnswer,
        responses=statuses(has_body=True, is_binary=True),
        openapi_extra=body(EncodeRequest),
        summary="Encode rows by the model",
    )
    async def encode(request: Request) -> Response:
        """Codes of items or of queries, or real-valued queries, for rows that the model reads."""
        is_binary = _bodies.wants_arrays(request)
        async with _bodies.reading(parts, request, EncodeRequest) as given:
            way = chosen_way(given, ("vectors", "texts", "pictures"))
            require_batch(parts, given[way], way)
            rows = await readable(parts, way, given[way])
            work = _encoded, parts, way, rows, given["side"]
            name, rows, side = await run_for(parts, len(rows), *work)
        model = parts.encoder.fingerprint
        facts = {"bits": parts.store.n_bits, "model": model, "side": side}
        if is_binary:
            return _bodies.array_response({name: rows}, facts)
        write = lambda: _bodies.json_response({name: _listed(parts, name, rows), **facts})  # noqa: E731
        response: Response = await run_for(parts, len(rows), write)
        return response

    return router


def _encoded(parts: Parts, way: str, values: Any, side: str) -> tuple[str, np.ndarray, str | None]:
    """Packed codes or weights, and what codes are for if the model makes a difference."""
    rows = rows_of(parts, way, values)
    if side == "weights":
        return "weights", parts.encoder.weights(rows), None
    codes = parts.encoder.encode(rows, side)
    return "codes", codes.packed, codes.side


def _listed(parts: Parts, name: str, rows: np.ndarray) -> np.ndarray | list[str]:
    if name == "weights":
        return _bodies.writable(rows)
    return hex_of(BinaryCodes(rows, parts.store.n_bits))


def _milliseconds(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 3)


def status_routes(parts: Parts) -> APIRouter:
    """GET /stats, /metrics, /healthz and /readyz."""
    router = APIRouter(tags=["server"])

    @router.get("/stats", responses=statuses(), summary="What is served")
    async def stats() -> Response:
        """Counts of the collection, what the model takes, the labels of items, and all limits."""
        return _bodies.json_response(await parts.batcher.run(_stats, parts))

    @router.get(
        "/metrics", responses=statuses(), response_class=PlainTextResponse, summary="Metrics"
    )
    async def metrics() -> Response:
        """Counters and histograms in the text format of Prometheus."""
        info = await parts.batcher.look(parts.store.info)
        gauges = {"rankbits_items": info["items"], "rankbits_collection_change": info["change"]}
        return Response(parts.metrics.text(gauges), media_type=_PROMETHEUS)

    @router.get("/healthz", responses=statuses(), summary="Whether the process lives")
    async def healthz() -> dict[str, str]:
        """Answers as long as the event loop runs."""
        return {"status": "alive"}

    @router.get("/readyz", responses=statuses(), summary="Whether searches are answered")
    async def readyz() -> dict[str, str]:
        """Searches for one item, as a request would; status 503 if that fails."""
        try:
            await parts.batcher.look(parts.store.search_once)
        except (RankbitsError, OSError) as error:
            raise storage_problem(error, "unavailable") from None
        return {"status": "ready"}

    return router


def _stats(parts: Parts) -> dict[str, Any]:
    from rankbits import __version__

    encoder, items = parts.encoder, parts.items
    return {
        **parts.store.info(),
        "accepts": parts.accepts,
        "method": encoder.method,
        "row_shape": list(encoder.row_shape),
        "has_bits": encoder.hasher is None or "bits" in encoder.hasher.query_kinds,
        "has_vectors": parts.vectors is not None,
        "plan": {**asdict(parts.plan), "sentence": parts.plan.sentence},
        "has_images": parts.images is not None,
        "labels": []
        if items is None
        else [{"label": name, "items": n} for name, n in items.labels],
        "writable": parts.store.writer is not None,
        "limits": parts.limits.to_dict(),
        "seconds": round(time.time() - parts.metrics.started, 1),
        "rankbits": __version__,
    }
