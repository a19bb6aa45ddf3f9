"""Is a difference real? Paired tests over the values of two evaluations of the same queries.

Notation:
    d  differences b - a of the n queries that have both values, mean m
    d*  n draws from d with replacement, mean m*

The bootstrap interval is the middle 95 % of m*; the bootstrap p is the share of m* at least as far
from m as m is from 0, that is, what resampling does where there is no difference. Efron and
Tibshirani, An Introduction to the Bootstrap, 1993. The t-test is Student's, on d.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.evaluation._result import Evaluation

_CELLS = 1 << 20  # draws at a time: 8 MB of indices
_SLACK = 1e-12  # equal up to rounding counts as at least as far


@dataclass(frozen=True)
class Difference:
    """One metric of two evaluations, over the queries that have it in both.

    With fewer than two such queries there is no spread to judge by: intervals and tests are NaN.

    Parameters
    ----------
    mean_a : float
        Mean of the metric in the first evaluation, over the queries that have it in both.
    mean_b : float
        The same mean in the second evaluation.
    difference : float
        Mean difference, mean_b - mean_a.
    low : float
        Lower end of the 95 % bootstrap interval of the mean difference.
    high : float
        Upper end of that interval.
    p_bootstrap : float
        Two-sided p-value of the paired bootstrap test, above 0 and at most 1.
    t : float
        Statistic of the paired t-test. It is infinite if every query has the same difference and
        that is not 0.
    p_t : float
        Two-sided p-value of the paired t-test, from 0 to 1.
    queries : int
        Number of queries that have the metric in both evaluations.
    left_out : int
        Number of queries left out because the metric is undefined (NaN) in either evaluation.
    wins : int
        Number of compared queries with a higher value in the second evaluation.
    ties : int
        Number of compared queries with equal values.
    losses : int
        Number of compared queries with a lower value in the second evaluation.
    """

    mean_a: float
    mean_b: float
    difference: float  # mean_b - mean_a
    low: float  # 95 % bootstrap interval of the difference
    high: float
    p_bootstrap: float
    t: float
    p_t: float
    queries: int
    left_out: int  # undefined in either
    wins: int  # queries where b is higher
    ties: int
    losses: int


@dataclass(frozen=True)
class Comparison:
    """The difference in each metric, by name; see `compare`.

    Parameters
    ----------
    metrics : dict from str to Difference
        The difference in each metric that both evaluations have, by the metric's name.
    n_resamples : int
        Number of bootstrap draws behind each interval and p-value.
    random_state : int
        Seed of the draws.
    """

    metrics: dict[str, Difference]
    n_resamples: int
    random_state: int

    def to_dict(self) -> dict[str, Any]:
        """The same, ready for JSON: NaN is None, and an infinite t is the text "inf" or "-inf"."""
        rows = {name: asdict(difference) for name, difference in self.metrics.items()}
        return {
            "metrics": {
                name: {key: _json_number(value) for key, value in row.items()}
                for name, row in rows.items()
            },
            "interval": 0.95,
            "resamples": self.n_resamples,
            "seed": self.random_state,
        }


def compare(
    a: Evaluation | Mapping[str, np.ndarray],
    b: Evaluation | Mapping[str, np.ndarray],
    n_resamples: int = 10_000,
    random_state: int = 0,
) -> Comparison:
    """Compare two evaluations of the same queries, metric by metric, as b - a.

    Parameters
    ----------
    a, b : Evaluation, or dict from metric name to one value per query; shared names are compared
    n_resamples : int, bootstrap draws
    random_state : int, seed of the draws; each metric starts from it anew

    >>> better = compare({"AP": np.array([0.1, 0.2, 0.3])}, {"AP": np.array([0.2, 0.4, 0.3])})
    >>> better.metrics["AP"].wins, better.metrics["AP"].ties
    (2, 1)
    """
    n_resamples = _check.whole("n_resamples", n_resamples, 1)
    random_state = _check.whole("random_state", random_state, 0)
    values_a, values_b = _values("a", a), _values("b", b)
    shared = [name for name in values_a if name in values_b]
    if not shared:
        raise InputError(
            f"a and b must share a metric, got {', '.join(values_a)} and {', '.join(values_b)}"
        )
    differences = {}
    for name in shared:
        if len(values_a[name]) != len(values_b[name]):
            raise InputError(
                f"a and b must be over the same queries, {name} has {len(values_a[name])} values "
                f"in a and {len(values_b[name])} in b"
            )
        rng = np.random.default_rng(random_state)
        differences[name] = paired_difference(values_a[name], values_b[name], n_resamples, rng)
    return Comparison(differences, n_resamples, random_state)


def paired_difference(
    a: np.ndarray, b: np.ndarray, n_resamples: int, rng: np.random.Generator
) -> Difference:
    """Compare two values per query; a query where either is NaN is left out."""
    is_defined = ~(np.isnan(a) | np.isnan(b))
    a, b = a[is_defined], b[is_defined]
    d = b - a
    low, high, p_bootstrap = _bootstrap(d, n_resamples, rng)
    t, p_t = _student(d)
    return Difference(
        mean_a=float(a.mean()) if d.size else float("nan"),
        mean_b=float(b.mean()) if d.size else float("nan"),
        difference=float(d.mean()) if d.size else float("nan"),
        low=low,
        high=high,
        p_bootstrap=p_bootstrap,
        t=t,
        p_t=p_t,
        queries=d.size,
        left_out=int((~is_defined).sum()),
        wins=int((d > 0).sum()),
        ties=int((d == 0).sum()),
        losses=int((d < 0).sum()),
    )


def _bootstrap(
    d: np.ndarray, n_resamples: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Ends of the 95 % interval of the mean, and p = (1 + #{|m* - m| >= |m|}) / (1 + resamples)."""
    if d.size < 2:
        return float("nan"), float("nan"), float("nan")
    m = d.mean()
    means = np.concatenate(list(_resampled_means(d, n_resamples, rng)))
    low, high = np.quantile(means, [0.025, 0.975])
    n_far = np.count_nonzero(np.abs(means - m) >= abs(m) * (1 - _SLACK))
    return float(low), float(high), (1 + n_far) / (1 + n_resamples)


