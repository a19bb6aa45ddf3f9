"""The application: parts, routes and what stands around them."""

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from rankbits._open import is_compressed
from rankbits.errors import RankbitsError
from rankbits.index import SearchPlan
from rankbits.service._encoders import RequestEncoder, TextEncoder, load_encoder
from rankbits.service._forms import EncodeRequest, Form, ItemBody, SearchRequest, UpsertRequest
from rankbits.service._guard import Guard
from rankbits.service._item_routes import reading_routes, writing_routes
from rankbits.service._items import load_items
from rankbits.service._limits import Limits
from rankbits.service._log_lines import limit_log_lines
from rankbits.service._openapi import describe
from rankbits.service._origins import LOCAL_HOSTS
from rankbits.service._page import page_routes
from rankbits.service._parts import Parts, assemble
from rankbits.service._problems import RequestProblem, problem_of, storage_problem
from rankbits.service._routes import search_routes, status_routes
from rankbits.service._store import CollectionStore
from rankbits.service._tokens import check_token

_DESCRIPTION = (
    "Codes by id, searched by Hamming distance or by real-valued queries, with ties visible. "
    "Errors are problem details (RFC 9457)."
)
_METHODS = ("GET", "POST", "PUT", "DELETE")
Path = str | os.PathLike[str]


def create_app(
    collection: Path,
    model: Any = None,
    *,
    items: Path | None = None,
    images: Path | None = None,
    vectors: Any = None,
    text_model: Path | None = None,
    text_encoder: TextEncoder | None = None,
    plan: SearchPlan | None = None,
    token: str | None = None,
    limits: Limits | None = None,
    hosts: Iterable[str] | None = LOCAL_HOSTS,
    verify: bool = True,
    n_threads: int | None = None,
    trust_model_code: bool = False,
) -> FastAPI:
    """An ASGI application that serves a collection; `rankbits serve` runs it with uvicorn.

    Parameters
    ----------
    collection : str or path-like
        Folder of the collection. What other processes commit to it is seen by the next request.
        Or a folder that `compress` wrote, which brings its model, its vectors and its plan.
    model : str, path-like, fitted method or None, default=None
        What encoded the items: a model of rankbits, its folder, or a folder of a
        SentenceTransformer that ends with a hasher. None serves codes and ids only.
    items : str, path-like or None, default=None
        Table of items, .parquet or .jsonl, with the columns id, label, image, and any others.
    images : str, path-like or None, default=None
        Folder of the pictures that `items` names; without `items`, picture i in the order of names
        is that of item i, as `rankbits encode` reads a folder.
    vectors : str, path-like, ndarray or None, default=None
        Vectors of the items, row i of item i: for `rerank=vectors`, and so that items can be
        queries by real numbers. A .npy is mapped.
    text_model : str, path-like or None, default=None
        Folder of a SentenceTransformer, whose embeddings of texts the model reads.
    text_encoder : callable or None, default=None
        In its place, a function from a list of texts to an array of vectors.
    plan : SearchPlan or None, default=None
        How a search goes that does not say it; None compares bits, or weights where queries of the
        model have no bits, and re-ranks nothing.
    token : str or None, default=None
        Bearer token of changes, 16 ASCII characters or more without spaces. None accepts no
        changes, and leaves the writing to other processes.
    limits : Limits or None, default=None
        Bounds of requests; None for the defaults.
    hosts : iterable of str or None
        Names that a request may call the server by, beside addresses. The default is localhost, so
        that no page from elsewhere can read it by a name of its own; None allows any.
    verify : bool, default=True
        Whether files are compared with their checksums when they are opened.
    n_threads : int or None, default=None
        Threads of a search; None for all.
    trust_model_code : bool, default=False
        Whether folders of a SentenceTransformer may run Python code that lies in them.
    """
    if token is not None:
        check_token("token", token)
    bounds = limits or Limits()
    if is_compressed(collection):
        from rankbits.compress import load as load_compressed  # takes long, and seldom needed

        compressed = load_compressed(collection)
        collection, plan = compressed.folder / "index", plan or compressed.plan
        model = compressed.folder / "model" if model is None else model
        vectors = compressed.vectors if vectors is None else vectors
    store = CollectionStore(
        collection, writable=token is not None, verify=verify, n_threads=n_threads
    )
    try:
        if model is None or isinstance(model, str | os.PathLike):
            encoder = load_encoder(model, text_model, bounds, trust_code=trust_model_code)
            if text_encoder is not None:
                encoder = RequestEncoder(encoder.hasher, text_encoder, bounds)
        else:
            encoder = RequestEncoder(model, text_encoder, bounds)
        table = load_items(items, images)
        parts = assemble(store, encoder, table, images, vectors, bounds, token, plan)
    except BaseException:
        store.close()
        raise
    return build_app(parts, None if hosts is None else frozenset(map(str.lower, hosts)))


def build_app(parts: Parts, hosts: frozenset[str] | None) -> FastAPI:
    """The application of parts that fit each other."""
    from rankbits import __version__

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        parts.close()

    app = FastAPI(
        title="rankbits",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    for router in (search_routes(parts), reading_routes(parts), writing_routes(parts)):
        app.include_router(router)
    app.include_router(status_routes(parts))
    app.include_router(page_routes())
    _handle_errors(app)
    limit_log_lines(["rankbits.service"])  # whatever server runs it
    app.add_middleware(Guard, limits=parts.limits, metrics=parts.metrics, hosts=hosts)
    forms: list[type[Form]] = [SearchRequest, EncodeRequest, ItemBody, UpsertRequest]
    description = describe(app, parts, forms)
    app.openapi = lambda: description  # type: ignore[method-assign]
    app.state.parts = parts
    return app


def _handle_errors(app: FastAPI) -> None:
    """Every error becomes problem details."""

    @app.exception_handler(RequestProblem)
    async def of_problem(request: Request, error: RequestProblem) -> Response:
        return error.response()

    @app.exception_handler(RankbitsError)
    async def of_library(request: Request, error: RankbitsError) -> Response:
        return problem_of(error).response()

    @app.exception_handler(OSError)
    async def of_storage(request: Request, error: OSError) -> Response:
        return storage_problem(error).response()

    @app.exception_handler(RequestValidationError)
    async def of_parameters(request: Request, error: RequestValidationError) -> Response:
        errors = [
            {"field": ".".join(map(str, one["loc"][1:])), "message": one["msg"]}
            for one in error.errors()[:20]
        ]
        detail = f"{errors[0]['field']}: {errors[0]['message']}"
        return RequestProblem("invalid", detail, errors=errors).response()

    @app.exception_handler(HTTPException)
    async def of_routing(request: Request, error: HTTPException) -> Response:
        kind = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "malformed")
        detail = f"{request.method} {request.url.path[:200]} is not served; see /docs"
        headers = dict(error.headers or {})
        if kind == "method-not-allowed":
            headers["Allow"] = ", ".join(allowed_methods(app, request.url.path))
        return RequestProblem(kind, detail, headers=headers).response()


def allowed_methods(app: FastAPI, path: str) -> list[str]:
    """The methods of all routes of a path; a route by itself knows only its own."""
    scopes = [{"type": "http", "path": path, "method": method} for method in _METHODS]
    return [
        scope["method"]
        for scope in scopes
        if any(route.matches(scope)[0] is Match.FULL for route in app.routes)
    ]
