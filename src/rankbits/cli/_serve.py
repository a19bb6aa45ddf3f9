"""`rankbits serve`: a collection over HTTP, and a page to look at it."""

import sys
from dataclasses import fields
from typing import Annotated, Any

import typer

from rankbits.cli._inputs import input_errors_exit_1, named_values
from rankbits.cli._options import MODEL, THREADS, VERIFY, AddressOptions
from rankbits.cli._output import note, print_json
from rankbits.errors import InputError


def serve(
    collection: Annotated[str, typer.Argument(help="Folder of the collection, or of an index.")],
    address: AddressOptions,
    model: Annotated[str | None, MODEL] = None,
    items: Annotated[
        str | None,
        typer.Option("--items", help="Table of items, .parquet or .jsonl: id, label, image, ..."),
    ] = None,
    images: Annotated[
        str | None, typer.Option("--images", help="Folder of the pictures of items.")
    ] = None,
    vectors: Annotated[
        str | None, typer.Option("--vectors", help="Vectors of items, row i of item i: .npy.")
    ] = None,
    text_model: Annotated[
        str | None,
        typer.Option("--text-model", help="Folder of the SentenceTransformer before the model."),
    ] = None,
    trust_model_code: Annotated[
        bool, typer.Option("--trust-model-code", help="Let a SentenceTransformer run its own code.")
    ] = False,
    writable: Annotated[
        bool, typer.Option("--writable", help="Accept changes that come with the bearer token.")
    ] = False,
    token_file: Annotated[
        str | None, typer.Option("--token-file", help="File of the token; default: RANKBITS_TOKEN.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="NAME=N", help="A bound of requests, as in seconds=30; repeat it."
        ),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Print a line for each request.")
    ] = False,
    threads: Annotated[int | None, THREADS] = None,
    verify: Annotated[bool, VERIFY] = True,
) -> None:
    """Serve COLLECTION over HTTP, with a page to search it, until Ctrl-C or SIGTERM.

    Limits are body_bytes, batch, k, seconds, requests, connections, memory and others.
    """
    if token_file is not None and not writable:
        raise typer.BadParameter("--token-file must come with --writable, which accepts changes")
    bounds = named_values("--limit", limit)
    with input_errors_exit_1():
        from rankbits import service

        app = service.create_app(
            collection,
            model,
            items=items,
            images=images,
            vectors=vectors,
            text_model=text_model,
            token=service.load_token(token_file) if writable else None,
            limits=_limits(service.Limits, bounds),
            hosts=address.hosts,
            verify=verify,
            n_threads=threads,
            trust_model_code=trust_model_code,
        )
        run_server(app, address, access_log=access_log)


def _limits(bounds_type: Any, bounds: dict[str, Any]) -> Any:
    """The bounds of requests, with those that --limit names."""
    known = [field.name for field in fields(bounds_type)]
    for name in bounds:
        if name not in known:
            raise InputError(f"--limit must name one of {', '.join(known)}, got {name!r}")
    return bounds_type(**bounds)


def run_server(app: Any, address: AddressOptions, *, access_log: bool = False) -> None:
    """Serve until the end, and say where once it is there."""
    from rankbits import service

    parts = app.state.parts

    def print_address(url: str) -> None:
        print_json(
            {
                "url": url,
                "docs": f"{url}/docs",
                "collection": str(parts.store.reader.folder),
                "items": len(parts.store.reader),
                "bits": parts.store.n_bits,
                "accepts": parts.accepts,
                "writable": parts.token is not None,
            }
        )
        sys.stdout.flush()
        note("open the address in a browser; Ctrl-C ends the server")

    service.serve(app, address.host, address.port, on_ready=print_address, access_log=access_log)
