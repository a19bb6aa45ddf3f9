"""Has the data moved away from the codes?"""

import numpy as np
import pytest

from compressing import WIDTH, clusters
from rankbits.compress import check
from rankbits.errors import InputError


def test_data_of_the_same_kind_has_not_drifted(compressed):
    items, queries = clusters(600, 11)[0], clusters(60, 12)[0]
    result = check(compressed.folder, items, queries, n_threads=1)
    assert not result["drifted"]
    assert "no drift" in result["sentence"]
    assert result["gain"]["low"] < 0.02


def test_data_in_other_directions_has_drifted_and_a_refit_gains(compressed):
    """What varied little varies much now: the old bits look elsewhere."""
    rng = np.random.default_rng(5)
    narrow = np.where(np.arange(WIDTH) < 6, 1.0, 0.02)
    offset = 4 * rng.standard_normal(WIDTH)
    items, queries = (
        (rng.standard_normal((n, WIDTH)) * narrow + offset).astype(np.float32) for n in (600, 60)
    )
    result = check(compressed.folder, items, queries, n_threads=1)
    assert result["drifted"]
    assert result["gain"]["low"] > 0
    assert result["bits"]["largest_shift"] > 0.3
    assert "it has drifted" in result["sentence"]


def test_vectors_of_another_model_are_refused(compressed):
    with pytest.raises(InputError, match="items must have 32 numbers"):
        check(compressed.folder, np.random.default_rng(0).standard_normal((200, 16)))
