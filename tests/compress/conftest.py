"""Clusters, and one compression of them that several tests look at."""

import numpy as np
import pytest

from compressing import SETTINGS, clusters
from rankbits.compress import compress


@pytest.fixture(scope="session")
def vectors():
    (items, item_labels), (queries, query_labels) = clusters(600, 1), clusters(60, 2)
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
