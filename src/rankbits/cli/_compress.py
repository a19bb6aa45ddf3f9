"""`rankbits compress`: embeddings in, codes with a known loss out; and are they still good?"""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import typer

from rankbits.cli._inputs import input_errors_exit_1, only
from rankbits.cli._judgements import CodeFiles, load_judged_pairs, require_ids
from rankbits.cli._options import (
    FORMAT,
    METHOD,
    METRIC,
    OUT,
    OVERWRITE,
    POOL,
    QUERIES,
    SEED,
    SIMILARITY,
    THREADS,
    OutputFormat,
    RelevanceOptions,
    Similarity,
)
from rankbits.cli._output import literal, note, print_json, print_table
from rankbits.datasets import load_labels
from rankbits.datasets.blocks import open_rows
from rankbits.errors import InputError

ItemsArgument = Annotated[
    str, typer.Argument(help="Vectors of the items: .npy, .npz, .parquet or .safetensors.")
]
BytesOption = Annotated[
    list[int] | None,
    typer.Option("--bytes", min=1, help="Bytes of a code; repeat it. Default: 8, 16 and 32."),
]
KeepOption = Annotated[float, typer.Option("--keep", help="Share of the float quality to keep.")]
PeersOption = Annotated[
    bool, typer.Option("--peers", help="Measure quantizers of faiss at the same bytes, too.")
]
BudgetOption = Annotated[
    float | None,
    typer.Option("--budget", help="Minutes to take; slow methods need a budget."),
]
OnnxOption = Annotated[
    bool, typer.Option("--onnx/--no-onnx", help="Export the model to ONNX too, where it can be.")
]


def compress(
    items: ItemsArgument,
    relevance: RelevanceOptions,
    out: Annotated[str, OUT, "Folder to write."],
    queries: Annotated[
        str | None, QUERIES, "Vectors of real queries; without them, items are queries."
    ] = None,
    n_bytes: BytesOption = None,
    keep: KeepOption = 0.95,
    metric: Annotated[
        list[str] | None, METRIC, "Such as nDCG@10, overlap@10; the first decides."
    ] = None,
    similarity: Annotated[Similarity, SIMILARITY] = Similarity.cosine,
    method: Annotated[list[str] | None, METHOD, "Method to try; repeat it for more."] = None,
    pool: Annotated[list[int] | None, POOL, "Items to re-rank by vectors; repeat it."] = None,
    peers: PeersOption = False,
    budget: BudgetOption = None,
    onnx: OnnxOption = True,
    overwrite: Annotated[bool, OVERWRITE, "Also replace a result whose files changed."] = False,
    seed: Annotated[int, SEED] = 0,
    threads: Annotated[int | None, THREADS] = None,
    output: Annotated[OutputFormat, FORMAT] = OutputFormat.json,
) -> None:
    """Find the smallest codes of ITEMS that keep the quality of your queries; write a folder.

    The folder has the model, the codes and their index, all numbers, and a page.
    """
    with input_errors_exit_1():
        from rankbits.compress import compress as run

        item_labels = only("--item-labels", relevance.database_labels)
        query_labels = relevance.query_labels
        options: dict[str, Any] = {"n_bytes": n_bytes, "pools": pool}
        result = run(
            items,
            queries,
            out=out,
            keep=keep,
            judgements=_judged(relevance, queries, items),
            query_labels=None if query_labels is None else load_labels(query_labels),
            item_labels=None if item_labels is None else load_labels(item_labels),
            similarity=similarity.value,
            metrics=metric,
            methods=method,
            peers=peers,
            budget=budget,
            onnx=onnx,
            overwrite=overwrite,
            random_state=seed,
            n_threads=threads,
            report=note,
            **{name: value for name, value in options.items() if value},
        ).result
    _print(result, out, output)


def compress_check(
    folder: Annotated[str, typer.Argument(help="Folder that rankbits compress wrote.")],
    items: Annotated[str, typer.Argument(help="Vectors of new items.")],
    queries: Annotated[str | None, typer.Argument(help="Vectors of new queries.")] = None,
    seed: Annotated[int, SEED] = 0,
    threads: Annotated[int | None, THREADS] = None,
) -> None:
    """Tell whether new ITEMS and QUERIES have drifted away from those that FOLDER was made of."""
    with input_errors_exit_1():
        from rankbits.compress import check

        result = check(folder, items, queries, random_state=seed, n_threads=threads, report=note)
    note(result["sentence"])
    print_json(result)


def _judged(relevance: RelevanceOptions, queries: str | None, items: str) -> np.ndarray | None:
    """Rows (query, item, level) of the file, by row numbers or by ids."""
    require_ids(relevance, 1)
    if relevance.judgements is None:
        return None
    if queries is None:
        raise InputError("--judgements must come with --queries, which they are about")
    sizes = CodeFiles(queries, open_rows(queries).n_rows, [items], [open_rows(items).n_rows])
    return load_judged_pairs(relevance, sizes).rows


def _print(result: dict[str, Any], out: str, output: str) -> None:
    chosen = result["recommendation"]
    if output == "json":
        print_json(
            {
                "recommendation": chosen,
                "reference": result["reference"],
                "candidates": len(result["candidates"]),
                "notes": result["notes"],
                "out": out,
                "seconds": result["seconds"],
            }
        )
        return
    from rankbits.report import frontier

    main = chosen["metric"]
    header = ("method", "bytes", "with model", "pool", "kept", "low", "high", "µs", "queries")
    rows = [_cells(row, main) for row in frontier(result["candidates"], main)]
    print_table(f"{main} kept: no candidate is smaller and better", header, rows, n_numbers=7)
    print(f"{chosen['sentence']} {chosen['advice']}".strip())
    print(f"page: {out}/index.html")


def _cells(row: Mapping[str, Any], metric: str) -> tuple[str, ...]:
    kept = row["metrics"][metric]
    return (
        literal(row["method"]),
        str(row["bytes"]),
        f"{row['bytes_with_model']:.1f}",
        "-" if row["pool"] is None else str(row["pool"]),
        *(f"{kept[name]:.3f}" for name in ("kept", "low", "high")),
        f"{row['microseconds']:.0f}",
        row["query"],
    )
