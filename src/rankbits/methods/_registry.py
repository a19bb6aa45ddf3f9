"""The methods by name. A method's module is imported only when somebody asks for it."""

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankbits._check import choice, extra
from rankbits.errors import InputError

if TYPE_CHECKING:
    from rankbits.methods._base import BaseHasher


@dataclass(frozen=True)
class Entry:
    """Where a method lives, and whether it needs torch."""

    module: str
    class_name: str
    needs_torch: bool = False


_METHODS = {
    "lsh": Entry("_lsh", "LSH"),
    "pcah": Entry("_pcah", "PCAH"),
    "itq": Entry("_itq", "ITQ"),
    "sign": Entry("_sign", "Sign"),
    "rsh": Entry("_rsh", "RSH"),
    "lwh": Entry("_lwh", "LWH"),
    "talr-ap": Entry("deep.talr", "TalrAP", needs_torch=True),
    "talr-ndcg": Entry("deep.talr", "TalrNDCG", needs_torch=True),
    "dsh": Entry("deep.dsh", "DSH", needs_torch=True),
    "dsh-dispersed": Entry("deep.dsh", "DispersedDSH", needs_torch=True),
    "csq": Entry("deep.csq", "CSQ", needs_torch=True),
    "orthohash": Entry("deep.orthohash", "OrthoHash", needs_torch=True),
    "dpn": Entry("deep.dpn", "DPN", needs_torch=True),
    "greedyhash": Entry("deep.greedyhash", "GreedyHash", needs_torch=True),
    "mihash": Entry("deep.mihash", "MIHash", needs_torch=True),
    "dpsh": Entry("deep.dpsh", "DPSH", needs_torch=True),
    "dtsh": Entry("deep.dtsh", "DTSH", needs_torch=True),
    "hashnet": Entry("deep.hashnet", "HashNet", needs_torch=True),
}


def names() -> list[str]:
    """Names of all methods, for `get`.

    >>> "itq" in names()
    True
    """
    return list(_METHODS)


def get(name: str, **params: Any) -> "BaseHasher":
    """A new method by name, not yet fitted.

    >>> get("lsh", n_bits=16, random_state=0)
    LSH(n_bits=16, random_state=0)
    """
    made = class_of(name)
    known = made._get_param_names()
    for word in params:
        if word not in known:
            near = get_close_matches(word, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"{name} has no parameter {word!r}; it has: {', '.join(known)}{hint}")
    return made(**params)


def class_of(name: str) -> "type[BaseHasher]":
    """The class of a method; MissingExtraError where it needs torch and there is none."""
    entry = _METHODS[choice("name", name, tuple(_METHODS))]
    if entry.needs_torch:
        extra("torch", f"the method {name}", "train")
    found: type[BaseHasher] = getattr(
        import_module(f"rankbits.methods.{entry.module}"), entry.class_name
    )
    return found


def name_of(method: "BaseHasher") -> str:
    """The name under which `get` gives such a method."""
    name = known_name(method)
    if name is None:
        raise InputError(
            f"the method must be one of {', '.join(_METHODS)} to be saved, "
            f"got {type(method).__name__}"
        )
    return name


def known_name(method: "BaseHasher") -> str | None:
    """The name under which `get` gives such a method; None for a class of someone else."""
    place = type(method).__module__, type(method).__qualname__
    for name, entry in _METHODS.items():
        if place == (f"rankbits.methods.{entry.module}", entry.class_name):
            return name
    return None
