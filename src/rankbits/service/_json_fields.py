"""Fields of a JSON body, read in pieces and compared with their limits before they are read.

A body of some megabytes can hold millions of elements, and a parser that reads it as a whole holds
the interpreter until its end, then again for an error of each element. Here a list is counted while
it is read, some thousand characters at a time, and the first error ends the reading. So the memory
is a small multiple of the body, and other threads run in between.
"""

import json
import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from rankbits.service._forms import MAX_ID, RENAMED
from rankbits.service._problems import RequestProblem

_SPACE = re.compile(rb"[ \t\n\r]*")
_NUMBERS = re.compile(r"[-+0-9.eE \t\n\r,]*")
_PIECE = 1 << 13  # characters of a list of numbers that are read at a time, in about 0.2 ms
_MOST_NUMBER = 1000  # characters of a number, with the spaces around it
_MOST_SMALL = 8192  # characters of a field that has no list of its own kind
_MOST_ESCAPED = 12  # characters of JSON for one of a text
_MOST_LABELS, _MOST_LABEL = 10_000, 1000
_decoder = json.JSONDecoder()


class Bounds(NamedTuple):
    """How much the fields of a body may hold.

    Attributes
    ----------
    rows : queries or items
    ids : ids of `allowed`
    width : numbers of a row
    n_bits : weights
    characters : characters of a text
    reads : what the model reads, for messages
    """

    rows: int
    ids: int
    width: int
    n_bits: int
    characters: int
    reads: str


def read_fields(body: bytes | bytearray, names: Collection[str], bounds: Bounds) -> dict[str, Any]:
    """The fields of an object, each of one of these names: lists of numbers become arrays."""
    return _Reader(body, bounds).object(names)


def read_field(body: bytes | bytearray, name: str, bounds: Bounds) -> Any:
    """The value of one field, which is all that there is."""
    reader = _Reader(body, bounds)
    value, end = reader.value(name, reader.skip(0))
    reader.require_end(end)
    return value


