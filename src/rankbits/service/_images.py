"""Pictures of items: bytes of a table, data URIs, or files of one folder and nothing else.

Only pictures that were made smaller stay in memory, and of them no more than some megabytes.
"""

import base64
import binascii
import importlib.util
import io
import os
import threading
from collections import OrderedDict
from typing import Any

from rankbits.datasets.pictures import count_pixels
from rankbits.errors import InputError
from rankbits.service._items import Items
from rankbits.service._limits import Limits
from rankbits.service._problems import RequestProblem

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)
_MOST_BYTES = 1 << 26
_SMALL_BYTES = 1 << 15  # a picture of this size is sent as it is
_CACHED_BYTES = 1 << 25
Picture = tuple[bytes, str]  # with its media type


class Images:
    """The pictures of items.

    Parameters
    ----------
    items : Items
        The table, whose column `image` says where the picture is.
    folder : path or None
        Folder of the files that the table names.
    limits : Limits
        How many pixels a picture may have that is made smaller.
    """

    def __init__(self, items: Items, folder: str | os.PathLike[str] | None, limits: Limits) -> None:
        self._items, self._most_pixels = items, limits.pixels
        self._folder = None if folder is None else os.path.realpath(folder)
        if self._folder is not None and not os.path.isdir(self._folder):
            raise InputError(f"images must name a folder, there is no {folder}")
        self._small = _SmallPictures(_CACHED_BYTES)

    def has(self, item: int) -> bool:
        """Whether an item has a picture, or at least the name of one."""
        return self._items.image(item) is not None

    def get(self, item: int, size: int | None) -> Picture | None:
        """Bytes and media type, reduced to a number of pixels if asked for; None without one."""
        small = None if size is None else self._small.get((item, size))
        if small is not None:
            return small
        data = self._bytes(self._items.image(item))
        media = None if data is None else media_type(data)
        if data is None or media is None:
            return None
        if size is not None and len(data) > _SMALL_BYTES and _has_pillow():
            small = self._reduced(item, data, size)
        if size is None or small is None:
            return data, media
        self._small.put((item, size), small)
        return small

    def _reduced(self, item: int, data: bytes, size: int) -> Picture | None:
        """A picture made smaller, None if it cannot be read."""
        from PIL import Image

        try:
            self._require_few_pixels(item, data)
            with Image.open(io.BytesIO(data)) as image:
                image.thumbnail((size, size))
                out = io.BytesIO()
                image.convert("RGB").save(out, "JPEG", quality=85)
        except RequestProblem:
            raise
        except Exception:  # noqa: BLE001 - a damaged picture makes Pillow raise anything
            return None
        return out.getvalue(), "image/jpeg"

    def _require_few_pixels(self, item: int, data: bytes) -> None:
        """Refuse a picture by its first bytes: a small file can hold a huge one."""
        if count_pixels(io.BytesIO(data)) > self._most_pixels:
            raise RequestProblem(
                "limit",
                f"the picture of item {item} has more than {self._most_pixels} pixels; get it as "
                "it is, without a size",
            )

    def _bytes(self, value: Any) -> bytes | None:
        if isinstance(value, dict):  # as tables of Hugging Face have them
            value = value.get("bytes") or value.get("path")
        if isinstance(value, bytes):
            return value
        if not isinstance(value, str):
            return None
        if value.startswith("data:"):
            return _data_uri(value)
        return self._file(value)

    def _file(self, name: str) -> bytes | None:
        """The file of a name within the folder; links and dots that lead out of it lead nowhere."""
        if self._folder is None or "\0" in name:
            return None
        path = os.path.realpath(os.path.join(self._folder, name))
        if os.path.commonpath([path, self._folder]) != self._folder or not os.path.isfile(path):
            return None
        if os.path.getsize(path) > _MOST_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read()


class _SmallPictures:
    """The pictures that were used last, as far as they fit into a number of bytes."""

    def __init__(self, n_bytes: int) -> None:
        self._free = n_bytes
        self._pictures: OrderedDict[tuple[int, int], Picture] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[int, int]) -> Picture | None:
        """The picture of an item and a size, None if it is not there."""
        with self._lock:
            if key in self._pictures:
                self._pictures.move_to_end(key)
            return self._pictures.get(key)

    def put(self, key: tuple[int, int], picture: Picture) -> None:
        """Remember a picture, and forget those that were not used for the longest time."""
        with self._lock:
            if key in self._pictures:
                return
            self._pictures[key] = picture
            self._free -= len(picture[0])
            while self._free < 0:
                _, forgotten = self._pictures.popitem(last=False)
                self._free += len(forgotten[0])


def media_type(data: bytes) -> str | None:
    """The kind of picture by its first bytes; None for what a browser might take for a document."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _MAGIC if data.startswith(magic)), None)


def _data_uri(text: str) -> bytes | None:
    head, comma, content = text.partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error:
        return None


def _has_pillow() -> bool:
    return importlib.util.find_spec("PIL") is not None
