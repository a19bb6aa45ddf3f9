"""The most crowded code near a query: what LGAP needs beyond the tie histogram."""

import numpy as np

from rankbits import _native
from rankbits._mapped import reads_unchanged
from rankbits.codes import BinaryCodes, require_same_bits, require_unchanged


@reads_unchanged
def largest_codes(
    queries: BinaryCodes, database: BinaryCodes, *, n_threads: int | None = None
) -> np.ndarray:
    """Items on the most used code at each distance: int64 (queries, b + 1), 0 where there is none.

    Parameters
    ----------
    queries, database : codes of one length
    n_threads : int or None
        None takes RANKBITS_NUM_THREADS, or all there are.

    >>> codes = BinaryCodes.from_bits([[0, 0], [0, 1], [0, 1], [1, 0]])
    >>> largest_codes(codes[:1], codes).tolist()
    [[1, 2, 0]]
    """
    require_same_bits(queries, database)
    distinct, n_items = distinct_codes(database)
    largest = np.zeros((len(queries), 8 * queries.packed.shape[1] + 1), np.int64)
    _native.largest_counts(
        queries.packed, distinct, n_items, largest, n_threads=_native.threads(n_threads)
    )
    beyond = largest[:, queries.n_bits + 1 :]
    require_unchanged(not beyond.any(), f"a distance is beyond {queries.n_bits}", queries)
    return np.ascontiguousarray(largest[:, : queries.n_bits + 1])


@reads_unchanged
def distinct_codes(database: BinaryCodes) -> tuple[np.ndarray, np.ndarray]:
    """Distinct packed codes and the number of items on each.

    Parameters
    ----------
    database : codes, of which some may be equal
    """
    width = database.packed.shape[1]
    rows = database.packed.view(np.dtype((np.void, width))).ravel()
    distinct, n_items = np.unique(rows, return_counts=True)
    return distinct.view(np.uint8).reshape(-1, width), n_items.astype(np.int64)
