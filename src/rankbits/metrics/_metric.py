"""What a metric says of itself: its name, its function, its cutoffs, its options and its words.

Each metric is one file that ends with a `Metric`; the parser of names, the conventions that an
evaluation prints, the error for an unknown name and the table of the documentation follow from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Cutoff = Literal["none", "rank", "radius"]
Bound = Literal["worst", "best"]


@dataclass(frozen=True, eq=False)
class Option:
    """A keyword of the metric's function that a name sets in parentheses, as in `nDCG(linear)`.

    Attributes
    ----------
    keyword : the keyword of the function
    choices : each word that a name may use, and what it means; the first one is the default
    implies : for a word, the choices of other options that it stands for unless they are given

    """

    keyword: str
    choices: Mapping[str, str]
    implies: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def default(self) -> str:
        """The choice of a name that does not set this option."""
        return next(iter(self.choices))


@dataclass(frozen=True, eq=False)
class Metric:
    """A metric that can be evaluated by name.

    Attributes
    ----------
    name : as users write it, without cutoff and options: letters and digits
    summary : what it measures, as the documentation's table says it
    function : takes a `TieHistogram`, then `k=` or `radius=` if the name has a cutoff, then the
        options; returns one float64 per query
    cutoffs : which of "none", "rank" (@100) and "radius" (@r2) a name may have
    options : what a name may set in parentheses
    bounds : takes what `function` takes and returns its least and its greatest value over the
        orders of tied items, for names with `.worst` and `.best`
    value_if_empty : of a query with nothing relevant: NaN (undefined) or 0
    words : for a kind of cutoff, further conventions, by key; they replace an option's words of
        the same key
    count_codes : for a metric that the histogram alone does not give: takes (queries, database,
        exclude_self, n_threads=) and returns what `function` then takes after the histogram
    reads_reference : whether its relevant items are the first k of a reference ranking
    aliases : other spellings, in lower case, for which an error suggests this metric

    """

    name: str
    summary: str
    function: Callable[..., np.ndarray]
    cutoffs: tuple[Cutoff, ...]
    options: tuple[Option, ...] = ()
    bounds: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None
    value_if_empty: float = np.nan
    words: Mapping[Cutoff, Mapping[str, str]] = field(default_factory=dict)
    count_codes: Callable[..., Any] | None = None
    reads_reference: bool = False
    aliases: tuple[str, ...] = ()
