"""What is known about codes beside their bytes: how many bits, which model, and for which side.

A model is known by its fingerprint, as `rankbits.methods.fingerprint` gives it. Codes of unknown
models may be compared with any others; codes of two known models may not.
"""

import re
from dataclasses import dataclass
from typing import Any

from rankbits import _check
from rankbits.codes.sides import SIDES
from rankbits.errors import FileFormatError, InputError

MAX_BITS = 4096
_MODEL = re.compile(r"[!-~]{1,128}")  # goes into headers and trailers: no spaces, no line breaks
_SHOWN = 12  # characters of a fingerprint in a message


@dataclass(frozen=True)
class Note:
    """What a file says about its codes; None where it does not say."""

    n_bits: int | None = None
    model: str | None = None
    side: str | None = None

    @classmethod
    def parse(cls, n_bits: str | None, model: str | None, side: str | None, source: str) -> "Note":
        """A note out of the texts of a file, which may be anything."""
        if n_bits is not None and not _is_length(n_bits):
            raise FileFormatError(
                f"{source} is damaged: it says that codes have {n_bits!r:.40} bits"
            )
        if model is not None and not _MODEL.fullmatch(model):
            raise FileFormatError(f"{source} is damaged: it says that the model is {model!r:.40}")
        if side not in (None, *SIDES):
            raise FileFormatError(f"{source} is damaged: it says that codes are for {side!r:.40}")
        return cls(None if n_bits is None else int(n_bits), model, side)

    @property
    def width(self) -> int:
        """Bytes in a code, whose number of bits must be known."""
        assert self.n_bits is not None  # noqa: S101
        return -(-self.n_bits // 8)

    def resolve_bits(self, n_bits: int | None, width: int, source: str) -> int:
        """Bits in codes of `width` bytes: as the caller says, as the note says, or 8 per byte."""
        if n_bits is not None and self.n_bits not in (None, n_bits):
            raise InputError(f"n_bits is {n_bits}, but {source} holds codes of {self.n_bits} bits")
        bits = n_bits if n_bits is not None else self.n_bits or 8 * width
        bits = _check.whole("n_bits", bits, 1, MAX_BITS)
        if -(-bits // 8) != width:
            if self.n_bits is not None:
                raise FileFormatError(
                    f"{source} is damaged: it says that codes have {bits} bits, and they have "
                    f"{width} bytes"
                )
            raise InputError(f"n_bits is {bits}, but {source} holds codes of {width} bytes")
        return bits


def checked_model(model: Any) -> str | None:
    """The fingerprint of a model, or None if the model is unknown."""
    if model is None or (isinstance(model, str) and _MODEL.fullmatch(model)):
        return model
    raise InputError(
        "model must be a fingerprint of 1 to 128 visible ASCII characters without spaces, or None, "
        f"got {_check.describe(model)}"
    )


def require_same_model(first: str | None, second: str | None, what: str, than: str) -> None:
    """Refuse to compare codes of two models; an unknown model is no reason."""
    if first is not None and second is not None and first != second:
        raise InputError(
            f"{what} come from model {shorten(first)} and {than} from model {shorten(second)}, "
            "whose bits mean different things; encode both with the same model"
        )


def shorten(model: str) -> str:
    """A fingerprint as it is shown in a message."""
    return model if len(model) <= _SHOWN else f"{model[:_SHOWN]}..."


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 9 and 1 <= int(text) <= MAX_BITS
