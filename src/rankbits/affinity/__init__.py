"""Affinity: labels, neighbors or judgements turned into levels of relevance.

An affinity knows its queries and its items, never codes or distances. Level 0 is irrelevant; every
other level is relevant ("positive"); metrics turn levels into gains.
"""

from rankbits.affinity._base import Affinity
from rankbits.affinity._classes import Classes, classes
from rankbits.affinity._dense import Levels, levels
from rankbits.affinity._judgements import Judgements, judgements
from rankbits.affinity._neighbours import Neighbours, distance_quantiles, neighbours
from rankbits.affinity._qrels import (
    JudgedPair,
    QrelsCounts,
    QrelsJudgements,
    qrels_pairs,
    read_judgements,
)
from rankbits.affinity._ranks import NearestRanks, nearest_ranks
from rankbits.affinity._tags import Tags, tags

__all__ = [
    "Affinity",
    "Classes",
    "JudgedPair",
    "Judgements",
    "Levels",
    "NearestRanks",
    "Neighbours",
    "QrelsCounts",
    "QrelsJudgements",
    "Tags",
    "classes",
    "distance_quantiles",
    "judgements",
    "levels",
    "nearest_ranks",
    "neighbours",
    "qrels_pairs",
    "read_judgements",
    "tags",
]
