"""`rankbits compress`: embeddings in, codes with a known loss out; also checked and searched."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import typer

from rankbits._files import write_atomically
from rankbits.cli._inputs import (
    FormatOption,
    JudgementsOption,
    OutputFormat,
    QueryIdsOption,
    QueryLabelsOption,
    ThreadsOption,
    VectorMetric,
    input_errors_exit_1,
    require_writable,
)
from rankbits.cli._judgements import CodeFiles, IdFiles, load_judged_pairs
from rankbits.cli._output import literal, note, print_json, print_table
from rankbits.datasets import load_array, load_labels
from rankbits.datasets.blocks import open_rows
from rankbits.errors import InputError

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ITEMS",
        help="Vectors of the items: .npy, .npz, .parquet or .safetensors. With --check: new items "
        "and new queries. With --search: queries.",
    ),
]
QueriesOption = Annotated[
    str | None,
    typer.Option("--queries", help="Vectors of real queries; without them some items ask."),
]
ItemLabelsOption = Annotated[
    str | None,
    typer.Option("--item-labels", help="Classes (1-D) or multi-hot tags (2-D) of the items."),
]
ItemIdsOption = Annotated[
    str | None,
    typer.Option("--item-ids", help="Ids of the items in the qrels file: .txt, .jsonl, .npy, ..."),
]
BytesOption = Annotated[
    list[int] | None,
    typer.Option("--bytes", min=1, help="Bytes of a code; repeat it. Default: 8, 16 and 32."),
]
KeepOption = Annotated[
    float, typer.Option("--keep", help="Share of the float quality that is to be kept.")
]
OutOption = Annotated[
    str | None,
    typer.Option("--out", help="Folder to write; with --search, a .npz of distances and ids."),
]
SimilarityOption = Annotated[
    VectorMetric, typer.Option("--similarity", help="What the float vectors are ranked by.")
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option("--metric", help="Such as nDCG@10 or overlap@10; the first one decides."),
]
MethodOption = Annotated[
    list[str] | None, typer.Option("--method", help="Method to try; repeat it for more.")
]
PoolOption = Annotated[
    list[int] | None,
    typer.Option("--pool", min=1, help="Items to re-rank by their vectors; repeat it for more."),
]
PeersOption = Annotated[
    bool, typer.Option("--peers", help="Measure quantizers of faiss at the same bytes, too.")
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget", help="Minutes that the run may take; slow methods are tried only with a budget."
    ),
]
OnnxOption = Annotated[
    bool, typer.Option("--onnx/--no-onnx", help="Export the model to ONNX too, where it can be.")
]
OverwriteOption = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a result in --out whose files have changed, too."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of samples and methods.")]
CheckOption = Annotated[
    str | None,
    typer.Option("--check", metavar="DIR", help="Has new data drifted away from this folder?"),
]
SearchOption = Annotated[
    str | None,
    typer.Option("--search", metavar="DIR", help="Search this folder as it recommends."),
]
KOption = Annotated[int, typer.Option("-k", "--k", min=1, help="Neighbors of --search.")]


def compress(
    files: FilesArgument,
    queries: QueriesOption = None,
    out: OutOption = None,
    n_bytes: BytesOption = None,
    keep: KeepOption = 0.95,
    judgements: JudgementsOption = None,
    query_ids: QueryIdsOption = None,
    item_ids: ItemIdsOption = None,
    query_labels: QueryLabelsOption = None,
    item_labels: ItemLabelsOption = None,
    similarity: SimilarityOption = VectorMetric.cosine,
    metric: MetricOption = None,
    method: MethodOption = None,
    pool: PoolOption = None,
    peers: PeersOption = False,
    budget: BudgetOption = None,
    onnx: OnnxOption = True,
    overwrite: OverwriteOption = False,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    check: CheckOption = None,
    search: SearchOption = None,
    k: KOption = 10,
    output: FormatOption = OutputFormat.json,
) -> None:
    """Find the smallest codes of ITEMS that keep the quality of your queries; write a folder.

    The folder has the model, the codes and their index, all numbers, and a page.
    """
    if check is not None and search is not None:
        raise typer.BadParameter("give --check or --search, not both")
    if search is not None:
        _search(search, files, k, out, threads)
        return
    if check is not None:
        _check(check, files, seed, threads)
        return
    if len(files) != 1:
        raise typer.BadParameter("give one file of ITEMS; queries go to --queries")
    if out is None:
        raise typer.BadParameter("--out must name the folder to write")
    with input_errors_exit_1():
        from rankbits.compress import compress as run

        options: dict[str, Any] = {"n_bytes": n_bytes, "pools": pool}
        result = run(
            files[0],
            queries,
            out=out,
            keep=keep,
            judgements=_judged(judgements, queries, files[0], query_ids, item_ids),
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


def _judged(
    judgements: str | None,
    queries: str | None,
    items: str,
    query_ids: str | None,
    item_ids: str | None,
) -> np.ndarray | None:
    """Rows (query, item, level) of the file, by row numbers or by ids."""
    if (query_ids is None) != (item_ids is None) or (query_ids and judgements is None):
        raise typer.BadParameter(
            "give --query-ids and --item-ids together, with the qrels file as --judgements"
        )
    if judgements is None:
        return None
    if queries is None:
        raise InputError("--judgements must come with --queries, which they are about")
    ids = None if query_ids is None or item_ids is None else IdFiles(query_ids, [item_ids])
    sizes = CodeFiles(queries, open_rows(queries).n_rows, [items], [open_rows(items).n_rows])
    return load_judged_pairs(judgements, ids, sizes).rows


def _check(folder: str, files: list[str], seed: int, threads: int | None) -> None:
    if len(files) > 2:
        raise typer.BadParameter("--check takes new items, and perhaps new queries")
    with input_errors_exit_1():
        from rankbits.compress import check

        result = check(folder, *files, random_state=seed, n_threads=threads, report=note)
    note(result["sentence"])
    print_json(result)


def _search(folder: str, files: list[str], k: int, out: str | None, threads: int | None) -> None:
    if len(files) != 1:
        raise typer.BadParameter("--search takes one file of queries")
    with input_errors_exit_1():
        from rankbits.compress import load

        require_writable(out, *files)
        if out is not None and not out.endswith(".npz"):
            raise InputError(f"--out must end in .npz with --search, got {out}")
        distances, ids = load(folder).search(load_array(files[0]), k, n_threads=threads)
        if out is not None:
            with write_atomically(out) as file:
                np.savez(file, distances=distances, ids=ids)
    lists = {"distances": distances.tolist(), "ids": ids.tolist()} if out is None else {"out": out}
    print_json({"folder": folder, "queries": len(ids), "k": k, **lists})


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
