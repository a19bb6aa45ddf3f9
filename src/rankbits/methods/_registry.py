"""The former name of `registry`, for the methods that are trained by gradients."""

from rankbits.methods.registry import METHODS as _METHODS
from rankbits.methods.registry import class_of, known_name

__all__ = ["_METHODS", "class_of", "known_name"]
