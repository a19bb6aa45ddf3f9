"""A metric with the cutoff, the bound and the options that a name gives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.histogram import TieHistogram
from rankbits.metrics._metric import Bound, Cutoff, Metric

_TIES = {
    None: "expectation over all orders of tied items",
    "best": "the order of each tie that gives the highest value",
    "worst": "the order of each tie that gives the lowest value",
}
_EMPTY_QUERIES = {
    "skip": "a query with nothing relevant is left out of the mean and counted",
    "zero": "a query with nothing relevant scores 0",
    "error": "a query with nothing relevant is an error",
}


@dataclass(frozen=True)
class NamedMetric:
    """What a name such as `AP(min)@1000` asks for; `rankbits.metrics.parse_metric` builds it.

    Parameters
    ----------
    name : str
        The whole name, as the user wrote it.
    metric : Metric
        The metric that the name starts with.
    options : mapping from str to str
        The choice for every option of the metric, whether the name sets it or not, by the keyword
        of the metric's function.
    bound : {"worst", "best"} or None, default=None
        Which bound over the orders of tied items the name asks for. None stands for the
        expectation over these orders.
    k : int or None, default=None
        Rank of the cutoff, at least 1, or None if the name does not cut by rank.
    radius : int or None, default=None
        Hamming radius of the cutoff, inclusive, or None if the name does not cut by radius.
    """

    name: str
    metric: Metric
    options: Mapping[str, str]
    bound: Bound | None = None
    k: int | None = None
    radius: int | None = None

    @property
    def cutoff(self) -> Cutoff:
        """The kind of its cutoff."""
        if self.radius is not None:
            return "radius"
        return "none" if self.k is None else "rank"

    @property
    def needs_codes(self) -> bool:
        """Whether a tie histogram is not enough to compute it."""
        return self.metric.count_codes is not None

    def values(self, h: TieHistogram, code_counts: Any = None) -> np.ndarray:
        """The metric of each query, NaN where it is undefined.

        `code_counts` is what `metric.count_codes` returned, for a metric that needs the codes.
        """
        positional = (h, code_counts) if self.needs_codes else (h,)
        cut = {"k": self.k, "radius": self.radius}
        keywords = {name: value for name, value in cut.items() if value is not None}
        if self.bound is None or self.metric.bounds is None:
            return self.metric.function(*positional, **keywords, **self.options)
        worst, best = self.metric.bounds(*positional, **keywords, **self.options)
        return best if self.bound == "best" else worst

    def conventions(self, empty: str) -> dict[str, str]:
        """The choices behind its values, one short sentence each.

        `empty` is the policy for queries with nothing relevant: "skip", "zero" or "error".
        """
        words = {"cutoff": self._cutoff_words()}
        if self.radius is None:
            words["ties"] = _TIES[self.bound]
        for option in self.metric.options:
            choice = self.options[option.keyword]
            words[option.keyword] = f"{choice}: {option.choices[choice]}"
        words |= self.metric.words.get(self.cutoff, {})
        if self.radius is not None:
            words["empty_ball"] = "a query with no item within the radius scores 0"
        is_zero = empty == "skip" and self.metric.value_if_empty == 0
        words["empty_query"] = _EMPTY_QUERIES["zero" if is_zero else empty]
        return words

    def _cutoff_words(self) -> str:
        if self.radius is not None:
            return f"items within Hamming distance {self.radius}, inclusive"
        return "none" if self.k is None else f"the first {self.k} items"
