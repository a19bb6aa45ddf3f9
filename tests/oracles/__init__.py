"""Slow twins of the package's functions, which cannot be wrong in the same way."""
