"""What the commands share: options, and how bad input ends a command."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer

from rankbits.errors import InputError, RankbitsError


class CodeForm(StrEnum):
    """How a file holds codes."""

    auto = "auto"
    packed = "packed"
    bits = "bits"
    logits = "logits"


class EmptyPolicy(StrEnum):
    """How a query without any relevant item counts."""

    skip = "skip"
    zero = "zero"
    error = "error"


class VectorMetric(StrEnum):
    """What float vectors are compared by."""

    cosine = "cosine"
    ip = "ip"
    l2 = "l2"


class OutputFormat(StrEnum):
    """How a result is printed."""

    json = "json"
    table = "table"


_FILES = ".npy, .npz, .parquet or .safetensors; FILE:KEY names one array of several"
QUERIES = typer.Option("--queries", help=f"Codes of the queries: {_FILES}.")
DATABASE = typer.Option("--database", help="Codes of the database; repeat it for each shard.")
QueriesOption = Annotated[str, QUERIES]
DatabaseOption = Annotated[list[str], DATABASE]
BitsOption = Annotated[
    int | None, typer.Option("--bits", min=1, help="Code length, if the file does not say it.")
]
FormOption = Annotated[
    CodeForm,
    typer.Option(
        "--codes",
        help="What the file holds: packed bytes, bits (0/1 or -1/+1), or logits, real values whose "
        "sign is the bit. auto recognizes packed bytes and bits.",
    ),
]
QueryLabelsOption = Annotated[
    str | None, typer.Option("--query-labels", help="Classes (1-D) or multi-hot tags (2-D).")
]
DatabaseLabelsOption = Annotated[
    list[str] | None,
    typer.Option("--database-labels", help="The same for each --database, in order."),
]
JudgementsOption = Annotated[
    str | None,
    typer.Option(
        "--judgements", help="Instead of labels: (query, item, level) rows, or a qrels file."
    ),
]
QueryIdsOption = Annotated[
    str | None,
    typer.Option(
        "--query-ids", help="Ids of the queries in the qrels file: .txt, .jsonl, .npy or .parquet."
    ),
]
DatabaseIdsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--database-ids",
        "--item-ids",
        help="The same of the items; repeat for each --database.",
    ),
]
GradedOption = Annotated[
    bool, typer.Option("--graded", help="The level of two items is their number of shared tags.")
]
EmptyOption = Annotated[
    EmptyPolicy, typer.Option("--empty", help="How a query without relevant items counts.")
]
ExcludeSelfOption = Annotated[
    bool, typer.Option("--exclude-self", help="Query i is item i of the database: do not rank it.")
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="Number of threads; default: all.")
]
FormatOption = Annotated[OutputFormat, typer.Option("--format", help="How to print the result.")]


def require_writable(path: str | None, *inputs: str | None) -> None:
    """Refuse a file that cannot be written, or is read, before the work whose result it shall hold.

    An input is a path, or FILE:KEY.
    """
    if path is None:
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise InputError(f"{path} must name a file in an existing folder that can be written")
    for source in inputs:
        for name in (source or "", (source or "").rpartition(":")[0]):
            if os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
                raise InputError(
                    f"{path} must not be one of the inputs, which it would replace; choose another "
                    "name"
                )


@contextmanager
def input_errors_exit_1() -> Iterator[None]:
    """Bad input ends the command with one line on standard error, Ctrl-C quietly with 130."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (RankbitsError, OSError, MemoryError) as error:
        line = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {line}", file=sys.stderr)
        raise typer.Exit(1) from None


def named_values(option: str, words: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE words; a value that is not JSON is a string."""
    pairs: dict[str, Any] = {}
    for word in words or []:
        name, equals, text = word.partition("=")
        if not (name and equals) or name in pairs:
            raise typer.BadParameter(f"{option} must be NAME=VALUE, each name once, got {word!r}")
        try:
            pairs[name] = json.loads(text)
        except ValueError:
            pairs[name] = text
    return pairs
