"""Pictures of items: bytes of a table, data URIs, or files of one folder and nothing else."""

import base64
import binascii
import importlib.util
import io
import os
from functools import lru_cache
from typing import Any

from rankbits.errors import InputError
from rankbits.service._items import Items

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)
_MOST_BYTES = 1 << 26
_SMALL_BYTES = 1 << 15  # a picture of this size is sent as it is
_CACHED = 512


class Images:
    """The pictures of items.

    Parameters
    ----------
    items : Items
        The table, whose column `image` says where the picture is.
    folder : path or None
        Folder of the files that the table names.
    """

    def __init__(self, items: Items, folder: str | os.PathLike[str] | None) -> None:
        self._items = items
        self._folder = None if folder is None else os.path.realpath(folder)
        if self._folder is not None and not os.path.isdir(self._folder):
            raise InputError(f"images must name a folder, there is no {folder}")
        self._small = lru_cache(_CACHED)(self._reduced)

    def has(self, item: int) -> bool:
        """Whether an item has a picture, or at least the name of one."""
        return self._items.image(item) is not None

    def get(self, item: int, size: int | None) -> tuple[bytes, str] | None:
        """Bytes and media type, reduced to a number of pixels if asked for; None without one."""
        if size is not None:
            return self._small(item, size)
        data = self._bytes(self._items.image(item))
        media = None if data is None else media_type(data)
        return None if data is None or media is None else (data, media)

    def _reduced(self, item: int, size: int) -> tuple[bytes, str] | None:
        picture = self.get(item, None)
        if picture is None or len(picture[0]) <= _SMALL_BYTES or not _has_pillow():
            return picture
        from PIL import Image

        try:
            with Image.open(io.BytesIO(picture[0])) as image:
                image.thumbnail((size, size))
                out = io.BytesIO()
                image.convert("RGB").save(out, "JPEG", quality=85)
        except Exception:  # noqa: BLE001 - a damaged picture makes Pillow raise anything
            return picture
        return out.getvalue(), "image/jpeg"

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
