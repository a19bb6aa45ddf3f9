"""How a database uses its code space: distinct codes, collisions, entropy, and its bits.

Notation:
    b  bits in a code       c  items on one code
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.histogram import distinct_codes

_CELLS = 1 << 20  # bits unpacked at once, as doubles


@dataclass(frozen=True, eq=False)
class CodeUse:
    """How a database uses its code space.

    Attributes
    ----------
    n_items, n_distinct : items, and different codes among them
    share_of_space : n_distinct / 2^b; 0.0 where that is below the smallest double
    collision_rate : share of items that share their code with another item
    entropy_bits : entropy of the distribution of items over codes, 0 to log2(n_items)
    bit_balance : (b,) share of ones of each bit; 0.5 is balanced
    bit_correlation : (b, b) Pearson correlation of bits; 0 in the row and column of a constant bit

    """

    n_items: int
    n_distinct: int
    share_of_space: float
    collision_rate: float
    entropy_bits: float
    bit_balance: np.ndarray
    bit_correlation: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Every field, arrays as lists: ready for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }


def code_use(database: BinaryCodes) -> CodeUse:
    """Distinct codes, collisions, entropy, and balance and correlation of the bits.

    Cost follows the number of distinct codes. Equations (code use) of docs/math.md.

    Parameters
    ----------
    database : BinaryCodes
        Codes of the database items; there must be at least one.

    >>> use = code_use(BinaryCodes.from_bits([[0, 1], [0, 1], [1, 1], [1, 1]]))
    >>> use.n_distinct, use.collision_rate, use.entropy_bits, use.bit_balance.tolist()
    (2, 1.0, 1.0, [0.5, 1.0])
    """
    if not isinstance(database, BinaryCodes):
        raise InputError(
            f"database must be BinaryCodes, got {_check.describe(database)}; "
            "for packed bytes call BinaryCodes(packed, n_bits)"
        )
    if len(database) == 0:
        raise InputError("database must not be empty")
    distinct, n_items = distinct_codes(database)
    share = n_items / len(database)
    balance, correlation = _bit_statistics(distinct, n_items, database.n_bits)
    return CodeUse(
        n_items=len(database),
        n_distinct=len(distinct),
        share_of_space=float(np.ldexp(float(len(distinct)), -database.n_bits)),
        collision_rate=float(n_items[n_items > 1].sum() / len(database)),
        entropy_bits=float(-(share * np.log2(share)).sum()) + 0.0,
        bit_balance=balance,
        bit_correlation=correlation,
    )


def _bit_statistics(
    distinct: np.ndarray, n_items: np.ndarray, n_bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Share of ones and correlation of bits; counts of pairs are whole numbers, so exact."""
    together = np.zeros((n_bits, n_bits), np.int64)  # items with both bits set
    rows = max(1, _CELLS // n_bits)
    for start in range(0, len(distinct), rows):
        bits = np.unpackbits(distinct[start : start + rows], axis=1, count=n_bits)
        ones = bits.astype(np.float64)
        weighted = ones * n_items[start : start + rows, None]
        together += (ones.T @ weighted).astype(np.int64)
    total, ones_of = int(n_items.sum()), together.diagonal()
    covariance = total * together - np.outer(ones_of, ones_of)
    deviation = np.sqrt((ones_of * (total - ones_of)).astype(np.float64))
    scale = np.outer(deviation, deviation)
    correlation = np.where(scale > 0, covariance / np.where(scale > 0, scale, 1.0), 0.0)
    np.fill_diagonal(correlation, (deviation > 0).astype(np.float64))
    return ones_of / total, correlation
