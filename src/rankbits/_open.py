"""One call that opens whatever rankbits has written to a folder."""

import os
from pathlib import Path
from typing import Any

from rankbits.errors import InputError

RESULT = "result.json"  # what compress calls it too, whose import takes longer than a look


def is_compressed(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is one that `compress` wrote, by the name of its result."""
    return (Path(folder) / RESULT).is_file()


def open(  # noqa: A001 - it reads as rankbits.open(folder)
    folder: str | os.PathLike[str], *, writable: bool = False, **options: Any
) -> Any:
    """Open a folder by what it holds.

    Parameters
    ----------
    folder : str or path-like
        What `compress` wrote, a collection or an index, or a model.
    writable : bool, default=False
        Whether a collection is to be changed; nothing else can be.
    options : keyword arguments
        Further arguments of `Collection.open`.

    Returns
    -------
    opened : rankbits.compress.Compressed, rankbits.index.Collection or fitted method
    """
    from rankbits.index.disk import layout

    path = Path(folder)
    if (path / layout.DATABASE).exists():
        from rankbits.index import Collection

        return Collection.open(path, writable, **options)
    if writable or options:
        names = ", ".join(["writable"] * writable + [*options])
        raise InputError(f"{names} must go with a collection, and {folder} is none")
    if is_compressed(path):
        from rankbits.compress import load as load_compressed

        return load_compressed(path)
    if (path / "model.json").exists():
        from rankbits.methods import load as load_model

        return load_model(path)
    advice = "; open it with rankbits.distributed.index" if (path / "shards.json").exists() else ""
    raise InputError(
        f"folder must be a compression, a collection or a model, {folder} is none of them{advice}"
    )
