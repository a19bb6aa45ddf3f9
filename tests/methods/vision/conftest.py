"""Small pictures."""

import pytest


@pytest.fixture(scope="module")
def pictures():
    """Pictures (600, 8, 8, 3) and their classes."""
    pytest.importorskip("torch")
    from methods.vision.spots import draw_pictures

    return draw_pictures()
