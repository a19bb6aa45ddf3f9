"""Fingerprints of fitted methods: codes are comparable if the same model made them.

A fingerprint is a hash of what decides the codes: the method, and what it has learned. So it is the
same for a method in memory, for the folder it was saved to and for its ONNX file, and it does not
depend on how the model was trained, on its version or on parameters such as the number of threads.
"""

import hashlib
import json
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rankbits.errors import InputError
from rankbits.methods.json_values import to_json
from rankbits.methods.registry import known_name
from rankbits.methods.stored_arrays import as_stored

_N_DIGITS = 32  # hexadecimal, of SHA-256
_ABOUT_TRAINING = ("history", "report")  # facts that no code depends on
_known: WeakKeyDictionary[Any, tuple[dict[str, Any], str | None]] = WeakKeyDictionary()


def fingerprint(hasher: Any) -> str | None:
    """The fingerprint of a fitted method, which its codes carry as `BinaryCodes.model`.

    None for methods that cannot be saved: a class of your own, an encoder around your own module.
    It is computed once for each fit; whoever writes into fitted arrays afterwards is not noticed.

    Parameters
    ----------
    hasher : BaseHasher
        Fitted method.

    Returns
    -------
    digits : str or None
        32 hexadecimal digits, or None.
    """
    learned = {name: value for name, value in vars(hasher).items() if name.endswith("_")}
    before, digits = _known.get(hasher, ({}, None))
    if not learned or not _are_same(before, learned):
        digits = _compute(hasher)
        _known[hasher] = learned, digits
    return digits


def _are_same(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether fitted attributes are the very objects that they were."""
    return before.keys() == now.keys() and all(before[name] is now[name] for name in now)


def _compute(hasher: Any) -> str | None:
    name = known_name(hasher)
    if name is None:
        return None
    try:
        arrays, facts = hasher._state()
        deciding = {key: value for key, value in facts.items() if key not in _ABOUT_TRAINING}
        described: dict[str, Any] = {"method": name, "n_bits": hasher.n_bits_}
        described["facts"] = to_json("facts", deciding)
    except InputError:  # what cannot be saved
        return None
    contents = [(key, as_stored(arrays[key])) for key in sorted(arrays)]
    described["arrays"] = [[key, array.dtype.str, list(array.shape)] for key, array in contents]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for _, array in contents:
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:_N_DIGITS]
