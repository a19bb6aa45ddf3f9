"""Tie histograms: the one summary that every metric reads.

Histograms of disjoint database shards add; those of disjoint query sets stack.

Notation, here and wherever this module is imported:
    b  bits in a code       d  Hamming distance, 0..b   v  affinity level, 0 = irrelevant
    n  items in a bucket    p  relevant items in it     N, P  the same, in all nearer buckets
"""

from rankbits.histogram._count import count_ties, require_shape
from rankbits.histogram._distances import CodeDistances, DistanceSource
from rankbits.histogram._largest import distinct_codes, largest_codes
from rankbits.histogram._own_items import own_items
from rankbits.histogram._ranked import RankedQueries, count_ranked
from rankbits.histogram._rankings import compress_ties, stack_ties
from rankbits.histogram._relevant import count_relevant
from rankbits.histogram._table import TieHistogram
from rankbits.histogram._vectors import VECTOR_METRICS, VectorDistances

__all__ = [
    "VECTOR_METRICS",
    "CodeDistances",
    "DistanceSource",
    "RankedQueries",
    "TieHistogram",
    "VectorDistances",
    "compress_ties",
    "count_ranked",
    "count_relevant",
    "count_ties",
    "distinct_codes",
    "largest_codes",
    "own_items",
    "require_shape",
    "stack_ties",
]
