"""What `exclude_self` means: which item of the database each query is, if any.

Every function that takes `exclude_self` resolves it here.
"""

import numpy as np

from rankbits import _check
from rankbits.errors import InputError


def own_items(exclude_self: bool | np.ndarray, n_queries: int, n_items: int) -> np.ndarray | None:
    """The database row of each query, -1 for none; None if nothing is left out.

    Parameters
    ----------
    exclude_self : bool or array-like of integers, shape (n_queries,)
        True says that query i is item i, and False that no query is left out. An array holds the
        database row of each query, -1 for a query that is not in the database.
    n_queries : int
        The number of queries.
    n_items : int
        The number of items in the database. If `exclude_self` is True it must be `n_queries`.

    Returns
    -------
    ndarray of int64, shape (n_queries,), or None

    >>> own_items(True, 3, 3).tolist(), own_items(np.array([4, -1]), 2, 5).tolist()
    ([0, 1, 2], [4, -1])
    """
    if isinstance(exclude_self, bool | np.bool_):
        if not exclude_self:
            return None
        if n_queries != n_items:
            raise InputError(
                f"exclude_self=True needs the queries to be the database, got {n_queries} queries "
                f"and {n_items} items; pass each query's row of the database instead"
            )
        return np.arange(n_queries)
    own = _check.array("exclude_self", exclude_self)
    if own.shape != (n_queries,) or own.dtype.kind not in "iu":
        raise InputError(
            f"exclude_self must be a bool or {n_queries} integers, got {_check.describe(own)}"
        )
    if own.size and (own.min() < -1 or own.max() >= n_items):
        outside = own[(own < -1) | (own >= n_items)][0]
        raise InputError(f"exclude_self must name items from -1 to {n_items - 1}, got {outside}")
    return own.astype(np.int64)
