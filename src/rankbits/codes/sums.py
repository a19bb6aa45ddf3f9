"""Codes that stand for sums: every four bits name one of the 16 vectors of a codebook.

A code stands for the sum s of the vectors that its entries name. A row x has the code with a small
error |x - s|² + η (x'(x - s))², in which what is off along the row itself counts 1 + η times. Which
code is best cannot be told entry by entry, since the vectors are not orthogonal; the kernel looks
for it by sweeps over the codebooks, each of which takes the entry that is best given the others,
and goes on from changed codes where sweeps change nothing any more.

Where the number of bits is no multiple of four, the last codebook has 2, 4 or 8 vectors, whose
entries are multiples of 8, 4 or 2: spare bits stay zero.

Notation:
    n  rows      m  codebooks      b  bits
"""

from dataclasses import dataclass

import numpy as np

from rankbits import _native

N_ENTRIES = 16
_NEVER = 1e300  # square of a vector that no code may name


def count_books(n_bits: int) -> int:
    """Codebooks of codes of so many bits."""
    return -(-n_bits // 4)


def usable_entries(n_bits: int) -> np.ndarray:
    """Which of the 16 m vectors codes of so many bits may name: all but those of spare bits.

    >>> np.flatnonzero(usable_entries(6)[16:])
    array([ 0,  4,  8, 12])
    """
    entries = np.tile(np.arange(N_ENTRIES), count_books(n_bits))
    is_usable = np.ones(len(entries), bool)
    is_usable[-N_ENTRIES:] = entries[-N_ENTRIES:] % (1 << -n_bits % 4) == 0
    return is_usable


def bits_to_entries(bits: np.ndarray) -> np.ndarray:
    """Entries (n, m) of codes given as bits (n, b) of 0 and 1, the first bit of four the highest.

    >>> bits_to_entries(np.array([[1, 0, 0, 1, 1, 1]], np.uint8))
    array([[ 9, 12]], dtype=uint8)
    """
    padded = np.pad(bits.astype(np.uint8), ((0, 0), (0, -bits.shape[1] % 4)))
    fours = padded.reshape(len(bits), padded.shape[1] // 4, 4)
    return fours @ np.array([8, 4, 2, 1], np.uint8)


def entries_to_bits(entries: np.ndarray, n_bits: int) -> np.ndarray:
    """Bits (n, b) of 0 and 1 of entries (n, m): the inverse of `bits_to_entries`."""
    shifts = np.array([3, 2, 1, 0], np.uint8)
    bits = entries[:, :, None] >> shifts & 1
    return bits.reshape(len(entries), 4 * entries.shape[1])[:, :n_bits]


@dataclass(frozen=True)
class SumSearch:
    """How to look for the code of a row: what the vectors have in common, and the changes to try.

    Attributes
    ----------
    products : (16 m, 16 m) float64
        Of each vector with each; the square of a vector that no code may name is huge.
    along : float
        η.
    changes : (restarts, changes, 2) uint16
        Codebooks and entries that a restart sets in the best code so far.
    n_sweeps : int
        Sweeps at most, at first and of a restart.
    """

    products: np.ndarray
    along: float
    changes: np.ndarray
    n_sweeps: int

    @classmethod
    def of_vectors(
        cls, vectors: np.ndarray, n_bits: int, along: float, n_restarts: int, n_sweeps: int = 4
    ) -> "SumSearch":
        """The search among sums of the vectors (16 m, d), with so many restarts."""
        products = vectors @ vectors.T
        unused = np.flatnonzero(~usable_entries(n_bits))
        products[unused, unused] = _NEVER
        return cls(products, along, draw_changes(n_bits, n_restarts), n_sweeps)

    def improve(
        self,
        shares: np.ndarray,
        squares: np.ndarray,
        entries: np.ndarray,
        n_threads: int | None = None,
    ) -> np.ndarray:
        """The best entries (n, m) that the search finds from given ones, for each row alone.

        `shares` (n, 16 m) are the products of rows and vectors, `squares` (n,) those of rows with
        themselves.
        """
        better = np.array(entries, np.uint8, order="C")
        _native.improve_codes(
            np.ascontiguousarray(self.products, np.float64),
            np.ascontiguousarray(shares, np.float64),
            np.ascontiguousarray(squares, np.float64),
            self.along,
            self.changes,
            self.n_sweeps,
            better,
            _native.threads(n_threads),
        )
        return better


def draw_changes(n_bits: int, n_restarts: int, n_changes: int = 4) -> np.ndarray:
    """The changes of restarts: always the same for a code length, so that codes are too."""
    rng = np.random.RandomState(n_bits)
    usable = np.flatnonzero(usable_entries(n_bits))
    drawn = usable[rng.randint(len(usable), size=(n_restarts, n_changes))]
    changes: np.ndarray = np.stack(np.divmod(drawn, N_ENTRIES), axis=2).astype(np.uint16)
    return changes
