"""What callers hand in: codes, ids and filters, checked at the door."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.codes.note import require_same_model
from rankbits.codes.sides import require_query_side
from rankbits.errors import InputError

MAX_ID = 2**63 - 2  # so that the id after it is a number too


def codes_of(name: str, codes: Any, n_bits: int, model: str | None = None) -> BinaryCodes:
    """Codes of the index's length and model, from BinaryCodes or packed bytes."""
    if not isinstance(codes, BinaryCodes):
        return BinaryCodes(_check.array(name, codes), n_bits)
    if codes.n_bits != n_bits:
        raise InputError(f"{name} must have {n_bits} bits as the index has, got {codes.n_bits}")
    require_same_model(codes.model, model, name, "those of the index")
    return codes


def queries_of(codes: Any, n_bits: int, model: str | None) -> BinaryCodes:
    """Codes that the index is searched by."""
    queries = codes_of("codes", codes, n_bits, model)
    require_query_side("codes", queries)
    return queries


def factors_of(factors: Any, n: int, *, is_needed: bool) -> np.ndarray | None:
    """Factors of n items, two bytes each, for an index that needs them; None for any other."""
    if not is_needed:
        if factors is not None:
            raise InputError("factors must come to an index that was made with factors=True")
        return None
    array = None if factors is None else _check.array("factors", factors)
    if array is None or array.dtype != np.uint8 or array.shape != (n, 2):
        raise InputError(
            f"factors must be uint8 of shape ({n}, 2), two bytes for each code, such as "
            f"hasher.factors(X), got {_check.describe(factors)}"
        )
    return array


def how_many(k: Any) -> int:
    """The k of a search."""
    number = _check.whole("k", k, 1)
    if number >= 2**63:
        raise InputError(f"k must be below 2**63, got {number}")
    return number


def is_id(item: object) -> bool:
    """Whether it could be the id of an item."""
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
        return False
    return 0 <= int(item) <= MAX_ID


def ids_of(ids: Any, n: int | None = None, *, may_repeat: bool = False) -> np.ndarray:
    """Ids as int64, n of them if n is given, each once."""
    array = _check.array("ids", ids)
    if array.ndim == 1 and len(array) == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InputError(f"ids must be integers of shape (n,), got {_check.describe(array)}")
    if n is not None and len(array) != n:
        raise InputError(f"ids must be as many as codes, got {len(array)} ids for {n} codes")
    if len(array) and (array.min() < 0 or array.max() > MAX_ID):
        bad = array[(array < 0) | (array > MAX_ID)][0]
        raise InputError(f"ids must be from 0 to 2**63 - 2, got {bad}")
    if not may_repeat:
        _refuse_repeated(array)
    return array.astype(np.int64)


def _refuse_repeated(ids: np.ndarray) -> None:
    if len(ids) < 2 or (np.diff(ids) > 0).all():
        return
    ordered = np.sort(ids)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise InputError(f"ids must differ, {twice[0]} comes more than once")


def selections(
    allowed: Any, ids: Sequence[Callable[[], np.ndarray]], n: int
) -> Sequence[np.ndarray]:
    """What a filter leaves of each part: a mask of its items, or ids."""
    array = _check.array("allowed", allowed)
    if array.dtype != bool:
        try:
            return [ids_of(array, may_repeat=True)] * len(ids)
        except InputError as error:
            raise InputError(f"allowed must be ids or a mask of shape ({n},): {error}") from None
    if array.shape != (n,):
        raise InputError(
            f"allowed as a mask must have shape ({n},), an entry for each id, got "
            f"{_check.describe(array)}"
        )
    if len(ids) == 1:
        return [array]
    parts = [ids_of_part() for ids_of_part in ids]
    everywhere = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)
    return [array[np.searchsorted(everywhere, part_ids)] for part_ids in parts]