class _Reader:
    """A body, of which parts become texts with a character for each byte."""

    def __init__(self, body: bytes | bytearray, bounds: Bounds) -> None:
        self._body, self._bounds = body, bounds

    def _text(self, start: int, end: int) -> str:
        return self._body[start:end].decode("latin-1")

    def skip(self, at: int) -> int:
        """The next place without white space."""
        if self._body[at : at + 1] > b" ":  # the usual case, made fast for small requests
            return at
        match = _SPACE.match(self._body, at)
        return at if match is None else match.end()

    def require_end(self, at: int) -> None:
        """Refuse whatever follows but white space."""
        if self.skip(at) != len(self._body):
            raise _malformed("the body goes on after its end", at)

    def object(self, names: Collection[str]) -> dict[str, Any]:
        """All fields of an object."""
        fields: dict[str, Any] = {}
        at = self.skip(0)
        if not self._body.startswith(b"{", at):
            self._small("the body", at)  # it may be no JSON at all
            raise RequestProblem("invalid", "the body must be an object")
        at = self.skip(at + 1)
        if self._body.startswith(b"}", at):
            self.require_end(at + 1)
            return fields
        while True:
            name, at = self._name(at, names)
            if name in fields:
                raise RequestProblem("invalid", f"{name} must come once")
            fields[name], at = self.value(name, self._after(":", at, f"a value of {name}"))
            at = self.skip(at)
            if self._body.startswith(b"}", at):
                self.require_end(at + 1)
                return fields
            at = self._after(",", at, "a comma between fields")

    def value(self, name: str, at: int) -> tuple[Any, int]:
        """The value of a field and its end."""
        kind = _KINDS.get(name)
        if kind is None or self._body.startswith(b"null", at):
            return self._small(name, at)
        if not self._body.startswith(b"[", at):
            self._small(name, at)  # it may be no JSON at all
            raise RequestProblem("invalid", f"{name} must be a list")
        return kind(self, name, at)

    # Lists

    def ids(self, name: str, at: int) -> tuple[np.ndarray, int]:
        """A list of ids."""
        most = self._bounds.ids if name == "allowed" else self._bounds.rows
        return self._numbers(name, at, most, _as_ids)

    def weights(self, name: str, at: int) -> tuple[np.ndarray, int]:
        """A list of a number for each bit."""
        return self._numbers(name, at, self._bounds.n_bits, _as_floats)

    def row(self, name: str, at: int) -> tuple[np.ndarray, int]:
        """A list of a number for each feature."""
        width = self._bounds.width
        if width == 0:
            detail = f"{name} must go with a model that reads them; {self._bounds.reads}"
            raise RequestProblem("invalid", detail)
        try:
            return self._numbers(name, at, width, _as_floats)
        except RequestProblem as problem:
            if problem.kind != "limit":
                raise
            raise RequestProblem("invalid", f"{name} must have {width} numbers a row") from None

    def rows(self, name: str, at: int) -> tuple[np.ndarray, int]:
        """A list of rows of one length."""
        rows, end = self._list(name, at, self._bounds.rows, self._one_row)
        if len({len(row) for row in rows}) > 1:
            raise RequestProblem("invalid", f"{name} must be rows of one length")
        return np.array(rows, np.float64).reshape(len(rows), -1 if rows else 0), end

    def texts(self, name: str, at: int) -> tuple[list[str], int]:
        """A list of texts."""
        return self._list(name, at, self._bounds.rows, self._text_of)

    def labels(self, name: str, at: int) -> tuple[list[str], int]:
        """A list of labels."""
        return self._list(name, at, _MOST_LABELS, self._text_of)

    def plain_texts(self, name: str, at: int) -> tuple[list[str], int]:
        """A list of texts in letters and digits, which are looked at later."""
        return self._list(name, at, self._bounds.rows, self._plain_text)

    def _list(
        self, name: str, at: int, most: int, read: Callable[[str, int], tuple[Any, int]]
    ) -> tuple[list[Any], int]:
        """Elements that are read one by one, the first beyond the limit being an error."""
        values: list[Any] = []
        at = self.skip(at + 1)
        if self._body.startswith(b"]", at):
            return values, at + 1
        while True:
            if len(values) == most:
                raise _too_many(name, most)
            value, at = read(name, at)
            values.append(value)
            at = self.skip(at)
            if self._body.startswith(b"]", at):
                return values, at + 1
            at = self._after(",", at, "a comma between elements")

    def _numbers(
        self, name: str, at: int, most: int, convert: Callable[[str, str], np.ndarray]
    ) -> tuple[np.ndarray, int]:
        """Numbers up to the next bracket, a piece at a time."""
        start, end = at + 1, self._body.find(b"]", at)
        if end < 0:
            raise _malformed(f"{name} has no end", at)
        if self.skip(start) == end:
            return convert(name, ""), end + 1
        pieces, n = [], 0
        while start <= end:
            comma = self._body.find(b",", start + _PIECE, end)
            stop = end if comma < 0 else comma
            if stop - start > _PIECE + _MOST_NUMBER:
                raise _no_numbers(name)
            pieces.append(convert(name, self._text(start, stop)))
            n += len(pieces[-1])
            if n > most:
                raise _too_many(name, most)
            if len(pieces[-1]) == 0:
                raise _malformed(f"{name} has a comma too many", stop)
            start = stop + 1
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces), end + 1

    # Elements

    def _one_row(self, name: str, at: int) -> tuple[np.ndarray, int]:
        if not self._body.startswith(b"[", at):
            raise RequestProblem("invalid", f"{name} must be rows of numbers")
        return self.row(name, at)

    def _text_of(self, name: str, at: int) -> tuple[str, int]:
        is_label = name == "labels"
        most = _MOST_LABEL if is_label else self._bounds.characters
        value, end = self._decoded(name, at, _MOST_ESCAPED * most + 2, most)
        if not isinstance(value, str):
            raise RequestProblem("invalid", f"{name} must be texts")
        if len(value) > most:
            raise _too_long(name, most)
        return value, end

    def _plain_text(self, name: str, at: int) -> tuple[str, int]:
        if not self._body.startswith(b'"', at):
            raise RequestProblem("invalid", f"{name} must be texts")
        end = self._body.find(b'"', at + 1)
        if end < 0:
            raise _malformed(f"{name} has a text without an end", at)
        return self._text(at + 1, end).replace("\\/", "/"), end + 1

    def _small(self, name: str, at: int) -> tuple[Any, int]:
        return self._decoded(name, at, _MOST_SMALL, _MOST_SMALL)

    def _name(self, at: int, names: Collection[str]) -> tuple[str, int]:
        """The name of a field."""
        if not self._body.startswith(b'"', at):
            raise _malformed("a field must have a name", at)
        name, end = self._small("a name", at)
        if name not in names:
            message = no_such_field(name)
            errors = [{"field": f"{name:.60}", "message": message}]
            raise RequestProblem("invalid", f"{name:.60}: {message}", errors=errors)
        return str(name), self.skip(end)

    def _decoded(self, name: str, at: int, n_bytes: int, most: int) -> tuple[Any, int]:
        """A value within so many bytes, which are enough for `most` characters, and its end."""
        part = self._text(at, at + n_bytes)
        is_cut = at + n_bytes < len(self._body)
        try:
            value, end = _decoder.raw_decode(part)
            text = part[:end]
            if not text.isascii() or "\\" in text:
                value = json.loads(text.encode("latin-1"))
                json.dumps(value, ensure_ascii=False).encode()  # half a pair of surrogates is none
        except (ValueError, RecursionError):
            if is_cut:
                raise _too_long(name, most) from None
            raise _malformed(f"{name} cannot be read", at) from None
        if is_cut and end == len(part):  # a number may go on
            raise _too_long(name, most)
        return value, at + end

    def _after(self, mark: str, at: int, what: str) -> int:
        """The place behind a mark that must come next, without white space."""
        if not self._body.startswith(mark.encode(), at):
            raise _malformed(f"there must be {what}", at)
        return self.skip(at + 1)


