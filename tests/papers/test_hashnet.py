"""What HashNet's continuation is for: codes that are binary before they are made so."""

import numpy as np
import pytest

from rankbits import methods
from rankbits.datasets import digits


@pytest.mark.parametrize("posterior", [0, 2])
def test_continuation_ends_at_codes_near_one(posterior):
    """Cao et al., HashNet, section 3.2: as β grows, tanh(β f) goes to sign(f).

    With the slope held where the run starts, the same network ends at codes far from ±1.
    """
    data = digits()
    x, y = data.database_x[:600], data.database_y[:600]
    params = {"n_bits": 16, "posterior": posterior, "n_threads": 1, "random_state": 0}
    grown = methods.get("hashnet", **params).fit(x, y)
    held = methods.get("hashnet", alpha=0.5, alpha_end=None, **params).fit(x, y)
    codes = {}
    for name, hasher in (("grown", grown), ("held", held)):
        phi = np.tanh(hasher.history_[-1]["alpha"] * hasher.project(x))
        codes[name] = float(np.abs(phi).mean())
    assert codes["grown"] > 0.98
    assert codes["held"] < codes["grown"] - 0.02
