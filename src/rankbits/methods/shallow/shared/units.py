"""Rows of length 1: what methods that rank by cosines learn from and encode."""

import numpy as np

from rankbits.errors import InputError


def scale_to_units(rows: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1; rows of zeros stay.

    A row is first divided by its largest number, whose square may be too large or too small.
    """
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    units: np.ndarray = scaled / np.where(lengths > 0, lengths, 1)
    return units


def require_directions(units: np.ndarray) -> None:
    """Refuse rows that all point the same way: there is nothing to tell them apart by."""
    if np.abs(units - units[0]).max() < np.finfo(np.float32).eps:
        n, d = units.shape
        raise InputError(
            "X must have rows of different directions, but all its rows point the same way; "
            f"got n_samples = {n}, n_features = {d}"
        )