_KINDS: dict[str, Callable[[_Reader, str, int], tuple[Any, int]]] = {
    "allowed": _Reader.ids,
    "codes": _Reader.plain_texts,
    "ids": _Reader.ids,
    "labels": _Reader.labels,
    "pictures": _Reader.plain_texts,
    "texts": _Reader.texts,
    "vector": _Reader.row,
    "vectors": _Reader.rows,
    "weights": _Reader.weights,
}
LISTS = frozenset(_KINDS)


def _as_ids(name: str, piece: str) -> np.ndarray:
    values = _values(name, piece)
    if not set(map(type, values)) <= {int} or min(values, default=0) < 0:
        raise RequestProblem("invalid", f"{name} must be whole numbers from 0 on")
    if max(values, default=0) > MAX_ID:
        raise RequestProblem("invalid", f"{name} must be at most {MAX_ID}")
    return np.array(values, np.int64)


def _as_floats(name: str, piece: str) -> np.ndarray:
    try:
        return np.array(_values(name, piece), np.float64)
    except OverflowError:
        raise _no_numbers(name) from None


def _values(name: str, piece: str) -> list[Any]:
    if not _NUMBERS.fullmatch(piece):
        raise _no_numbers(name)
    try:
        values: list[Any] = json.loads(f"[{piece}]")
    except ValueError:
        raise RequestProblem("malformed", f"{name} cannot be read") from None
    return values


def no_such_field(name: str) -> str:
    """What is wrong with the name of a field, and what it is called now."""
    is_called = f"; it is called {RENAMED[name]}" if name in RENAMED else ""
    return f"there is no such field{is_called}"


def _malformed(what: str, at: int) -> RequestProblem:
    return RequestProblem("malformed", f"{what}, at byte {at}")


def _too_many(name: str, most: int) -> RequestProblem:
    return RequestProblem("limit", f"{name} must be at most {most}, got more")


def _too_long(name: str, most: int) -> RequestProblem:
    return RequestProblem("limit", f"{name} must have at most {most} characters")


def _no_numbers(name: str) -> RequestProblem:
    return RequestProblem("invalid", f"{name} must be numbers that fit into 64 bits")
