"""Trainings behind a class posterior that take seconds."""

import pytest


@pytest.fixture(scope="module")
def short_posterior():
    """The same stages with fewer steps and rows."""
    pytest.importorskip("torch")
    from rankbits.methods.training import posterior, sample_pool

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "_FEWEST_STEPS", 60)
        patch.setattr(posterior, "_PILOT_STEPS", 30)
        patch.setattr(sample_pool, "_FEWEST_SAMPLES", 2000)
        patch.setattr(sample_pool, "_SAMPLES_PER_ROW", 2)
        yield
