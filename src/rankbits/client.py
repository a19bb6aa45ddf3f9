"""A client of `rankbits serve`: arrays in, arrays out.

Batches travel in the compact binary form. An error of the server is a `ServiceError` with the
members of its problem details (RFC 9457).
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from rankbits import _check, _wire
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError, RankbitsError

__all__ = ["Answer", "Client", "ServiceError"]

_BUSY = (429, 503)
_MOST_WAIT = 5.0  # seconds before a request is sent again


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
    distances : ndarray of int32, shaped as ids, or None
        None where items were scored.
    scores : ndarray of float32, shaped as ids, or None
    offsets : ndarray of int64 or None
        For a radius and for complete ties: the items of query q are ids[offsets[q]:offsets[q + 1]].
    histogram : ndarray of int64, shape (queries, bits + 1), or None
        Items at each distance, if asked for.
    milliseconds : float
        Time of the server.
    """

    ids: np.ndarray
    distances: np.ndarray | None = None
    scores: np.ndarray | None = None
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
        retries: int = 2,
        transport: Any = None,
    ) -> None:
        httpx = _check.extra("httpx", "rankbits.client", "client")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._retries = _check.whole("retries", retries, 0)
        self._errors = httpx.TransportError
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=timeout, transport=transport, trust_env=False
        )

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
        weights : weights of bits, for rescore="weighted_bits"
        histogram : whether to count the items at each distance too
        settings : k, radius, ties, query, labels, rescore, metric and pool, as in the API
        """
        arrays = _arrays(vectors, codes, ids, allowed, weights)
        facts = {**settings, **({"include": ["histogram"]} if histogram else {})}
        if texts is not None:
            facts["texts"] = list(texts)
        values, texts_of_header = self._exchange("/search", arrays, facts)
        values.pop("codes", None)
        values.pop("query_codes", None)
        return Answer(**values, milliseconds=json.loads(texts_of_header["milliseconds"]))

    def encode(
        self, vectors: Any = None, *, texts: Sequence[str] | None = None, side: str = "items"
    ) -> BinaryCodes | np.ndarray:
        """Codes of rows as "items" or "queries", or their "weights" as real-valued queries."""
        facts: dict[str, Any] = {"as": side}
        if texts is not None:
            facts["texts"] = list(texts)
        values, header = self._exchange("/encode", _arrays(vectors, None, None, None, None), facts)
        if "weights" in values:
            return values["weights"]
        bits, model, side = (json.loads(header[name]) for name in ("bits", "model", "side"))
        return BinaryCodes(values["codes"], bits, model, side)

    # Items

    def item(self, item: int) -> dict[str, Any]:
        """An item: its code in hexadecimal digits, its fields, the address of its picture."""
        return self._json("GET", f"/items/{int(item)}")

    def upsert(self, ids: Any, *, vectors: Any = None, codes: Any = None) -> dict[str, int]:
        """Add or replace items; when it returns, they are on the disk of the server."""
        body = _wire.dump(_arrays(vectors, codes, ids, None, None))
        return dict(self._send("POST", "/items", body).json())

    def remove(self, item: int) -> None:
        """Remove an item; when it returns, the disk of the server no longer has it."""
        self._json("DELETE", f"/items/{int(item)}")

    def stats(self) -> dict[str, Any]:
        """What is served."""
        return self._json("GET", "/stats")

    # Requests

    def _exchange(
        self, path: str, arrays: dict[str, np.ndarray], facts: dict[str, Any]
    ) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        texts = {name: json.dumps(value) for name, value in facts.items()}
        return _wire.load(self._send("POST", path, _wire.dump(arrays, texts)).content)

    def _json(self, method: str, path: str) -> dict[str, Any]:
        answer = self._send(method, path, None, accept="application/json")
        return dict(answer.json()) if answer.content else {}

    def _send(
        self, method: str, path: str, body: bytes | None, accept: str = _wire.MEDIA_TYPE
    ) -> Any:
        headers = {"Accept": "application/json" if path == "/items" else accept}
        if body is not None:
            headers["Content-Type"] = _wire.MEDIA_TYPE
        for attempt in range(self._retries + 1):
            try:
                answer = self._http.request(method, path, content=body, headers=headers)
            except self._errors as error:
                raise RankbitsError(f"{self._http.base_url} cannot be reached: {error}") from None
            if answer.status_code not in _BUSY or attempt == self._retries:
                break
            time.sleep(min(_seconds(answer) or 0.0, _MOST_WAIT))
        if not answer.is_success:
            raise ServiceError(answer.status_code, _problem(answer), _seconds(answer))
        return answer


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


def _problem(answer: Any) -> dict[str, Any]:
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"title": answer.text[:200]}


def _seconds(answer: Any) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None
