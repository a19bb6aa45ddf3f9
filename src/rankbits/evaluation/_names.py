"""Metric names: what `AP(min)@1000` or `nDCG(linear,rsh).best@5` asks for.

    name    = family [ "(" option { "," option } ")" ] [ ".best" | ".worst" ] [ "@" cutoff ]
    cutoff  = rank, as in @100, or Hamming radius, as in @r2

The options of AP name its normaliser, those of nDCG its gain and discount. `nDCG(rsh)` is the NDCG
of the RSH paper: its discount together with its linear gain, unless `nDCG(exp,rsh)` says otherwise.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rankbits import _check
from rankbits.errors import InputError

# family: (cutoffs it takes, "" = none, its options by group, whether .best and .worst exist)
_FAMILIES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...], bool]] = {
    "AP": (("", "k"), (("retrieved", "min", "total"),), True),
    "nDCG": (("", "k"), (("exp", "linear"), ("log2", "rsh")), True),
    "P": (("k", "r"), (), False),
    "R": (("k", "r"), (), False),
    "F1": (("k", "r"), (), False),
    "Hit": (("k",), (), False),
    "RR": (("",), (), False),
    "ACG": (("r",), (), False),
    "LGAP": (("r",), (), False),
}
_CUTOFFS = {"": "none", "k": "a rank (@100)", "r": "a radius (@r2)"}
_GRAMMAR = re.compile(
    r"(?P<family>[A-Za-z]+1?)(?:\((?P<options>[a-z0-9,]+)\))?(?:\.(?P<bound>best|worst))?"
    r"(?:@(?P<by>r?)(?P<cut>[0-9]{1,18}))?"
)
_KNOWN = f"known: {', '.join(_FAMILIES)}, cut by rank (@100) or radius (@r2)"
_ALIASES = {
    "AP": ("ap", "map", "averageprecision", "meanaverageprecision"),
    "nDCG": ("ndcg", "dcg", "mndcg"),
    "P": ("p", "precision", "prec"),
    "R": ("r", "recall"),
    "F1": ("f", "f1", "fscore", "fmeasure"),
    "Hit": ("hit", "hits", "hitrate", "hr", "success"),
    "RR": ("rr", "mrr", "reciprocalrank"),
    "ACG": ("acg", "macg"),
    "LGAP": ("lgap", "mlgap"),
}


@dataclass(frozen=True)
class Metric:
    """A metric name taken apart."""

    name: str
    family: str
    k: int | None = None
    radius: int | None = None
    bound: str = ""  # "", "best" or "worst"
    normalise: str = "retrieved"
    gain: str = "exp"
    discount: str = "log2"

    @property
    def cut(self) -> int:
        """The rank or the radius it is cut at; 0 where it has neither."""
        return self.k or self.radius or 0

    @property
    def needs_codes(self) -> bool:
        """Whether a tie histogram is not enough to compute it."""
        return self.family == "LGAP"


def parse_metrics(names: Iterable[str] | str, n_bits: int | None = None) -> list[Metric]:
    """Take names apart, each once, in order; refuse a radius above n_bits if that is given."""
    listed = [names] if isinstance(names, str) else list(names)
    if not listed:
        raise InputError(f"metrics must name at least one metric; {_KNOWN}")
    metrics = [parse_metric(name) for name in dict.fromkeys(listed)]
    for metric in metrics:
        if n_bits is not None and metric.radius is not None and metric.radius > n_bits:
            raise InputError(
                f"metric {metric.name!r} must have a radius from 0 to {n_bits} for codes of "
                f"{n_bits} bits, got {metric.radius}"
            )
    return metrics


def parse_metric(name: str) -> Metric:
    """Take one name apart, or say what is wrong with it.

    >>> parse_metric("nDCG(rsh)@5").gain
    'linear'
    """
    match = _GRAMMAR.fullmatch(name) if isinstance(name, str) else None
    if match is None or match["family"] not in _FAMILIES:
        raise InputError(f"unknown metric {name!r}; {_KNOWN}{_suggestion(name)}")
    family, by_radius = match["family"], match["by"] == "r"
    cutoffs, groups, has_bounds = _FAMILIES[family]
    if ("" if match["cut"] is None else "r" if by_radius else "k") not in cutoffs:
        wanted = " or ".join(_CUTOFFS[cutoff] for cutoff in cutoffs)
        raise InputError(f"metric {name!r} must have another cutoff: {family} takes {wanted}")
    if match["bound"] and (not has_bounds or (family == "AP" and match["cut"])):
        raise InputError(f"metric {name!r} has no bounds; AP without a cutoff and nDCG do")
    cut = None if match["cut"] is None else int(match["cut"])
    if cut is not None and not by_radius:
        _check.whole(f"the cutoff of metric {name!r}", cut, 1)
    k, radius = (None, cut) if by_radius else (cut, None)
    chosen = _options(name, match["options"], groups)
    return Metric(name, family, k, radius, match["bound"] or "", **chosen)


def _options(name: str, text: str | None, groups: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    """Normaliser, or gain and discount, from the words in brackets: at most one of each group."""
    words = text.split(",") if text else []
    fields = ("normalise",) if len(groups) == 1 else ("gain", "discount")
    chosen = {
        field: word
        for field, group in zip(fields, groups, strict=False)
        for word in words
        if word in group
    }
    if len(chosen) != len(words):
        known = " and ".join(f"one of {', '.join(group)}" for group in groups) or "nothing"
        raise InputError(f"metric {name!r} may have in its brackets {known}, got {text!r}")
    if chosen.get("discount") == "rsh":
        chosen.setdefault("gain", "linear")
    return chosen


def _suggestion(name: object) -> str:
    """The metric most likely meant, keeping the cutoff if it fits."""
    word, _, rest = str(name).partition("@")
    bare = re.sub(r"[^a-z0-9]", "", word.partition("(")[0].partition(".")[0].lower())
    for family, aliases in _ALIASES.items():
        if bare in aliases:
            cut = re.sub(r"[^r0-9]", "", rest)
            return f"; did you mean {_nearest(family, cut)}?"
    return ""


def _nearest(family: str, cut: str) -> str:
    """The family with this cutoff, or with the first kind of cutoff that it takes."""
    kinds = _FAMILIES[family][0]
    kind = "r" if re.fullmatch(r"r[0-9]+", cut) else "k" if re.fullmatch(r"[0-9]+", cut) else ""
    if kind in kinds:
        return f"{family}@{cut}" if kind else family
    return {"": family, "k": f"{family}@100", "r": f"{family}@r2"}[kinds[0]]
