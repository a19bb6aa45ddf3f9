"""`rankbits serve`: a collection over HTTP, and a page to look at it."""

import sys
from typing import Annotated, Any

import typer

from rankbits.cli._inputs import ThreadsOption, input_errors_exit_1
from rankbits.cli._output import note, print_json

_LIMITS = "Most {what} of a request; more is status {status}."


def serve(
    collection: Annotated[str, typer.Argument(help="Folder of the collection, or of an index.")],
    model: Annotated[
        str | None,
        typer.Option("--model", help="Folder of the model that encoded the items."),
    ] = None,
    items: Annotated[
        str | None,
        typer.Option(
            "--items", help="Table of items: .parquet or .jsonl with id, label, image, any others."
        ),
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
        bool,
        typer.Option(
            "--trust-model-code", help="Let folders of a SentenceTransformer run their own code."
        ),
    ] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", help="Name by which requests may call the server; repeat for more."
        ),
    ] = None,
    writable: Annotated[
        bool,
        typer.Option("--writable", help="Accept changes that come with the bearer token."),
    ] = False,
    token_file: Annotated[
        str | None,
        typer.Option("--token-file", help="File of the token; default: RANKBITS_TOKEN."),
    ] = None,
    threads: ThreadsOption = None,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Compare the files with their checksums.")
    ] = True,
    max_body: Annotated[int, typer.Option(min=1, help=_LIMITS.format(what="bytes", status=413))] = 1
    << 24,
    max_batch: Annotated[
        int, typer.Option(min=1, help=_LIMITS.format(what="queries or items", status=422))
    ] = 1024,
    max_k: Annotated[int, typer.Option(min=1, help="Largest k; more is status 422.")] = 1000,
    max_seconds: Annotated[
        int, typer.Option(min=1, help="Most seconds of a request; more is status 408 or 503.")
    ] = 30,
    max_requests: Annotated[
        int, typer.Option(min=1, help="Most requests at once; more is status 429.")
    ] = 256,
    max_connections: Annotated[
        int, typer.Option(min=1, help="Most connections; more close those that wait longest.")
    ] = 1000,
    max_memory: Annotated[
        int, typer.Option(min=1, help="Most bytes of large requests at once; others of them wait.")
    ] = 1 << 30,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Print a line for each request.")
    ] = False,
) -> None:
    """Serve COLLECTION over HTTP, with a page to search it, until Ctrl-C or SIGTERM."""
    if token_file is not None and not writable:
        raise typer.BadParameter("--token-file must come with --writable, which accepts changes")
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
            limits=service.Limits(
                body_bytes=max_body,
                batch=max_batch,
                k=max_k,
                seconds=max_seconds,
                requests=max_requests,
                connections=max_connections,
                memory=max_memory,
            ),
            hosts=_hosts(host, allow_host or []),
            verify=verify,
            n_threads=threads,
            trust_model_code=trust_model_code,
        )
        run_server(app, host, port, access_log=access_log)


def run_server(app: Any, host: str, port: int, *, access_log: bool = False) -> None:
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

    service.serve(app, host, port, on_ready=print_address, access_log=access_log)


def _hosts(host: str, names: list[str]) -> list[str]:
    """Names that requests may use, beside addresses: one that is listened on, and those given."""
    return ["localhost", host, *names]
