"""The process that holds a shard: it maps the collection, searches it and changes it.

It knows a folder and nothing else, so one that was lost starts again anywhere. Changes may be
repeated: items are put where they are already, and what is gone is not removed again.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rankbits.codes import BinaryCodes, Queries
from rankbits.distributed._jobs import perform
from rankbits.errors import InputError
from rankbits.index import Collection, Matches

_WAIT_SECONDS = 0.2
_WORTH_LISTING = 50  # looking up an id costs as much as sorting so many


class ShardHolder:
    """Holds the collection of a folder, opened at the first call.

    Parameters
    ----------
    version : str
        Version of rankbits of the caller.
    folder : str
        Folder of the shard.
    is_writer : bool
        Whether it is the one that changes the shard.
    settings : dict
        Arguments of `Collection.open`.
    lock_seconds : float
        How long a writer waits for the lock of the holder before it, if that was lost.
    """

    def __init__(
        self,
        version: str,
        folder: str,
        is_writer: bool,
        settings: dict[str, Any],
        lock_seconds: float,
    ) -> None:
        self._version = version
        self._folder = folder
        self._is_writer = is_writer
        self._settings = settings
        self._lock_seconds = lock_seconds
        self._collection: Collection | None = None

    def call(self, name: str, *arguments: Any) -> tuple[Any, Any]:
        """Call one of the functions below: (None, value), or (Failure, None)."""
        return perform(self._version, self._call, name, arguments)

    def close(self) -> None:
        """Let go of the files, and of the lock of a writer."""
        if self._collection is not None:
            self._collection.close()
        self._collection = None

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self._collection is None:
            self._collection = self._opened()
        return _FUNCTIONS[name](self._collection, *arguments)

    def _opened(self) -> Collection:
        """The collection; a writer waits for the lock of the one before it to vanish."""
        deadline = time.monotonic() + self._lock_seconds
        while True:
            try:
                return Collection.open(self._folder, self._is_writer, **self._settings)
            except InputError as error:
                is_locked = self._is_writer and "one writer at a time" in str(error)
                if not is_locked or time.monotonic() > deadline:
                    raise
            time.sleep(_WAIT_SECONDS)


def _info(collection: Collection) -> dict[str, Any]:
    return collection.info()


def _search(
    collection: Collection, queries: Queries, allowed: Any, settings: dict[str, Any]
) -> Matches:
    """What is nearest in a shard."""
    return collection.search(queries, allowed=allowed, **settings)


def _ids(collection: Collection) -> np.ndarray:
    return collection.ids


def _codes(collection: Collection, ids: np.ndarray) -> BinaryCodes:
    return collection.codes(ids)


def _present(collection: Collection, ids: np.ndarray) -> np.ndarray:
    """Which ids the shard has; all of its ids are listed only if many are asked for."""
    if len(ids) * _WORTH_LISTING < len(collection):
        return np.array([item in collection for item in ids], bool)
    return np.isin(ids, collection.ids)


def _put(collection: Collection, codes: BinaryCodes, ids: np.ndarray, factors: Any) -> None:
    collection.upsert(codes, ids, factors=factors)


def _discard(collection: Collection, ids: np.ndarray) -> None:
    left = ids[_present(collection, ids)]
    if len(left):
        collection.remove(left)


def _compact(collection: Collection) -> None:
    collection.compact()


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "info": _info,
    "search": _search,
    "ids": _ids,
    "codes": _codes,
    "present": _present,
    "put": _put,
    "discard": _discard,
    "compact": _compact,
}
