"""faiss: a linear hasher and its codes as one index of faiss, which reads raw query vectors.

A pre-transform of faiss is the linear map of the queries. Behind it stands

    real  an IndexPQ whose codebooks are not learned: entry c of a codebook is the byte c as eight
          numbers -1 and +1. A code is then our packed bytes, and the inner product of a query's
          weights with it is the score of `search_real`.
    bits  an IndexLSH without rotation, which takes the signs of what it is given and compares them
          by Hamming distance. It counts the bits of a byte from the least significant one, and a
          logit of exactly 0 is a bit of 1 there and of 0 here.

Notation: d features, b bits, A (d, b) and c (b,) the map x'A + c.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.index.interop.blocks import EXTRA, CodeSource, blocks, require_source

__all__ = ["to_faiss"]

QUERIES = ("real", "bits")
_TOLERANCE = 1e-4  # relative to the largest logit; maps in float32 keep six digits
_N_CHECKED = 32
_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)  # (256, 8)
_REVERSED = np.packbits(_BYTES, axis=1, bitorder="little")[:, 0]


def to_faiss(hasher: Any, index: CodeSource, queries: str = "real") -> Any:
    """An index of faiss that finds for raw query vectors what the hasher and our index find.

    Parameters
    ----------
    hasher : fitted method of rankbits
        The method that encoded the items. Its map of queries must be linear, of the vectors or of
        the vectors at length 1: `itq`, `pcah`, `lsh`, `distilled`, `talr-ndcg` with
        encoder="linear" and queries="same", and others.
    index : HammingIndex or Collection
        The codes of the items and their ids.
    queries : {"real", "bits"}, default="real"
        Whether queries are weights, as for `search_real`, or bits, as for `search`.

    Returns
    -------
    index : faiss.IndexPreTransform
        Its `search(vectors, k)` gives scores, the largest first, for "real", and Hamming distances
        for "bits"; ties are in faiss's own order. `faiss.write_index` saves it. Vectors that are
        added to it are encoded by the map of the queries, so add to it only if the hasher has one
        map for both; else build it again.
    """
    faiss = _check.extra("faiss", "to_faiss", EXTRA)
    _check.choice("queries", queries, QUERIES)
    require_source(index)
    if getattr(hasher, "n_bits_", None) != index.n_bits:
        raise InputError(
            f"hasher must be a fitted method that gives the {index.n_bits} bits of index, got "
            f"{_check.describe(hasher)}"
        )
    if "bits" not in hasher.query_kinds:
        raise InputError(
            f"hasher must give queries a weight for each bit, and {type(hasher).__name__} has 16 "
            "numbers for every four bits, which indexes of faiss for binary codes do not take; "
            "search with index.search_real"
        )
    is_real = queries == "real"
    maps = _read_map(hasher)
    inner = (
        _build_byte_index(faiss, index.n_bits)
        if is_real
        else faiss.IndexLSH(index.n_bits, index.n_bits, False, False)
    )
    chain = faiss.IndexPreTransform(
        _linear_transform(faiss, maps, inner.d), _fill(faiss, inner, index)
    )
    if maps.of_units:
        chain.prepend_transform(faiss.NormalizationTransform(maps.weights.shape[0], 2.0))
    return chain


@dataclass(frozen=True)
class _QueryMap:
    """The map x'A + c of queries, of their vectors or of those at length 1."""

    weights: np.ndarray  # A (d, b)
    offsets: np.ndarray  # c (b,)
    of_units: bool


def _read_map(hasher: Any) -> _QueryMap:
    """The map of queries, from what it makes of the unit vectors and their opposites.

    They have length 1, so this holds for maps of vectors and for maps of directions. Which of them
    it is, if any, shows at random vectors.
    """
    units = np.eye(hasher.n_features_in_)
    ahead, behind = hasher.project_queries(units), hasher.project_queries(-units)
    weights, offsets = (ahead - behind) / 2, ((ahead + behind) / 2).mean(axis=0)
    rows = np.random.default_rng(0).standard_normal((_N_CHECKED, len(units)))
    logits = hasher.project_queries(rows)
    scaled = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for of_units, inputs in ((False, rows), (True, scaled)):
        error = np.abs(inputs @ weights + offsets - logits).max()
        if error <= _TOLERANCE * np.abs(logits).max():
            return _QueryMap(weights, offsets, of_units)
    raise InputError(
        f"hasher must have a linear map of queries to be a pre-transform of faiss, {hasher!r:.60} "
        "has none; export it with rankbits.methods.export_onnx and its codes with "
        "rankbits.index.interop.to_faiss"
    )


def _linear_transform(faiss: Any, maps: _QueryMap, width: int) -> Any:
    """The map as a transform of faiss; bits beyond the code have weight 0."""
    n_features, n_bits = maps.weights.shape
    weights, offsets = np.zeros((width, n_features), np.float32), np.zeros(width, np.float32)
    weights[:n_bits], offsets[:n_bits] = maps.weights.T, maps.offsets
    transform = faiss.LinearTransform(n_features, width, True)
    faiss.copy_array_to_vector(weights.ravel(), transform.A)
    faiss.copy_array_to_vector(offsets, transform.b)
    transform.is_trained = True
    return transform


def _build_byte_index(faiss: Any, n_bits: int) -> Any:
    """An empty product quantizer whose codebooks are the bytes as -1 and +1."""
    n_bytes = -(-n_bits // 8)
    empty = faiss.IndexPQ(8 * n_bytes, n_bytes, 8, faiss.METRIC_INNER_PRODUCT)
    entries = np.tile(2 * _BYTES.astype(np.float32) - 1, (n_bytes, 1, 1))
    faiss.copy_array_to_vector(entries.ravel(), empty.pq.centroids)
    empty.is_trained = True
    return empty


def _fill(faiss: Any, empty: Any, index: CodeSource) -> Any:
    """The index with all codes, and with their ids unless these are row numbers."""
    is_sign_index, ids = isinstance(empty, faiss.IndexLSH), index.ids
    is_numbered = len(ids) == 0 or int(ids[-1]) == len(ids) - 1
    filled = empty if is_numbered else faiss.IndexIDMap2(empty)
    for some, packed in blocks(index):
        codes = _REVERSED[packed] if is_sign_index else packed
        filled.add_sa_codes(*((codes,) if is_numbered else (codes, some)))
    return filled
