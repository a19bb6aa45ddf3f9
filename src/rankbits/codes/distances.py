"""How far apart codes are, and whether two sets of codes may be compared at all."""

from collections.abc import Sequence

import numpy as np

from rankbits import _check, _native
from rankbits._mapped import reads_unchanged
from rankbits.codes.binary_codes import BinaryCodes
from rankbits.codes.note import require_same_model
from rankbits.codes.sides import check_sides
from rankbits.errors import InputError


def require_same_bits(queries: BinaryCodes, database: BinaryCodes) -> None:
    """Refuse codes of different lengths, models or sides: the check of all that compares two sets.

    Parameters
    ----------
    queries : BinaryCodes
        Codes of the queries, which must not be empty.
    database : BinaryCodes
        Codes of the items, which must not be empty. They must have the code length of `queries`
        and, where both models are known, the same model.
    """
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
    check_sides(queries, database)


@reads_unchanged
def hamming_distances(queries: BinaryCodes, database: BinaryCodes) -> np.ndarray:
    """Every distance, as a uint16 array (queries, items): for small blocks and for audits.

    Parameters
    ----------
    queries : BinaryCodes
        Codes of the queries, one row of the result for each.
    database : BinaryCodes
        Codes of the items, one column of the result for each. They have the code length of
        `queries`.
    """
    require_same_bits(queries, database)
    out = np.empty((len(queries), len(database)), np.uint16)
    _native.distances(queries.packed, database.packed, out, n_threads=_native.threads(None))
    require_unchanged(int(out.max()) <= queries.n_bits, f"a distance is {out.max()}", queries)
    return out


def smallest_distances(
    queries: Sequence[BinaryCodes], database: Sequence[BinaryCodes]
) -> np.ndarray:
    """Distance of every pair in the table that has it nearest, uint16 of shape (queries, items).

    Parameters
    ----------
    queries : sequence of BinaryCodes
        Codes of the same queries, one set for each hash table. At least one is needed.
    database : sequence of BinaryCodes
        Codes of the same items, one set for each hash table, in the order of `queries`.
    """
    nearest = hamming_distances(queries[0], database[0])
    for query_codes, item_codes in zip(queries[1:], database[1:], strict=True):
        np.minimum(nearest, hamming_distances(query_codes, item_codes), out=nearest)
    return nearest


def require_unchanged(is_sound: bool, evidence: str, queries: BinaryCodes) -> None:
    """Refuse distances that codes of this length cannot have: their bytes were written to.

    Parameters
    ----------
    is_sound : bool
        Whether the distances are possible. If True, nothing happens.
    evidence : str
        What was seen that is not possible, as part of a sentence for the error message.
    queries : BinaryCodes
        Codes that were compared; the message states their number of bits.
    """
    if not is_sound:
        raise InputError(
            f"codes changed while they were being compared: {evidence}, which codes of "
            f"{queries.n_bits} bits cannot give; do not write to the array or the file behind "
            "BinaryCodes, or pass a copy"
        )
