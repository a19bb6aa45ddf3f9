"""The page and its files: plain HTML, CSS and JavaScript, read once, known by name."""

from importlib.resources import files

from fastapi import APIRouter, Response

from rankbits.service._problems import RequestProblem

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_routes() -> APIRouter:
    """GET /, /docs and /page/{name}."""
    router = APIRouter(include_in_schema=False)
    contents = _contents()

    @router.get("/")
    async def page() -> Response:
        return _response(contents, "index.html")

    @router.get("/docs")
    async def docs() -> Response:
        return _response(contents, "docs.html")

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return _response(contents, "icon.svg")

    @router.get("/page/{name}")
    async def file(name: str) -> Response:
        return _response(contents, name)

    return router


def _contents() -> dict[str, bytes]:
    """The files of the page; a request can name these and nothing else."""
    folder = files("rankbits.service") / "page"
    return {
        entry.name: entry.read_bytes()
        for entry in folder.iterdir()
        if "." + entry.name.rpartition(".")[2] in _TYPES
    }


def _response(contents: dict[str, bytes], name: str) -> Response:
    if name not in contents:
        raise RequestProblem("not-found", "there is no such file")
    kind = _TYPES["." + name.rpartition(".")[2]]
    return Response(contents[name], media_type=kind, headers={"Cache-Control": "no-cache"})
