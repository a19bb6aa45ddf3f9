"""The collection that is served: one object to read it, and one more to change it.

A reader looks at the number of the last change before each search, so whatever was committed, by
this server or by another process, is seen by the next request. The writer is an object of its own,
so a search never waits for a commit.
"""

import os
import threading
import time
from typing import Any, NamedTuple

import numpy as np

from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import Collection, HammingIndex
from rankbits.service._problems import RequestProblem


class Change(NamedTuple):
    """What a write did: how many items are new, and how many were there before."""

    n_created: int
    n_replaced: int


class CollectionStore:
    """A collection, open to search and, if it is writable, to change.

    Parameters
    ----------
    folder : folder of the collection
    writable : whether items may be changed; then no other process can change them
    verify : whether files are compared with their checksums when they are opened
    n_threads : threads of a search, None for all

    Attributes
    ----------
    n_bits, has_factors : code length, and whether items have factors
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        writable: bool = False,
        verify: bool = True,
        n_threads: int | None = None,
    ) -> None:
        self.writer = Collection.open(folder, writable=True, verify=verify) if writable else None
        try:
            # What the writer has just verified need not be read a second time.
            verify_again = verify and self.writer is None
            self.reader = Collection.open(folder, verify=verify_again, n_threads=n_threads)
        except BaseException:
            if self.writer is not None:
                self.writer.close()
            raise
        # Asking the collection looks at the disk each time, and these never change.
        self.n_bits, self.has_factors = self.reader.n_bits, self.reader.has_factors
        self._write_lock = threading.Lock()
        self._code_bytes, self._next_count = 0, 0.0
        self._ids: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    @property
    def n_bytes(self) -> int:
        """Bytes of a packed code."""
        return -(-self.n_bits // 8)

    def close(self) -> None:
        """Let go of the files; a change that is being committed is finished first."""
        with self._write_lock:
            if self.writer is not None:
                self.writer.close()
            self.reader.close()

    # Reading

    def moment(self) -> HammingIndex:
        """The collection as it stands, for an answer that takes several calls."""
        return self.reader.index(kind="scan")

    def search_once(self) -> None:
        """Do what a search does, for one query and one item, so that it fails where they would."""
        code = BinaryCodes(np.zeros((1, self.n_bytes), np.uint8), self.n_bits)
        self.moment().search(code, 1, n_threads=1)

    def code_bytes(self) -> int:
        """Bytes of all codes, as they were a second ago at most: to ask looks at the disk."""
        now = time.monotonic()
        if now >= self._next_count:
            self._code_bytes, self._next_count = len(self.reader) * self.n_bytes, now + 1
        return self._code_bytes

    def codes_of(self, ids: np.ndarray) -> BinaryCodes:
        """Codes of items, which must be there."""
        try:
            return self.reader.codes(ids)
        except InputError as error:
            if "that exist" not in str(error):
                raise
            raise RequestProblem("not-found", str(error)) from None

    def ids(self) -> np.ndarray:
        """Ids of all items, ascending; sorted once for each change."""
        change = self.change
        if self._ids[0] != change:
            self._ids = change, self.reader.ids
        return self._ids[1]

    @property
    def change(self) -> int:
        """The number of the last change."""
        return int(self.reader.info()["change"])

    # Writing

    def upsert(self, codes: BinaryCodes, ids: np.ndarray, factors: np.ndarray | None) -> Change:
        """Add or replace items; when it returns, the change is on the disk."""
        with self._write_lock:
            writer = self._require_writer()
            n_before = len(writer)
            writer.upsert(codes, ids, factors=factors)
            n_created = len(writer) - n_before
        return Change(n_created, len(ids) - n_created)

    def remove(self, item: int) -> None:
        """Remove an item, which must be there; when it returns, the change is on the disk."""
        with self._write_lock:
            writer = self._require_writer()
            if item not in writer:
                raise RequestProblem("not-found", f"there is no item {item}")
            writer.remove([item])

    def _require_writer(self) -> Collection:
        if self.writer is None:
            raise RequestProblem("writes-off", "start the server with --writable to change items")
        return self.writer

    def info(self) -> dict[str, Any]:
        """Counts and sizes, without the names of files."""
        return {k: v for k, v in self.reader.info().items() if k not in ("segments", "format")}
