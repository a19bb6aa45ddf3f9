"""Sets of rows as words of 64 bits: row i is bit i % 64 of word i // 64."""

from typing import Any

import numpy as np

WORD = 64


def all_words(n: int) -> np.ndarray:
    """The set of the first n rows; bits behind them are clear."""
    words = np.full(-(-n // WORD), np.iinfo(np.uint64).max, np.uint64)
    if n % WORD:
        words[-1] = np.uint64((1 << n % WORD) - 1)
    return words


def words_of(mask: Any) -> np.ndarray:
    """The set of a boolean mask with one entry per row."""
    packed = np.packbits(np.asarray(mask, bool), bitorder="little")
    padded = np.zeros(-(-len(packed) // 8) * 8, np.uint8)
    padded[: len(packed)] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def mask_of(words: np.ndarray, n: int) -> np.ndarray:
    """A set as a boolean mask of n entries."""
    octets = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, bitorder="little", count=n).astype(bool)


def contains(words: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which rows are in the set; a negative row stands for none and gives anything."""
    bits = words[rows // WORD] >> (rows % WORD).astype(np.uint64) & np.uint64(1)
    return np.asarray(bits == 1)


def without_rows(words: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A copy of the set that lacks some rows."""
    left = words.copy()
    bits = np.uint64(1) << (rows % WORD).astype(np.uint64)
    np.bitwise_and.at(left, rows // WORD, ~bits)
    return left