def _resampled_means(
    d: np.ndarray, n_resamples: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Means of resamples, in blocks that keep memory bounded whatever n."""
    step = max(1, _CELLS // d.size)
    for start in range(0, n_resamples, step):
        rows = min(step, n_resamples - start)
        yield d[rng.integers(0, d.size, (rows, d.size))].mean(axis=1)


def _student(d: np.ndarray) -> tuple[float, float]:
    """Paired t = m / (s / sqrt(n)) and its two-sided p.

    All d equal: p = 1 if they are 0, else t is infinite and p = 0. NaN for fewer than two.
    """
    if d.size < 2:
        return float("nan"), float("nan")
    m = float(d.mean())
    if np.ptp(d) == 0:
        return (0.0, 1.0) if m == 0 else (float(np.copysign(np.inf, m)), 0.0)
    from scipy.special import stdtr

    t = m / (float(d.std(ddof=1)) / np.sqrt(d.size))
    return float(t), float(2 * stdtr(d.size - 1, -abs(t)))


def _values(name: str, source: Evaluation | Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Per-query values by metric, as 1-D float64."""
    per_query = source.per_query if isinstance(source, Evaluation) else source
    if not isinstance(per_query, Mapping):
        raise InputError(
            f"{name} must be an Evaluation or a dict of values, got {_check.describe(per_query)}"
        )
    arrays = {metric: np.asarray(values) for metric, values in per_query.items()}
    for metric, values in arrays.items():
        if values.ndim != 1 or values.dtype.kind not in "iuf" or np.isinf(values).any():
            raise InputError(
                f"{name} must have one finite number or NaN per query for {metric}, "
                f"got {_check.describe(values)}"
            )
    return {metric: values.astype(np.float64) for metric, values in arrays.items()}


def _json_number(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    return str(value) if np.isinf(value) else value
