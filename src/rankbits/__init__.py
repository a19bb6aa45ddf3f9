"""rankbits: binary codes that rank."""

from rankbits import affinity
from rankbits.codes import BinaryCodes
from rankbits.histogram import TieHistogram, count_ties

__all__ = ["BinaryCodes", "TieHistogram", "affinity", "count_ties"]
__version__ = "0.1.0"
