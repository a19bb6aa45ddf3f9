"""Learning hash codes with listwise supervision (RSH): its figures."""

from collections.abc import Iterator, Sequence

from rankbits.papers import _words
from rankbits.papers._exhibit import Exhibit, Part, View
from rankbits.papers._shows import show_curves, show_times

SOURCE = "Wang, Liu, Sun and Jiang, Learning hash codes with listwise supervision, ICCV 2013"
_METHODS = ("rsh", "sh", "ssh", "cmh", "wtah", "lsh", "itq")
_RIVALS = ("sh", "ssh", "cmh", "wtah")  # those that the paper has
_BITS = (8, 12, 16, 24, 32)
_METRICS = ("nDCG(rsh)", "ACG@r3")
_CIFAR = Part("rsh-cifar100", _METHODS, _BITS, _METRICS, "CIFAR-100")
_TAGS = Part("rsh-corel5k", _METHODS, _BITS, _METRICS, "Corel5k in place of NUS-WIDE")
_DISTANCES = Part(
    "rsh-distance", _METHODS, _BITS, _METRICS, "CIFAR-10 features in place of tiny images"
)
_MILLION = Part(
    "rsh-tinyimages", _METHODS, _BITS, _METRICS, "One million tiny images", is_optional=True
)
_FEATURES = "features of an EfficientNet-Lite0 where the paper has {}"


def _claims(view: View) -> Sequence[str]:
    """That RSH leads in NDCG, and that order statistics fall behind."""
    held = list(_above(view, ("rsh",), _RIVALS, "nDCG(rsh)"))
    behind = list(_above(view, ("rsh", "ssh"), ("cmh", "wtah"), "nDCG(rsh)"))
    others = list(_above(view, ("rsh",), ("lsh", "itq"), "nDCG(rsh)"))
    return [
        _words.claim("RSH has the highest NDCG among RSH, SH, SSH, CMH and WTAH", held),
        _words.claim("CMH and WTAH fall behind RSH and SSH", behind),
        f"Against LSH and ITQ, which the paper leaves out, RSH leads in "
        f"{sum(others) or 'none'} of {len(others)} cases."
        if others
        else "",
    ]


def _above(
    view: View, winners: Sequence[str], losers: Sequence[str], metric: str
) -> Iterator[bool]:
    """For each length, whether every winner is above every loser."""
    for part in view.parts:
        values = _words.means(part.cells(view.results), metric)
        for bits in part.lengths(view.results):
            high = [values[name][bits] for name in winners if bits in values.get(name, {})]
            low = [values[name][bits] for name in losers if bits in values.get(name, {})]
            if high and low:
                yield min(high) > max(low)


def _time_claims(view: View) -> Sequence[str]:
    """That linear projections make codes fastest, and order statistics slowest."""
    fast: list[bool] = []
    slow: list[bool] = []
    for part in view.parts:
        cells = part.cells(view.results)
        for bits in part.lengths(view.results):
            paper = {
                method: seconds
                for method, row in cells.items()
                if method in ("rsh", *_RIVALS) and bits in row
                if (seconds := row[bits].fastest("encode")) is not None
            }
            if {"rsh", "ssh", "sh", "wtah", "cmh"} <= paper.keys():
                rest = min(paper[name] for name in ("sh", "wtah", "cmh"))
                fast.append(max(paper["rsh"], paper["ssh"]) < rest)
                others = max(paper[name] for name in ("rsh", "ssh", "sh"))
                slow.append(min(paper["wtah"], paper["cmh"]) > others)
    return [
        _words.claim("RSH and SSH, linear projections, make codes fastest", fast),
        _words.claim("WTAH and CMH, which sort, both take longer than the rest", slow),
    ]


_TITLE = "NDCG and ACG within radius 3 against bits, {}"
EXHIBITS = (
    Exhibit(
        "rsh-fig2",
        SOURCE,
        "Figure 2",
        _TITLE.format("classes within superclasses"),
        show_curves(_claims),
        (_CIFAR,),
        "CIFAR-100 by " + _FEATURES.format("raw pixels"),
    ),
    Exhibit(
        "rsh-fig3",
        SOURCE,
        "Figure 3",
        _TITLE.format("counted tags"),
        show_curves(_claims),
        (_TAGS,),
        "Corel5k for NUS-WIDE, and " + _FEATURES.format("bags of visual words"),
    ),
    Exhibit(
        "rsh-fig4",
        SOURCE,
        "Figure 4",
        _TITLE.format("levels by distance"),
        show_curves(_claims),
        (_DISTANCES, _MILLION),
        "60,000 rows of CIFAR-10 for one million tiny images, unless the folder of data has these, "
        "and " + _FEATURES.format("GIST descriptors"),
    ),
    Exhibit(
        "rsh-fig5",
        SOURCE,
        "Figure 5",
        "seconds to generate codes against bits",
        show_times(_time_claims),
        (_CIFAR, _TAGS),
        "CIFAR-100 and Corel5k by features of an EfficientNet-Lite0; seconds are those of this "
        "machine while it ran",
    ),
)
