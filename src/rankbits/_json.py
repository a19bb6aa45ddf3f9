"""Conversion of results, reports and settings to values that JSON can hold."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def as_json(value: Any) -> Any:
    """NumPy's numbers become Python's, arrays become lists, infinity and NaN null, all else text.

    >>> as_json({"rate": np.float32(0.5), "sizes": (2, np.int64(3)), "score": float("nan")})
    {'rate': 0.5, 'sizes': [2, 3], 'score': None}
    """
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
