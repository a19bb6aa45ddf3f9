"""Sample queries with their nearest pictures, so that a page shows what the scores mean.

SamplePictures are small gray PNG files as data URIs: nothing is fetched. Ink is black of varying
opacity, so it lies on any paper, and a dark page inverts it.
"""

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rankbits._mapped import reads_unchanged
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError


@dataclass(frozen=True, eq=False)
class SamplePictures:
    """The pictures of queries or of a database, and what they show.

    Attributes
    ----------
    ink : ndarray of shape (n, height, width), 0 = paper to 1 = full ink
    labels : ndarray of shape (n,)
    """

    ink: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        if self.ink.ndim != 3 or len(self.ink) != len(self.labels):
            raise InputError(
                f"ink must have shape (n, height, width) for {len(self.labels)} labels, "
                f"got {self.ink.shape}"
            )


@dataclass(frozen=True)
class Neighbour:
    """A picture of the database as one query finds it."""

    item: int
    picture: str
    label: str
    distance: int
    is_relevant: bool


@dataclass(frozen=True)
class Sample:
    """A query, and its nearest pictures by name of the codes.

    Attributes
    ----------
    query : its row
    picture : a data URI
    label : what it shows
    nearest : its nearest pictures, by the name of the codes
    """

    query: int
    picture: str
    label: str
    nearest: dict[str, list[Neighbour]]


def samples(
    rows: Iterable[int],
    codes: Mapping[str, tuple[BinaryCodes, BinaryCodes]],
    queries: SamplePictures,
    database: SamplePictures,
    k: int = 8,
) -> list[Sample]:
    """The queries of these rows with their k nearest pictures, ties in the order of items.

    A picture with the query's label is relevant.

    Parameters
    ----------
    rows : which queries
    codes : (queries, database) by name
    queries, database : the pictures of both
    k : pictures of a query
    """
    return [
        Sample(
            query=row,
            picture=picture(queries.ink[row]),
            label=str(queries.labels[row]),
            nearest={
                name: _neighbours(query_codes[row], item_codes, queries.labels[row], database, k)
                for name, (query_codes, item_codes) in codes.items()
            },
        )
        for row in map(int, rows)
    ]


def _neighbours(
    query: BinaryCodes, items: BinaryCodes, label: object, database: SamplePictures, k: int
) -> list[Neighbour]:
    distances, ids = nearest(query, items, k)
    return [
        Neighbour(
            item=item,
            picture=picture(database.ink[item]),
            label=str(database.labels[item]),
            distance=distance,
            is_relevant=bool(database.labels[item] == label),
        )
        for distance, item in zip(distances[0].tolist(), ids[0].tolist(), strict=True)
    ]


@reads_unchanged
def nearest(queries: BinaryCodes, database: BinaryCodes, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and rows of the k nearest items of each query, by (distance, row).

    Every pair is compared, one query at a time: for a handful of queries.

    >>> codes = BinaryCodes.from_bits([[1, 1], [0, 1], [1, 1], [0, 0]])
    >>> nearest(codes[:1], codes, k=3)
    (array([[0, 0, 1]]), array([[0, 2, 1]]))
    """
    every = [
        np.bitwise_count(database.packed ^ code).sum(axis=1, dtype=np.int64)
        for code in queries.packed
    ]
    ids = np.array([np.argsort(row, kind="stable")[:k] for row in every])
    return np.take_along_axis(np.array(every), ids, axis=1), ids


def picture(ink: np.ndarray) -> str:
    """A data URI of one picture: black, with the ink as its opacity.

    Parameters
    ----------
    ink : ndarray of shape (height, width), 0 = paper to 1 = full ink
    """
    height, width = ink.shape
    opacity = np.rint(255 * np.clip(ink, 0, 1)).astype(np.uint8)
    lines = np.zeros((height, 1 + 2 * width), np.uint8)  # filter 0, then (grey, opacity) pairs
    lines[:, 2::2] = opacity
    header = struct.pack(">IIBBBBB", width, height, 8, 4, 0, 0, 0)  # 8 bits, grey with opacity
    chunks = _chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
