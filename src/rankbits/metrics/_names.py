"""Metric names: what `AP(min)@1000` or `nDCG(linear,rsh).best@5` asks for.

    name    = metric [ "(" option { "," option } ")" ] [ ".best" | ".worst" ] [ "@" cutoff ]
    cutoff  = rank, as in @100, or Hamming radius, as in @r2

Which options, bounds and cutoffs a metric takes is said by its own file; this module only knows
the grammar and the list of metrics.
"""

import re
from collections.abc import Iterable, Mapping
from typing import cast

from rankbits import _check
from rankbits.errors import InputError
from rankbits.metrics._metric import Bound, Cutoff, Metric
from rankbits.metrics._named import NamedMetric

_METRICS: dict[str, Metric] = {}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_GRAMMAR = re.compile(
    rf"(?P<metric>{_WORD.pattern})(?:\((?P<options>[a-z0-9,]+)\))?(?:\.(?P<bound>best|worst))?"
    r"(?:@(?P<by>r?)(?P<cut>[0-9]{1,18}))?"
)
_CUTOFFS: dict[Cutoff, str] = {
    "none": "no cutoff",
    "rank": "a rank (@100)",
    "radius": "a radius (@r2)",
}
_USUAL_CUTOFFS: dict[Cutoff, str] = {"none": "", "rank": "@100", "radius": "@r2"}


def register(metric: Metric) -> Metric:
    """Add a metric, so that `rankbits.evaluate` and the command line know its name.

    Parameters
    ----------
    metric : Metric
        The metric to add. Its name must be letters and digits, start with a letter, and not be the
        name of another registered metric.

    Returns
    -------
    metric : Metric
        The same object.
    """
    if not isinstance(metric, Metric) or not _WORD.fullmatch(metric.name):
        raise InputError(
            "metric must be a rankbits.metrics.Metric whose name is letters and digits, "
            f"got {_check.describe(metric)}"
        )
    if _METRICS.get(metric.name, metric) is not metric:
        raise InputError(f"metric {metric.name!r} is registered already; choose another name")
    _METRICS[metric.name] = metric
    return metric


def registered() -> tuple[Metric, ...]:
    """Every metric that can be evaluated by name."""
    return tuple(_METRICS.values())


def parse_metrics(names: Iterable[str] | str, n_bits: int | None = None) -> list[NamedMetric]:
    """Parse names, each once, in order; refuse a radius above n_bits if that is given.

    Parameters
    ----------
    names : str or iterable of str
        One name such as "nDCG@100", or several. A name that is repeated is parsed once.
    n_bits : int or None, default=None
        Code length, which a radius may not exceed. None accepts any radius.
    """
    listed = [names] if isinstance(names, str) else list(names)
    if not listed:
        raise InputError(f"metrics must name at least one metric; {_known()}")
    requests = [parse_metric(name) for name in dict.fromkeys(listed)]
    for request in requests:
        if n_bits is not None and request.radius is not None and request.radius > n_bits:
            raise InputError(
                f"metric {request.name!r} must have a radius from 0 to {n_bits} for codes of "
                f"{n_bits} bits, got {request.radius}"
            )
    return requests


def parse_metric(name: str) -> NamedMetric:
    """Parse one name, or say what is wrong with it.

    Parameters
    ----------
    name : str
        Name of a registered metric with its options, bound and cutoff, such as "AP(min)@1000",
        "AP.best" or "P@r2".

    >>> parse_metric("nDCG(rsh)@5").options
    {'gain': 'linear', 'discount': 'rsh'}
    """
    match = _GRAMMAR.fullmatch(name) if isinstance(name, str) else None
    if match is None or match["metric"] not in _METRICS:
        raise InputError(f"unknown metric {name!r}; {_known()}{_suggestion(name)}")
    metric = _METRICS[match["metric"]]
    k, radius = _cut(name, metric, match["by"] == "r", match["cut"])
    if match["bound"] and metric.bounds is None:
        bounded = ", ".join(other.name for other in registered() if other.bounds)
        raise InputError(f"metric {name!r} has no bounds; .best and .worst exist for {bounded}")
    options = _options(name, metric, match["options"])
    return NamedMetric(name, metric, options, cast(Bound | None, match["bound"]), k, radius)


def _cut(
    name: str, metric: Metric, is_radius: bool, digits: str | None
) -> tuple[int | None, int | None]:
    """The rank and the radius of a name, at most one of them."""
    kind: Cutoff = "none" if digits is None else "radius" if is_radius else "rank"
    if kind not in metric.cutoffs:
        allowed = " or ".join(_CUTOFFS[cutoff] for cutoff in metric.cutoffs)
        problem = "needs a cutoff" if kind == "none" else f"cannot have {_CUTOFFS[kind]}"
        raise InputError(f"metric {name!r} {problem}; {metric.name} takes {allowed}")
    if digits is None:
        return None, None
    if is_radius:
        return None, int(digits)
    return _check.whole(f"the cutoff of metric {name!r}", int(digits), 1), None


def _options(name: str, metric: Metric, text: str | None) -> dict[str, str]:
    """The choice of every option, from the words in parentheses: at most one for each option."""
    words = text.split(",") if text else []
    given = {
        option.keyword: word
        for option in metric.options
        for word in words
        if word in option.choices
    }
    if len(given) != len(words):
        groups = " and ".join(f"one of {', '.join(o.choices)}" for o in metric.options)
        raise InputError(
            f"metric {name!r} has options {text!r} in parentheses; {metric.name} takes "
            f"{groups or 'none'}"
        )
    implied = _implied(metric, given)
    return {
        option.keyword: given.get(option.keyword, implied.get(option.keyword, option.default))
        for option in metric.options
    }


def _implied(metric: Metric, given: Mapping[str, str]) -> dict[str, str]:
    implied: dict[str, str] = {}
    for option in metric.options:
        implied |= option.implies.get(given.get(option.keyword, option.default), {})
    return implied


def _known() -> str:
    return f"known: {', '.join(_METRICS)}, cut by rank (@100) or radius (@r2)"


def _suggestion(name: object) -> str:
    """The metric most likely meant, with its cutoff if the metric takes it."""
    word, _, cut = str(name).partition("@")
    bare = re.sub(r"[^a-z0-9]", "", word.partition("(")[0].partition(".")[0].lower())
    for metric in registered():
        if bare in (metric.name.lower(), *metric.aliases):
            return f"; did you mean {metric.name}{_nearest_cutoff(metric, cut)}?"
    return ""


def _nearest_cutoff(metric: Metric, text: str) -> str:
    """The cutoff as given, else the same number as a rank or a radius, else a usual one."""
    match = re.fullmatch(r"(r?)([0-9]+)", re.sub(r"[^r0-9]", "", text))
    if match is None:
        return _USUAL_CUTOFFS[metric.cutoffs[0]]
    rank, radius = f"@{match[2]}", f"@r{match[2]}"
    given: tuple[Cutoff, ...] = ("radius", "rank") if match[1] else ("rank", "radius")
    kind = next((kind for kind in given if kind in metric.cutoffs), "none")
    return {"none": "", "rank": rank, "radius": radius}[kind]
