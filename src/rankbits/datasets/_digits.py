"""scikit-learn's handwritten digits, split into queries and a database: data without a download."""

from dataclasses import dataclass

import numpy as np

from rankbits import _check

N_DIGITS = 1797


@dataclass(frozen=True, eq=False)
class Split:
    """Features and class labels of queries and of the database they search.

    Attributes
    ----------
    query_x, database_x : ndarray of float64, shape (n, features)
        The features of the queries and of the items.
    query_y, database_y : ndarray of int64, shape (n,)
        The class of each query and of each item.
    """

    query_x: np.ndarray
    query_y: np.ndarray
    database_x: np.ndarray
    database_y: np.ndarray


def digits(n_queries: int = 297, random_state: int = 0) -> Split:
    """1,797 images of 8 x 8 pixels in ten classes; a seeded choice of them are the queries.

    Parameters
    ----------
    n_queries : int, 1 to 1796, default=297
        Number of queries. All other images are the database.
    random_state : int, default=0
        Seed of the choice.

    >>> digits(n_queries=100).database_x.shape
    (1697, 64)
    """
    from sklearn.datasets import load_digits

    n_queries = _check.whole("n_queries", n_queries, 1, N_DIGITS - 1)
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(random_state).permutation(len(y))
    queries, items = order[:n_queries], np.sort(order[n_queries:])
    return Split(x[queries], y[queries].astype(np.int64), x[items], y[items].astype(np.int64))
