"""The former name of `base`, for the methods that are trained by gradients."""

from rankbits.methods.base import BaseHasher

__all__ = ["BaseHasher"]
