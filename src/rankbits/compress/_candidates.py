"""The candidates: ways to make codes, each asked by bits and by real weights, with several pools.

To add a way, write a line in the table; whatever `rankbits.methods.get` knows will do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbits import _check
from rankbits.errors import InputError, MissingExtraError

POOLS = (20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Coder:
    """A way to make codes.

    Attributes
    ----------
    name : str
        What results call it.
    method : str
        Its name for `rankbits.methods.get`.
    params : mapping
        Parameters of the method beside code length and seed.
    lesson : {"items", "labels", "judgements"}
        What it learns from: the vectors of items alone, their labels too, or judged queries.
    truths : tuple of str
        The kinds of truth for which it is tried where no methods are named; empty for all.
    is_slow : bool
        Whether it is tried only if the budget has time left after all others.
    """

    name: str
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    lesson: str = "items"
    truths: tuple[str, ...] = ()
    is_slow: bool = False


_TALR = {"encoder": "linear"}

CODERS = (  # the most useful first: where time is short, the last are left out
    Coder("additive", "additive"),
    Coder("distilled", "distilled"),
    Coder(
        "distilled-groups",
        "distilled",
        {"n_groups": 256, "temperature": 0.4},
        truths=("labels",),
    ),
    Coder("itq", "itq"),
    Coder("pca-rr", "pca-rr"),
    Coder("sign", "sign"),
    Coder("sign-raw", "sign", {"center": False}),
    Coder(
        "talr-ndcg-labels",
        "talr-ndcg",
        {**_TALR, "queries": "own"},
        "labels",
        ("labels",),
        is_slow=True,
    ),
    Coder("talr-ndcg-judged", "talr-ndcg", _TALR, "judgements", ("judgements",), is_slow=True),
    Coder("talr-ndcg", "talr-ndcg", _TALR, is_slow=True),
    Coder("talr-ndcg-own", "talr-ndcg", {**_TALR, "queries": "own"}, is_slow=True),
)


def coders(
    names: Iterable[str] | None, truth: str | None = None, *, with_slow: bool = False
) -> tuple[Coder, ...]:
    """The ways of these names, or the usual ones that work here; a method's own name will do too.

    `truth` is the kind of truth that decides what is usual; None takes what suits any. Slow ways
    are usual only `with_slow`: on ten thousand items they take an hour where the others take
    minutes, so somebody has to say how much time there is.
    """
    from rankbits import methods

    known = {coder.name: coder for coder in CODERS}
    if names is None:
        suited = [coder for coder in CODERS if not coder.truths or truth in coder.truths]
        return tuple(c for c in suited if (with_slow or not c.is_slow) and _is_usable(c))
    chosen = [names] if isinstance(names, str) else list(names)
    if not chosen:
        raise InputError("methods must not be empty; leave them out for the usual ones")
    for name in chosen:
        if name not in known:
            _check.choice("methods", name, (*known, *methods.names()))
    tried = tuple(known.get(name, Coder(name, name)) for name in dict.fromkeys(chosen))
    for coder in tried:
        if truth is not None and coder.lesson not in ("items", truth):
            raise InputError(
                f"methods must suit the data: {coder.name} learns from {coder.lesson}, and there "
                "are none; give them, or leave it out"
            )
    return tried


def create_hasher(coder: Coder, n_bytes: int, seed: int, n_threads: int | None) -> Any:
    """The method, not yet fitted."""
    from rankbits import methods

    hasher: Any = methods.get(coder.method, **coder.params)
    hasher.set_params(n_bits=8 * n_bytes)
    known = hasher.get_params(deep=False)
    if "random_state" in known:
        hasher.set_params(random_state=seed)
    if n_threads is not None and "n_threads" in known:
        hasher.set_params(n_threads=n_threads)
    return hasher


def _is_usable(coder: Coder) -> bool:
    """Whether the method is there, and what it needs is installed."""
    from rankbits import methods

    if coder.method not in methods.names():
        return False
    try:
        methods.get(coder.method)
    except MissingExtraError:
        return False
    return True
