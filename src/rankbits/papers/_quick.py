"""The quick profile: every protocol of the papers on scikit-learn's digits, in seconds.

Quick protocols have names of their own, so that their results never stand beside full ones. Digits
get superclasses (pairs of digits) and tags (what kind of number a digit is) where a protocol needs
them. Their numbers prove that everything runs; they say nothing about the papers.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from rankbits.benchmark import (
    PerClass,
    Protocol,
    Sizes,
    SplitRule,
    StandardQueries,
    protocol,
    register,
)
from rankbits.datasets import Labelled, digits

PREFIX = "quick-"
_KINDS = {  # tags of a digit beside the digit itself
    "even": (0, 2, 4, 6, 8),
    "prime": (2, 3, 5, 7),
    "round": (0, 3, 6, 8, 9),
    "large": (5, 6, 7, 8, 9),
}
_SIZES = Sizes(queries=100, database=1500, training=200)
_SPLITS: dict[str, SplitRule] = {
    "PerClass": PerClass(queries=10, training=20),
    "StandardParts": _SIZES,  # all rows would take minutes
    "StandardQueries": StandardQueries(training=20),
    "Sizes": _SIZES,
}
_CURVES = tuple(f"{name}@{k}" for k in (10, 50, 100, 200, 500, 1000) for name in "PR")
_SHORT = {"epochs": 2, "posterior": 0}
_FEW_STEPS = {  # parameters that keep each fit below a second or two
    **dict.fromkeys(("talr-ap", "talr-ndcg", "mihash", "dpsh", "dtsh", "hashnet"), _SHORT),
    **dict.fromkeys(("dsh", "dsh-dispersed"), _SHORT),
}


@cache
def quick_data(kind: str) -> Labelled:
    """Digits as classes within superclasses ("classes"), or with tags ("tags")."""
    split = digits()
    x = np.concatenate([split.database_x, split.query_x]).astype(np.float32)
    y = np.concatenate([split.database_y, split.query_y])
    is_test = np.arange(len(y)) >= len(split.database_y)
    if kind == "classes":
        return Labelled(x, y, is_test, tuple("0123456789"), np.arange(10) // 2)
    tags = [y == digit for digit in range(10)] + [np.isin(y, group) for group in _KINDS.values()]
    names = (*"0123456789", *_KINDS)
    return Labelled(x, np.stack(tags, axis=1).astype(np.uint8), is_test, names)


def data_of(rules: Protocol) -> Labelled:
    """The rows that a quick protocol is run on."""
    return quick_data(rules.data.removeprefix("digits-"))


def quick_name(name: str) -> str:
    """The name of the quick version of a protocol, which is registered if it is not yet."""
    full = protocol(name)
    kind = "tags" if "Tags" in type(full.relevance).__name__ else "classes"
    curves = any(metric.startswith("R@") for metric in full.metrics)
    metrics = tuple(m for m in full.metrics if not (curves and m[:2] in ("P@", "R@")) or "@r" in m)
    quick = replace(
        full,
        name=PREFIX + name,
        title=f"{full.title} (quick: digits)",
        data=f"digits-{kind}",
        split=_SPLITS[type(full.split).__name__],
        metrics=metrics + (_CURVES if curves else ()),
        published=(),
        defaults={
            method: {**full.defaults.get(method, {}), **_FEW_STEPS.get(method, {})}
            for method in {*full.defaults, *_FEW_STEPS}
        },
        note="scikit-learn's digits: shows that everything runs, not how good anything is",
    )
    return register(quick, is_listed=False).name
