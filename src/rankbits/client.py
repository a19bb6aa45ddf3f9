"""A client of `rankbits serve`: arrays in, arrays out.

Batches travel in the compact binary form. An error of the server is a `ServiceError` with the
members of its problem details (RFC 9457).
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from rankbits import _check, _wire
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError, RankbitsError

__all__ = ["Answer", "Client", "ServiceError"]

_BUSY = (429, 503)
_MOST_WAIT = 5.0  # seconds before a request is sent again
_MOST_PROBLEM = 1 << 16  # bytes of an error that are read
_MISUNDERSTANDINGS = (KeyError, RecursionError, TypeError, ValueError)
_TYPES = {  # of the arrays of an answer
    "ids": ("i", (1, 2)),
    "distances": ("if", (1, 2)),
    "offsets": ("i", (1,)),
    "histogram": ("i", (2,)),
}


class ServiceError(RankbitsError):
    """What the server refused, and why.

    Parameters
    ----------
    status : int
        HTTP status.
    problem : dict
        Members of the problem details: type, title, detail, and errors of single fields.
    retry_after : float or None
        Seconds after which the server asks to try again.
    """

    def __init__(self, status: int, problem: dict[str, Any], retry_after: float | None) -> None:
        super().__init__(f"{status} {problem.get('title', '')}: {problem.get('detail', '')}")
        self.status, self.problem, self.retry_after = status, problem, retry_after


@dataclass(frozen=True, eq=False)
class Answer:
    """Items of each query, nearest first.

    Attributes
    ----------
    ids : ndarray of int64, shape (queries, k)
        Filled up with -1; behind one another if there are offsets.
    distances : ndarray of int32 or float32, shaped as ids
        Smaller is nearer, whatever was compared.
    offsets : ndarray of int64 or None
        For a radius and for complete ties: the items of query q are ids[offsets[q]:offsets[q + 1]].
    histogram : ndarray of int64, shape (queries, bits + 1), or None
        Items at each distance, if asked for.
    milliseconds : float
        Time of the server.
    """

    ids: np.ndarray
    distances: np.ndarray
    offsets: np.ndarray | None = None
    histogram: np.ndarray | None = None
    milliseconds: float = field(default=0.0)


class Client:
    """A connection to a server, to be closed or used in a `with` block.

    Parameters
    ----------
    url : str, default="http://127.0.0.1:8000"
        Address of the server.
    token : str or None, default=None
        Bearer token, for changes.
    timeout : float, default=60.0
        Seconds that a request may take.
    max_bytes : int, default=256 MiB
        Largest answer that is read; a larger one is an error.
    retries : int, default=2
        How often a request that found the server busy (429, 503) is sent again, after the time that
        the server asks for. Changes may be sent again too: each of them is the same twice.
    transport : httpx transport or None, default=None
        What carries requests; None for the network.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 60.0,
        max_bytes: int = 1 << 28,
        retries: int = 2,
        transport: Any = None,
    ) -> None:
        httpx = _check.extra("httpx", "rankbits.client", "client")
        self._retries = _check.whole("retries", retries, 0)
        self._max_bytes = _check.whole("max_bytes", max_bytes, 1)
        self._timeout = timeout
        self._errors = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)
        headers = {"Accept-Encoding": "identity", **_authorization(token)}
        try:
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=timeout, transport=transport, trust_env=False
            )
        except (httpx.InvalidURL, TypeError) as error:
            raise InputError(
                f"url must be an address such as http://127.0.0.1:8000: {error}"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    # Searching

    def search(
        self,
        *,
        vectors: Any = None,
        codes: BinaryCodes | np.ndarray | None = None,
        ids: Any = None,
        texts: Sequence[str] | None = None,
        allowed: Any = None,
        weights: Any = None,
        histogram: bool = False,
        **settings: Any,
    ) -> Answer:
        """The nearest items of queries, which are given in exactly one way.

        Parameters
        ----------
        vectors : array of shape (queries, features)
        codes : BinaryCodes, or packed uint8 of shape (queries, bytes)
        ids : items of the collection as queries
        texts : texts, where the model takes them
        allowed : ids that may be returned
        weights : weights of bits, for rerank="weighted_bits"
        histogram : whether to count the items at each distance too
        settings : k, radius, ties, by, labels, rerank, similarity and pool, as in the API
            What is not given is as the plan of the server says.
        """
        arrays = _arrays(vectors, codes, ids, allowed, weights)
        facts = {**settings, **({"include": ["histogram"]} if histogram else {})}
        if texts is not None:
            facts["texts"] = list(texts)
        values, header = self._exchange("/search", arrays, facts)
        with self._understanding():
            return _answer(values, header)

    def encode(
        self, vectors: Any = None, *, texts: Sequence[str] | None = None, side: str = "items"
    ) -> BinaryCodes | np.ndarray:
        """Codes of rows as "items" or "queries", or their "weights" as real-valued queries."""
        facts: dict[str, Any] = {"as": side}
        if texts is not None:
            facts["texts"] = list(texts)
        values, header = self._exchange("/encode", _arrays(vectors, None, None, None, None), facts)
        with self._understanding():
            if "weights" in values:
                return values["weights"]
            bits, model, side = (json.loads(header[name]) for name in ("bits", "model", "side"))
            return BinaryCodes(values["codes"], bits, model, side)

    # Items

    def item(self, item: int) -> dict[str, Any]:
        """An item: its code in hexadecimal digits, its fields, the address of its picture."""
        return self._json("GET", f"/items/{_check.whole('item', item, 0)}")

    def upsert(self, ids: Any, *, vectors: Any = None, codes: Any = None) -> dict[str, int]:
        """Add or replace items; when it returns, they are on the disk of the server."""
        return self._json("POST", "/items", _wire.dump(_arrays(vectors, codes, ids, None, None)))

    def remove(self, item: int) -> None:
        """Remove an item; when it returns, the disk of the server no longer has it."""
        self._json("DELETE", f"/items/{_check.whole('item', item, 0)}")

    def stats(self) -> dict[str, Any]:
        """What is served."""
        return self._json("GET", "/stats")

    # Requests

    def _exchange(
        self, path: str, arrays: dict[str, np.ndarray], facts: dict[str, Any]
    ) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        texts = {name: json.dumps(value) for name, value in facts.items()}
        content = self._send("POST", path, _wire.dump(arrays, texts), _wire.MEDIA_TYPE)
        with self._understanding():
            return _wire.load(content)

    def _json(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        content = self._send(method, path, body, "application/json")
        with self._understanding():
            values = json.loads(content) if content else {}
            if not isinstance(values, dict):
                raise TypeError("a JSON object was expected")
            return values

    def _send(self, method: str, path: str, body: bytes | None, accept: str) -> bytes:
        """The body of the answer to a request, which is sent again while the server is busy."""
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = _wire.MEDIA_TYPE
        for attempt in range(self._retries + 1):
            status, content, retry_after = self._receive(method, path, body, headers)
            if status not in _BUSY or attempt == self._retries:
                break
            time.sleep(min(retry_after or 0.0, _MOST_WAIT))
        if not 200 <= status < 300:
            raise ServiceError(status, _problem(content), retry_after)
        return content

    def _receive(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, float | None]:
        """Status, body and Retry-After of one answer; no redirect is followed."""
        end = time.monotonic() + self._timeout
        try:
            with self._http.stream(method, path, content=body, headers=headers) as answer:
                content = self._read(answer, end)
        except self._errors as error:
            raise RankbitsError(f"{self._http.base_url} cannot be reached: {error}") from None
        return answer.status_code, content, _seconds(answer)

    def _read(self, answer: Any, end: float) -> bytes:
        """The body of an answer, as far as it is not larger or slower than it may be."""
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise self._strange("it sent a compressed body, which was not asked for")
        parts, n_bytes = [], 0
        for part in answer.iter_bytes():  # as they come: nothing is unpacked
            parts.append(part)
            n_bytes += len(part)
            if not answer.is_success and n_bytes > _MOST_PROBLEM:
                break
            if n_bytes > self._max_bytes:
                raise self._strange(f"its answer has more than max_bytes={self._max_bytes}")
            if time.monotonic() > end:
                raise self._strange(f"its answer was not there after {self._timeout} seconds")
        return b"".join(parts)

    def _strange(self, what: object) -> RankbitsError:
        words = " ".join(str(what).split())[:200]
        return RankbitsError(f"{self._http.base_url} does not answer as rankbits serve: {words}")

    @contextmanager
    def _understanding(self) -> Iterator[None]:
        """Whatever is wrong with an answer becomes one sentence."""
        try:
            yield
        except _MISUNDERSTANDINGS as error:
            is_missing = isinstance(error, KeyError)
            raise self._strange(f"it left out {error}" if is_missing else error) from None


def _authorization(token: str | None) -> dict[str, str]:
    """The header of a token, which is never part of an error."""
    if token is None:
        return {}
    is_text = isinstance(token, str) and token.isascii() and token.isprintable()
    if not is_text or not token or " " in token:
        raise InputError("token must be a text of ASCII characters without spaces")
    return {"Authorization": f"Bearer {token}"}


def _answer(values: dict[str, np.ndarray], header: dict[str, str]) -> Answer:
    """The arrays of a search, which must be of the types and shapes that an answer has."""
    values = {name: values[name] for name in _TYPES if name in values}
    for name, array in values.items():
        kinds, n_dims = _TYPES[name]
        if array.dtype.kind not in kinds or array.ndim not in n_dims:
            raise InputError(f"{name} has {_check.describe(array)}")
    if values["distances"].shape != values["ids"].shape:
        raise InputError("distances has another shape than ids")
    if "offsets" in values:
        offsets, n_ids = values["offsets"], values["ids"].shape[0]
        is_whole = len(offsets) and offsets[0] == 0 and offsets[-1] == n_ids
        if not is_whole or (np.diff(offsets) < 0).any():
            raise InputError("offsets do not lead through ids")
    return Answer(**values, milliseconds=float(json.loads(header["milliseconds"])))


def _arrays(
    vectors: Any, codes: Any, ids: Any, allowed: Any, weights: Any
) -> dict[str, np.ndarray]:
    """What is given, as arrays of the types that the server reads."""
    if isinstance(codes, BinaryCodes):
        codes = codes.packed
    kinds: dict[str, tuple[Any, Any]] = {
        "vectors": (vectors, None),
        "codes": (codes, np.uint8),
        "ids": (ids, np.int64),
        "allowed": (allowed, np.int64),
        "weights": (weights, np.float64),
    }
    arrays = {}
    for name, (values, dtype) in kinds.items():
        if values is None:
            continue
        array = np.asarray(values)
        if dtype is None:
            dtype = array.dtype if array.dtype in (np.float16, np.float32) else np.float64
        try:
            is_any = name == "vectors" or array.size == 0  # an empty list becomes floats
            arrays[name] = array.astype(dtype, casting="unsafe" if is_any else "same_kind")
        except (TypeError, ValueError):
            raise InputError(
                f"{name} must be of type {np.dtype(dtype)}, got {_check.describe(array)}"
            ) from None
    return arrays


def _problem(content: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(content)
    except (ValueError, RecursionError):
        problem = None
    return (
        problem if isinstance(problem, dict) else {"title": content[:200].decode(errors="replace")}
    )


def _seconds(answer: Any) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None
