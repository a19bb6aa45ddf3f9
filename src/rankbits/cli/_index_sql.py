"""`rankbits index sql`: prints the SQL that searches codes and vectors in PostgreSQL."""

from typing import Annotated

import typer

from rankbits.cli._inputs import VectorMetric, input_errors_exit_1


def sql(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", help="What rankbits compress or rankbits index build wrote."
        ),
    ],
    table: Annotated[
        str, typer.Option("--table", help="Table that has the float vectors.")
    ] = "items",
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="Number of neighbors.")] = 10,
    pool: Annotated[
        int | None,
        typer.Option(
            "--pool",
            min=1,
            help="Items chosen by their codes; default: what FOLDER recommends, else 100.",
        ),
    ] = None,
    metric: Annotated[
        VectorMetric, typer.Option("--metric", help="What float vectors are compared by.")
    ] = VectorMetric.cosine,
    id_column: Annotated[str, typer.Option(help="Column of the ids.")] = "id",
    code_column: Annotated[str, typer.Option(help="New column of the codes.")] = "code",
    vector_column: Annotated[str, typer.Option(help="Column of the vectors.")] = "embedding",
    copy_file: Annotated[
        str | None,
        typer.Option("--copy-file", help="Write ids and codes to this file, for psql to copy."),
    ] = None,
) -> None:
    """Print the SQL that adds the codes of FOLDER to a table of pgvector and searches it.

    The query has two stages: items by the Hamming distance of their codes, then these by vectors.
    """
    with input_errors_exit_1():
        from rankbits.adapters.pgvector import two_stage_script

        script = two_stage_script(
            folder,
            table,
            k,
            pool,
            metric.value,
            id_column=id_column,
            code_column=code_column,
            vector_column=vector_column,
            copy_file=copy_file,
        )
    print(script, end="")
