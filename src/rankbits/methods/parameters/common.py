"""Hyper-parameters that methods of all kinds have, each with its check and its documentation."""

from dataclasses import field
from typing import Any

import numpy as np

from rankbits.codes import MAX_BITS
from rankbits.errors import InputError
from rankbits.methods.parameters.fields import Parameters, anything, integer, parameter

Seed = int | np.random.RandomState | None


def check_verbose(name: str, value: Any) -> bool | str:
    """True, False or "auto"."""
    if isinstance(value, bool) or (isinstance(value, str) and value == "auto"):
        return value
    raise InputError(f"{name} must be True, False or 'auto', got {value!r}")


class CodeLength(Parameters):
    """The one parameter of every method.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length.
    """

    n_bits: int = field(
        default=32, kw_only=False, metadata={"check": integer(1, MAX_BITS), "reported": True}
    )


VERBOSE = parameter(
    False,
    check_verbose,
    """
    verbose : bool or "auto", default=False
        Whether a progress bar is shown on standard error; "auto" shows it on a terminal.
    """,
    reported=False,
)
RANDOM_STATE = parameter(
    None,
    anything,
    """
    random_state : int, RandomState or None, default=None
        Seed of the random numbers.
    """,
    reported=False,
)
