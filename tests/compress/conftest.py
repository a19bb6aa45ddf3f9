"""Clusters in 32 dimensions, and one compression of them that several tests look at."""

import numpy as np
import pytest

from rankbits.compress import compress

N_ITEMS, N_QUERIES, WIDTH = 600, 60, 32
SETTINGS = {"n_bytes": (2, 4), "methods": ["sign", "itq"], "pools": (20, 50), "n_threads": 1}


def clusters(n_rows, seed):
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(99).standard_normal((40, WIDTH))
    labels = rng.integers(40, size=n_rows)
    return (centers[labels] + 0.6 * rng.standard_normal((n_rows, WIDTH))).astype(np.float32), labels


@pytest.fixture(scope="session")
def vectors():
    (items, item_labels), (queries, query_labels) = clusters(N_ITEMS, 1), clusters(N_QUERIES, 2)
    return {
        "items": items,
        "queries": queries,
        "item_labels": item_labels,
        "query_labels": query_labels,
    }


@pytest.fixture(scope="session")
def compressed(vectors, tmp_path_factory):
    """By the float ranking, from a mapped file."""
    folder = tmp_path_factory.mktemp("compressed")
    np.save(folder / "items.npy", vectors["items"])
    return compress(
        folder / "items.npy", vectors["queries"], out=folder / "out", keep=0.9, **SETTINGS
    )
