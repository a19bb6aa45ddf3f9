"""`rankbits index sql`: prints the SQL that searches codes and vectors in PostgreSQL."""

from typing import Annotated

import typer

from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import POOL, SIMILARITY, K, Similarity


def sql(
    folder: Annotated[
        str,
        typer.Argument(help="What rankbits compress or rankbits index build wrote."),
    ],
    table: Annotated[
        str, typer.Option("--table", help="Table that has the float vectors.")
    ] = "items",
    k: Annotated[int, K] = 10,
    pool: Annotated[int | None, POOL, "Default: what FOLDER recommends, else 100."] = None,
    similarity: Annotated[Similarity, SIMILARITY] = Similarity.cosine,
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
            similarity.value,
            id_column=id_column,
            code_column=code_column,
            vector_column=vector_column,
            copy_file=copy_file,
        )
    print(script, end="")
