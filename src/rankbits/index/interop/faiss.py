"""faiss: export and import of binary indexes.

faiss compares bytes, whatever their bits mean, so codes need no conversion. It knows whole bytes
only; since unused bits are zero on both sides, rounding up leaves every distance unchanged.
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

_READABLE = "IndexBinaryFlat, IDMap, IDMap2, IVF, HNSW or MultiHash"


def to_faiss(index: CodeSource, *, pad: bool = False) -> Any:
    """A flat binary index of faiss with the same codes and ids.

    Returns an IndexBinaryFlat if the ids are 0 .. n - 1, else an IndexBinaryIDMap2 over one.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are written.
    pad : bool, default=False
        Whether codes that do not fill their last byte get zero bits up to the next multiple of 8.
        Queries then need the same bytes, which `BinaryCodes.packed` has already.
    """
    require_source(index)
    if index.n_bits % 8 and not pad:
        raise InputError(
            f"index must have a multiple of 8 bits for faiss, got {index.n_bits}; pass pad=True to "
            "pad codes with zero bits, which changes no distance"
        )
    faiss = _check.extra("faiss", "to_faiss", EXTRA)
    ids = index.ids
    flat = faiss.IndexBinaryFlat(-(-index.n_bits // 8) * 8)
    is_numbered = len(ids) == 0 or int(ids[-1]) == len(ids) - 1
    if is_numbered:
        for _, packed in blocks(index):
            flat.add(packed)
        return flat
    mapped = faiss.IndexBinaryIDMap2(flat)
    for some, packed in blocks(index):
        mapped.add_with_ids(packed, some)
    return mapped


def from_faiss(faiss_index: Any, kind: str = "auto", *, n_bits: int | None = None) -> HammingIndex:
    """A HammingIndex of the codes and ids in a binary index of faiss.

    Parameters
    ----------
    faiss_index : faiss.IndexBinary, str or path-like
        An IndexBinaryFlat, IndexBinaryIDMap, IndexBinaryIDMap2, IndexBinaryIVF, IndexBinaryHNSW or
        IndexBinaryMultiHash, or the path of a file that faiss.write_index_binary wrote.
    kind : str, default="auto"
        How the new index searches: "auto", "scan", "mih" or "ivf", as in `HammingIndex`.
    n_bits : int or None, default=None
        Code length, if it is shorter than that of the faiss index. The bits beyond it must be zero.
    """
    faiss = _check.extra("faiss", "from_faiss", EXTRA)
    is_file = isinstance(faiss_index, str | os.PathLike)
    source = f"the faiss index {os.fspath(faiss_index)}" if is_file else "the faiss index"
    opened = _read(faiss, faiss_index) if is_file else faiss_index
    if not isinstance(opened, faiss.IndexBinary):
        raise InputError(
            f"faiss_index must be a binary index of faiss or a path, got {_check.describe(opened)}"
        )
    note = Note(Note().resolve_bits(n_bits, opened.code_size, source))
    return gather(source, _contents(faiss, opened), note, kind)


def _read(faiss: Any, path: Path) -> Any:
    name = require_file(path, "a file of faiss")
    try:
        return faiss.read_index_binary(name)
    except READ_ERRORS as error:
        raise FileFormatError(f"{name} is not a binary index of faiss: {one_line(error)}") from None


def _contents(faiss: Any, index: Any) -> Iterator[Block]:
    """Ids and codes of any index that keeps its codes."""
    index = faiss.downcast_IndexBinary(index)
    if isinstance(index, faiss.IndexBinaryIDMap):
        names = faiss.vector_to_array(index.id_map)
        for rows, packed in _contents(faiss, index.index):
            yield _ids_of_rows(names, rows), packed
    elif isinstance(index, faiss.IndexBinaryIVF):
        yield from _inverted(faiss, index.invlists)
    elif isinstance(index, faiss.IndexBinaryHNSW | faiss.IndexBinaryMultiHash):
        yield from _contents(faiss, index.storage)
    elif isinstance(index, faiss.IndexBinaryFlat):
        for start in range(0, index.ntotal, BLOCK):
            n = min(BLOCK, index.ntotal - start)
            yield np.arange(start, start + n), index.reconstruct_n(start, n)
    else:
        raise InputError(f"faiss_index must be an {_READABLE}, got {type(index).__name__}")


def _ids_of_rows(names: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    """The ids of rows; faiss drops names at a removal that an index inside may still use."""
    assert rows is not None  # noqa: S101
    if len(rows) and rows.max() >= len(names):
        raise InputError(
            f"faiss_index must have an id for each item, it has {len(names)} ids and none for row "
            f"{rows.max()}; rebuild it"
        )
    return np.asarray(names[rows])


def _inverted(faiss: Any, lists: Any) -> Iterator[Block]:
    """The lists of an IVF index one after the other; copied, since the memory is faiss's."""
    for number in range(lists.nlist):
        n = lists.list_size(number)
        ids, codes = lists.get_ids(number), lists.get_codes(number)
        packed = faiss.rev_swig_ptr(codes, n * lists.code_size).reshape(n, lists.code_size)
        block = faiss.rev_swig_ptr(ids, n).copy(), packed.copy()
        lists.release_ids(number, ids)
        lists.release_codes(number, codes)
        yield block
