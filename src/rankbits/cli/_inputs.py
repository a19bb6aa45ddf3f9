"""What the commands share: checks of their input, and how bad input ends a command."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from rankbits.errors import InputError, RankbitsError


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


def only(option: str, paths: Sequence[str] | None) -> str | None:
    """The one path of an option that other commands take once for each shard; None if not given."""
    if paths and len(paths) > 1:
        raise typer.BadParameter(
            f"{option} must be given once here, got {len(paths)}; join the files first"
        )
    return paths[0] if paths else None
