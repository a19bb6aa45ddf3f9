"""The errors a caller may want to catch, all of them under one name.

A message says what was wanted, what came and what to do, and names the argument first.
"""

__all__ = [
    "ClusterError",
    "FileFormatError",
    "FitError",
    "InputError",
    "MissingExtraError",
    "RankbitsError",
    "UnknownOutcomeError",
]


class RankbitsError(Exception):
    """Anything rankbits refuses to do."""


class InputError(RankbitsError, ValueError):
    """An argument or a file that cannot be used as it is."""


class FileFormatError(InputError):
    """A file that is truncated, damaged, or of another kind than its name says."""


class FitError(RankbitsError, RuntimeError):
    """A fit that diverged: what it learned cannot be used."""


class ClusterError(RankbitsError, RuntimeError):
    """A cluster that lost more than could be made up for, or that does not answer."""


class MissingExtraError(RankbitsError, ImportError):
    """A feature that needs an optional dependency which is not installed."""


class UnknownOutcomeError(RankbitsError):
    """A change of a collection that may or may not have reached the disk."""
