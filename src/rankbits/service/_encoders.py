"""From what a caller has to codes and weights: vectors, and texts and pictures where the model can.

A request is encoded by itself, never together with others: products of matrices may differ in their
last digits with the number of rows, and answers shall not.
"""

import base64
import binascii
import importlib.util
import io
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.datasets.pictures import count_pixels, read_picture
from rankbits.errors import FileFormatError, InputError
from rankbits.service._limits import Limits
from rankbits.service._problems import RequestProblem

_BASE64_PIECE = 1 << 16  # characters, a multiple of four
TextEncoder = Callable[[Sequence[str]], np.ndarray]


class RequestEncoder:
    """A model, and what stands before it.

    Parameters
    ----------
    hasher : fitted method, or None for a server that takes codes and ids only
    text_encoder : function from texts to the vectors that the method reads, or None
    limits : Limits
    """

    def __init__(self, hasher: Any, text_encoder: TextEncoder | None, limits: Limits) -> None:
        self.hasher, self._text_encoder, self._limits = hasher, text_encoder, limits
        self._lock = threading.Lock()  # methods promise nothing about threads
        if hasher is None and text_encoder is not None:
            raise InputError("text_encoder must come with a model, which encodes its vectors")

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row of the model, () without a model."""
        return () if self.hasher is None else tuple(self.hasher._row_shape())

    @property
    def takes_vectors(self) -> bool:
        """Whether rows of numbers can be encoded."""
        return len(self.row_shape) == 1

    @property
    def takes_texts(self) -> bool:
        """Whether texts can be encoded."""
        return self._text_encoder is not None

    @property
    def takes_pictures(self) -> bool:
        """Whether pictures can be encoded."""
        has_pillow = importlib.util.find_spec("PIL") is not None
        return has_pillow and len(self.row_shape) == 3 and self.row_shape[2] == 3

    @property
    def method(self) -> str | None:
        """The name of the method."""
        if self.hasher is None:
            return None
        from rankbits.methods.registry import name_of

        return name_of(self.hasher)

    @property
    def fingerprint(self) -> str | None:
        """What tells the codes of this model from those of others."""
        if self.hasher is None:
            return None
        from rankbits import methods

        return methods.fingerprint(self.hasher)

    # Rows of the model

    def rows_of_vectors(self, vectors: Any) -> np.ndarray:
        """Rows of numbers, checked."""
        if not self.takes_vectors:
            raise RequestProblem(
                "invalid", f"vectors must go with a model that reads them; {self.reads}"
            )
        rows = _check.array("vectors", vectors)
        width = self.row_shape[0]
        if rows.dtype.kind not in "iuf" or rows.ndim != 2 or rows.shape[1] != width:
            raise InputError(
                f"vectors must be numbers of shape (n, {width}), got {_check.describe(rows)}"
            )
        _check.finite("vectors", rows)
        return rows

    def rows_of_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts."""
        if self._text_encoder is None:
            raise RequestProblem(
                "invalid", f"texts must go with a model that reads them; {self.reads}"
            )
        if max(map(len, texts), default=0) > self._limits.characters:
            detail = f"a text may have {self._limits.characters} characters"
            raise RequestProblem("limit", detail)
        with self._lock:
            return self.rows_of_vectors(np.asarray(self._text_encoder(texts)))

    def rows_of_pictures(self, pictures: Sequence[str]) -> np.ndarray:
        """Pixels of pictures that come as base64, in the size that the model reads."""
        self._require_pictures()
        size = self.row_shape[0], self.row_shape[1]
        return np.stack([self._pixels(text, size) for text in pictures])

    def _require_pictures(self) -> None:
        if not self.takes_pictures:
            raise RequestProblem(
                "invalid", f"pictures must go with a model that reads them; {self.reads}"
            )

    def n_pixels(self, text: str) -> int:
        """Pixels of a picture that comes as base64, by its first bytes."""
        self._require_pictures()
        with _bad_pictures_refused():
            return count_pixels(io.BytesIO(_decoded(text)))

    def _pixels(self, text: str, size: tuple[int, int]) -> np.ndarray:
        with _bad_pictures_refused():
            data = io.BytesIO(_decoded(text))
            return read_picture(data, size, most_pixels=self._limits.pixels)

    # Codes

    def encode(self, rows: np.ndarray, side: str) -> BinaryCodes:
        """Codes of rows as "items" or as "queries"."""
        with self._working():
            encoded = self.hasher.encode_queries if side == "queries" else self.hasher.encode
            codes: BinaryCodes = encoded(rows)
            return codes

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Real-valued queries."""
        with self._working():
            weights = np.asarray(self.hasher.project_queries(rows))
            _check.finite("weights", weights)
            return weights

    def factors(self, rows: np.ndarray) -> np.ndarray:
        """The bytes of factors of items, for a collection that has them."""
        if not hasattr(self.hasher, "factors"):
            raise RequestProblem(
                "invalid", "items must have factors, which this model does not give"
            )
        with self._working():
            return np.asarray(self.hasher.factors(rows))

    def correction(self) -> np.ndarray | None:
        """How factors of items correct scores by weights, if the model gives any."""
        return None if self.hasher is None else self.hasher.correction()

    @contextmanager
    def _working(self) -> Iterator[None]:
        """One thread at a time, and rows that are too large for numbers are refused."""
        try:
            with self._lock, np.errstate(over="raise", invalid="raise"):
                yield
        except FloatingPointError:
            detail = "vectors must be smaller: their codes are beyond all numbers"
            raise RequestProblem("invalid", detail) from None

    @property
    def reads(self) -> str:
        """What the model reads, for messages."""
        if self.hasher is None:
            return "this server was started without --model"
        what = ["pictures"] * self.takes_pictures + ["vectors"] * self.takes_vectors
        return f"this one reads {' and '.join(what) or 'none'}"


def _decoded(text: str) -> bytes:
    """Bytes of base64, a piece at a time, so that other threads run in between."""
    if "=" in text[:-2]:
        raise ValueError("base64")
    starts = range(0, len(text), _BASE64_PIECE)
    pieces = (text[start : start + _BASE64_PIECE] for start in starts)
    return b"".join(base64.b64decode(piece, validate=True) for piece in pieces)


@contextmanager
def _bad_pictures_refused() -> Iterator[None]:
    try:
        yield
    except (binascii.Error, ValueError) as error:
        what = "base64" if isinstance(error, binascii.Error) else str(error)
        detail = f"pictures must be PNG, JPEG, WebP or BMP: {what}"
        raise RequestProblem("invalid", detail) from None


def load_encoder(
    model: str | os.PathLike[str] | None,
    text_model: str | os.PathLike[str] | None,
    limits: Limits,
    *,
    trust_code: bool = False,
) -> RequestEncoder:
    """The encoder of a folder of rankbits, or of a SentenceTransformer that ends with a hasher.

    A text model is a folder of a SentenceTransformer, whose embeddings the method reads. Code that
    lies in these folders runs only if `trust_code` says so, and never that of a model of rankbits.
    """
    if model is not None and _is_sentence_transformer(model):
        if text_model is not None:
            raise InputError("--text-model must be left out: --model reads texts itself")
        modules = _load_sentence_transformer(model, trust_code)
        hasher = getattr(modules[-1], "hasher", None)
        if hasher is None:
            raise FileFormatError(f"{model} must end with a hasher; see append_hasher")
        return RequestEncoder(hasher, _texts_by(modules, len(modules) - 1), limits)
    hasher = None
    if model is not None:
        from rankbits import methods  # takes long to import, and codes need none

        hasher = methods.load(model)
    if text_model is None:
        return RequestEncoder(hasher, None, limits)
    modules = _load_sentence_transformer(text_model, trust_code)
    return RequestEncoder(hasher, _texts_by(modules, len(modules)), limits)


def _is_sentence_transformer(folder: str | os.PathLike[str]) -> bool:
    names = ("modules.json", "model.json")  # the second is that of a model of rankbits
    has_modules, is_ours = (os.path.exists(os.path.join(folder, name)) for name in names)
    return has_modules and not is_ours


def _load_sentence_transformer(folder: str | os.PathLike[str], trust_code: bool) -> Any:
    _check.extra("sentence_transformers", "a model of texts", "text")
    from rankbits.adapters.sentence_transformers import load_model

    return load_model(folder, trust_code=trust_code)


def _texts_by(model: Any, n_modules: int) -> TextEncoder:
    """Embeddings of texts as queries, by the first modules of a SentenceTransformer."""
    package = _check.extra("sentence_transformers", "a model of texts", "text")
    part = package.SentenceTransformer(
        modules=list(model.children())[:n_modules], device="cpu", prompts=model.prompts
    )

    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.asarray(part.encode_query(list(texts), show_progress_bar=False))

    return encode
