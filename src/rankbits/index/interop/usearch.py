"""usearch: export and import of indexes of bits (dtype b1); keys are ids.

usearch counts differing bits byte by byte, so packed codes of any length need no conversion.
Its graph search is approximate; `search(..., exact=True)` finds the distances that rankbits finds.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._files import READ_ERRORS, one_line, require_file
from rankbits.codes.note import Note
from rankbits.codes.stored import Block
from rankbits.errors import FileFormatError, InputError
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import (
    BLOCK,
    EXTRA,
    CodeSource,
    Path,
    blocks,
    gather,
    require_source,
)


def to_usearch(index: CodeSource, *, n_threads: int | None = None, **options: int) -> Any:
    """A usearch.index.Index over bits, metric Hamming, with the same codes and ids.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are written.
    n_threads : int or None, default=None
        Number of threads that build the graph. None takes all there are.
    options : keyword arguments
        Options of usearch's graph: connectivity, expansion_add and expansion_search.
    """
    require_source(index)
    usearch = _check.extra("usearch.index", "to_usearch", EXTRA)
    threads = 0 if n_threads is None else _check.whole("n_threads", n_threads, 1, 1024)
    graph = usearch.Index(
        ndim=index.n_bits, metric=usearch.MetricKind.Hamming, dtype=usearch.ScalarKind.B1, **options
    )
    for ids, packed in blocks(index):
        graph.add(ids.astype(np.uint64), packed, threads=threads)
    return graph


def from_usearch(usearch_index: Any, kind: str = "auto") -> HammingIndex:
    """A HammingIndex of the codes and keys in a usearch index of bits, or in its file.

    The codes are taken whatever the metric of the usearch index is.

    Parameters
    ----------
    usearch_index : usearch.index.Index, str or path-like
        An index of dtype b1, or the path of a file that its save() wrote.
    kind : str, default="auto"
        How the new index searches: "auto", "scan", "mih" or "ivf", as in `HammingIndex`.
    """
    usearch = _check.extra("usearch.index", "from_usearch", EXTRA)
    is_file = isinstance(usearch_index, str | os.PathLike)
    source = f"the usearch index {os.fspath(usearch_index)}" if is_file else "the usearch index"
    opened = _read(usearch, usearch_index) if is_file else usearch_index
    if not isinstance(opened, usearch.Index) or opened.dtype != usearch.ScalarKind.B1:
        got = opened.dtype if isinstance(opened, usearch.Index) else _check.describe(opened)
        raise InputError(
            f"usearch_index must be a usearch Index of dtype b1 or a path, got {got}; "
            "pack bits with BinaryCodes first"
        )
    if opened.multi:
        raise InputError("usearch_index must have one code per key, got an index with multi=True")
    return gather(source, _contents(opened), Note(opened.ndim), kind)


def _read(usearch: Any, path: Path) -> Any:
    name = require_file(path, "a file of usearch")
    try:
        return usearch.Index.restore(name)
    except READ_ERRORS as error:
        raise FileFormatError(f"{name} is not a usearch index: {one_line(error)}") from None


def _contents(index: Any) -> Iterator[Block]:
    for start in range(0, len(index), BLOCK):
        keys = index.keys[start : min(start + BLOCK, len(index))]
        yield keys, np.stack(index.get(keys))
