"""Vectors as they come in: opened where they lie, gone through once, and refused if they are bad.

A `.npy` file is mapped, so it may be larger than memory. Whatever the kernels cannot read in place
is copied, block by block, to a mapped file in the work folder.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._files import write_atomically
from rankbits.datasets import load_array
from rankbits.datasets.blocks import open_rows
from rankbits.errors import InputError

_READABLE = ("float16", "float32", "float64", "int8", "uint8")
_BLOCK_CELLS = 1 << 22  # numbers of a block
_HASH_SEED = 20_021
_LARGEST = 1e15
_SAME_DIRECTION = 1e-3  # sine of an angle, which float16 tells from 0


@dataclass(frozen=True, eq=False)
class Profile:
    """What one pass over all vectors finds.

    Attributes
    ----------
    norms : ndarray of float64, shape (n,)
        Euclidean lengths.
    hashes : ndarray of uint64, shape (n,)
        A hash of the bytes of each row; equal rows have equal hashes.
    """

    norms: np.ndarray
    hashes: np.ndarray

    @property
    def n_zero(self) -> int:
        """Rows of zeros."""
        return int((self.norms == 0).sum())

    @property
    def n_duplicates(self) -> int:
        """Rows that are equal to an earlier one."""
        return len(self.hashes) - len(np.unique(self.hashes))


def open_vectors(name: str, source: Any, work: Path | None = None) -> np.ndarray:
    """Vectors of shape (n, d) in a type that kernels read in place.

    Parameters
    ----------
    name : str
        What an error message calls them.
    source : array-like of shape (n, d), or path
        Numbers, or a file of them, FILE or FILE:KEY.
    work : Path or None, default=None
        Folder for a copy of a file that cannot be read in place.
    """
    if not isinstance(source, str | os.PathLike):
        return _readable(name, _check.array_2d(name, source, columns="d"))
    if _is_parquet(os.fspath(source)) and work is not None:
        return _copied(name, source, work)
    return _readable(name, _check.array_2d(name, load_array(source), columns="d"))


def row_blocks(vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The first row and the rows of each block of a few million numbers."""
    step = max(1, _BLOCK_CELLS // vectors.shape[1])
    for start in range(0, len(vectors), step):
        yield start, np.asarray(vectors[start : start + step])


def profile_vectors(name: str, vectors: np.ndarray) -> Profile:
    """Go through all rows once; NaN, infinity, huge numbers and zeros alone are refused."""
    norms, hashes = np.empty(len(vectors)), np.empty(len(vectors), np.uint64)
    for start, block in row_blocks(vectors):
        wide = block.astype(np.float64)
        if not np.isfinite(wide).all():
            row = int(np.argmin(np.isfinite(wide).all(axis=1)))
            raise InputError(
                f"{name} must be finite, row {start + row} has NaN or infinity; drop or fill such "
                "rows"
            )
        if np.abs(wide).max() > _LARGEST:
            row = int(np.argmax(np.abs(wide).max(axis=1) > _LARGEST))
            raise InputError(
                f"{name} must be numbers up to {_LARGEST:g}, so that float32 holds their squares, "
                f"row {start + row} has greater ones; scale them"
            )
        rows = slice(start, start + len(block))
        norms[rows] = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        hashes[rows] = hash_rows(block)
    if not norms.any():
        raise InputError(f"{name} must have directions, but all {len(vectors)} rows are zero")
    return Profile(norms, hashes)


def require_different(name: str, profile: Profile) -> None:
    """Refuse vectors that are all equal, of which no ranking can be kept."""
    if len(profile.hashes) > 1 and (profile.hashes == profile.hashes[0]).all():
        raise InputError(
            f"{name} must differ from each other, but all {len(profile.hashes)} rows are the same"
        )


def require_directions(name: str, vectors: np.ndarray, profile: Profile) -> None:
    """Refuse vectors on one line, whose cosines are all 1, 0 or -1 up to rounding."""
    first = int(np.argmax(profile.norms > 0))
    direction = vectors[first].astype(np.float64) / profile.norms[first]
    for start, block in row_blocks(vectors):
        wide, norms = block.astype(np.float64), profile.norms[start : start + len(block)]
        beside = wide - np.outer(wide @ direction, direction)
        if (np.sqrt(np.einsum("ij,ij->i", beside, beside)) > _SAME_DIRECTION * norms).any():
            return
    raise InputError(
        f"{name} must differ in direction, but all {len(vectors)} rows are multiples of one; "
        "cosines cannot rank them"
    )


def hash_rows(rows: np.ndarray) -> np.ndarray:
    """A 64-bit hash of the bytes of each row: words times random odd numbers, added up.

    >>> first, second, third = hash_rows(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]))
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    spare = -data.shape[1] % 8
    words = np.pad(data, ((0, 0), (0, spare))).view(np.uint64)
    rng = np.random.default_rng(_HASH_SEED)
    factors = rng.integers(1 << 63, size=words.shape[1], dtype=np.uint64) * 2 + 1
    mixed = words ^ (words >> np.uint64(32))
    result: np.ndarray = (mixed * factors).sum(axis=1, dtype=np.uint64)
    return result


def equal_items(
    queries: np.ndarray, items: np.ndarray, hashes: np.ndarray, n_checked: int = 8
) -> np.ndarray:
    """The first item that equals each query, -1 where none does.

    Items whose hash agrees are compared number by number, at most `n_checked` for a query.
    """
    order = np.argsort(hashes, kind="stable")
    own, candidates = np.full(len(queries), -1), np.arange(len(queries))
    if items.dtype.kind in "iu":  # which hold whole numbers of a range only
        range_ = np.iinfo(items.dtype)
        is_whole = (queries >= range_.min) & (queries <= range_.max) & (queries % 1 == 0)
        candidates = np.flatnonzero(is_whole.all(axis=1))
    cast = np.zeros(queries.shape, items.dtype)
    cast[candidates] = queries[candidates].astype(items.dtype)
    starts = np.searchsorted(hashes[order], hash_rows(cast))
    for query, start in zip(candidates, starts[candidates], strict=True):
        for item in order[start : start + n_checked]:
            if np.array_equal(items[item], cast[query]):
                own[query] = item
                break
    return own


def digest(hashes: np.ndarray) -> str:
    """A name of 16 letters for the content of vectors, whatever file they are in."""
    places = np.arange(1, len(hashes) + 1, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (hashes ^ (hashes >> np.uint64(29))) * places
    return f"{int(mixed.sum(dtype=np.uint64)) ^ len(hashes):016x}"


def _readable(name: str, vectors: np.ndarray) -> np.ndarray:
    """The same vectors, converted to float32 if the kernels cannot read them as they are."""
    if vectors.dtype.kind not in "biuf":
        raise InputError(f"{name} must be real numbers, got {_check.describe(vectors)}")
    is_known = vectors.dtype.name in _READABLE and vectors.dtype.isnative
    if is_known and vectors.flags.c_contiguous and vectors.flags.aligned:
        return vectors
    dtype = vectors.dtype.newbyteorder("=") if vectors.dtype.name in _READABLE else np.float32
    return np.ascontiguousarray(vectors, dtype)


def _is_parquet(path: str) -> bool:
    return ".parquet" in os.path.basename(path)


def _copied(name: str, source: str | os.PathLike[str], work: Path) -> np.ndarray:
    """A mapped copy of a file of rows, written block by block and once for all."""
    rows = open_rows(source)
    if len(rows.row_shape) != 1:
        raise InputError(f"{name} must have shape (n, d), got rows of shape {rows.row_shape}")
    identity = hashlib.sha256(json.dumps(rows.identity(), sort_keys=True).encode()).hexdigest()
    path = work / f"{name}-{identity[:12]}.npy"  # an earlier run may have read another file
    if not path.exists():
        step = max(1, _BLOCK_CELLS // rows.row_shape[0])
        with write_atomically(path) as file:
            shape = (rows.n_rows, *rows.row_shape)
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for block in rows.blocks(0, step):
                file.write(np.ascontiguousarray(block, "<f4").tobytes())
    return _check.array_2d(name, load_array(path), columns="d")
