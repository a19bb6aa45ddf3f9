"""The table of methods: the name that users write, and the class that it stands for.

A new method is a file in `shallow/` or `deep/` (or a folder, if it needs several), a line in this
table, and a line in the door (`rankbits/methods/__init__.py`), which shows the class to editors. A
method's module is imported only when the method is used.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankbits._check import choice, extra
from rankbits.errors import InputError

if TYPE_CHECKING:
    from rankbits.methods.base import BaseHasher


@dataclass(frozen=True)
class Method:
    """Where the class of a method is: its module within `rankbits.methods`, and its name."""

    module: str
    class_name: str

    @property
    def path(self) -> str:
        """The full name of the module."""
        return f"rankbits.methods.{self.module}"

    @property
    def needs_torch(self) -> bool:
        """Whether the method is trained by gradients; no module of `shallow` imports torch."""
        return not self.module.startswith("shallow.")


METHODS = {
    "lsh": Method("shallow.lsh", "LSH"),
    "pcah": Method("shallow.pcah", "PCAH"),
    "itq": Method("shallow.itq", "ITQ"),
    "rabitq": Method("shallow.rabitq", "RaBitQ"),
    "sign": Method("shallow.sign", "Sign"),
    "distilled": Method("shallow.distilled", "Distilled"),
    "additive": Method("shallow.additive", "Additive"),
    "pca-rr": Method("shallow.pca_rr", "PCARR"),
    "sh": Method("shallow.sh", "SH"),
    "sklsh": Method("shallow.sklsh", "SKLSH"),
    "klsh": Method("shallow.klsh", "KLSH"),
    "agh": Method("shallow.agh", "AGH"),
    "sph": Method("shallow.sph", "SpH"),
    "density": Method("shallow.density", "DensityHashing"),
    "wtah": Method("shallow.wtah", "WTAH"),
    "cmh": Method("shallow.cmh", "CMH"),
    "rsh": Method("shallow.rsh", "RSH"),
    "lwh": Method("shallow.lwh", "LWH"),
    "fasthash": Method("shallow.fasthash", "FastHash"),
    "machash": Method("shallow.machash", "MACHash"),
    "structhash": Method("shallow.structhash", "StructHash"),
    "ksh": Method("shallow.ksh", "KSH"),
    "sdh": Method("shallow.sdh", "SDH"),
    "ssh": Method("shallow.ssh", "SSH"),
    "bre": Method("shallow.bre", "BRE"),
    "mlh": Method("shallow.mlh", "MLH"),
    "talr-ap": Method("deep.talr", "TalrAP"),
    "talr-ndcg": Method("deep.talr", "TalrNDCG"),
    "dsh": Method("deep.dsh", "DSH"),
    "dsh-dispersed": Method("deep.dsh", "DispersedDSH"),
    "csq": Method("deep.csq", "CSQ"),
    "orthohash": Method("deep.orthohash", "OrthoHash"),
    "dpn": Method("deep.dpn", "DPN"),
    "greedyhash": Method("deep.greedyhash", "GreedyHash"),
    "mihash": Method("deep.mihash", "MIHash"),
    "dpsh": Method("deep.dpsh", "DPSH"),
    "dtsh": Method("deep.dtsh", "DTSH"),
    "hashnet": Method("deep.hashnet", "HashNet"),
}


def names() -> list[str]:
    """Names of all methods, for `get`.

    >>> "itq" in names()
    True
    """
    return list(METHODS)


def get(name: str, **params: Any) -> "BaseHasher":
    """A new method by name, not yet fitted.

    Parameters
    ----------
    name : str
        Name of the method, one of `names()`. Any other is an InputError.
    **params : Any
        Parameters of the method's class, such as `n_bits`. Those that are left out have the
        defaults of the class, and an unknown one is an InputError.

    Returns
    -------
    hasher : BaseHasher
        Object of the method's class with these parameters.

    Examples
    --------
    >>> get("lsh", n_bits=16, random_state=0)
    LSH(n_bits=16, random_state=0)
    """
    method_class = class_of(name)
    known = method_class._get_param_names()
    for param in params:
        if param not in known:
            near = get_close_matches(param, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"{name} has no parameter {param!r}; it has: {', '.join(known)}{hint}")
    return method_class(**params)


def class_of(name: str) -> "type[BaseHasher]":
    """The class of a method; a MissingExtraError where it needs torch and there is none."""
    method = METHODS[choice("name", name, tuple(METHODS))]
    if method.needs_torch:
        extra("torch", f"the method {name}", "train")
    method_class: type[BaseHasher] = getattr(import_module(method.path), method.class_name)
    return method_class


def class_names() -> list[str]:
    """Names of the classes of all methods, for import."""
    return [method.class_name for method in METHODS.values()]


def class_named(class_name: str) -> "type[BaseHasher]":
    """The class of this name; an AttributeError where no method has one."""
    for name, method in METHODS.items():
        if method.class_name == class_name:
            return class_of(name)
    raise AttributeError(f"module 'rankbits.methods' has no attribute {class_name!r}")


def name_of(hasher: "BaseHasher") -> str:
    """The name under which `get` creates such a method."""
    name = known_name(hasher)
    if name is None:
        raise InputError(
            f"only a method of rankbits can be saved, got {type(hasher).__name__}; rankbits has: "
            f"{', '.join(METHODS)}"
        )
    return name


def known_name(hasher: "BaseHasher") -> str | None:
    """The name under which `get` creates such a method; None for a class that is not ours."""
    place = type(hasher).__module__, type(hasher).__qualname__
    for name, method in METHODS.items():
        if place == (method.path, method.class_name):
            return name
    return None
