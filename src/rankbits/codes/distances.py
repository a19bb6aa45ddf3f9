"""How far apart codes are, and whether two sets of codes may be compared at all."""

from collections.abc import Sequence

import numpy as np

from rankbits import _check, _native
from rankbits.codes.binary_codes import BinaryCodes
from rankbits.codes.note import require_same_model
from rankbits.errors import InputError


def require_same_bits(queries: BinaryCodes, database: BinaryCodes) -> None:
    """Refuse codes of different lengths or models: the check of all that compares two sets."""
    for name, codes in (("queries", queries), ("database", database)):
        if not isinstance(codes, BinaryCodes):
            raise InputError(
                f"{name} must be BinaryCodes, got {_check.describe(codes)}; make them with "
                "BinaryCodes(packed, n_bits), or of unpacked bits with BinaryCodes.from_bits(bits)"
            )
        if len(codes) == 0:
            raise InputError(f"{name} must not be empty")
    if queries.n_bits != database.n_bits:
        raise InputError(
            f"queries have {queries.n_bits} bits and database has {database.n_bits}; "
            "encode both with the same model"
        )
    require_same_model(queries.model, database.model, "queries", "database")


def hamming_distances(queries: BinaryCodes, database: BinaryCodes) -> np.ndarray:
    """Every distance, as a uint16 array (queries, items): for small blocks and for audits."""
    require_same_bits(queries, database)
    out = np.empty((len(queries), len(database)), np.uint16)
    _native.distances(queries.packed, database.packed, out, n_threads=_native.threads(None))
    require_unchanged(int(out.max()) <= queries.n_bits, f"a distance is {out.max()}", queries)
    return out


def smallest_distances(
    queries: Sequence[BinaryCodes], database: Sequence[BinaryCodes]
) -> np.ndarray:
    """Distance of every pair in the table that has it nearest, uint16 of shape (queries, items).

    Both hold the codes of each table, in the same order.
    """
    nearest = hamming_distances(queries[0], database[0])
    for query_codes, item_codes in zip(queries[1:], database[1:], strict=True):
        np.minimum(nearest, hamming_distances(query_codes, item_codes), out=nearest)
    return nearest


def require_unchanged(is_sound: bool, evidence: str, queries: BinaryCodes) -> None:
    """Refuse distances that codes of this length cannot have: their bytes were written to."""
    if not is_sound:
        raise InputError(
            f"codes changed while they were being compared: {evidence}, which codes of "
            f"{queries.n_bits} bits cannot give; do not write to the array or the file behind "
            "BinaryCodes, or pass a copy"
        )
