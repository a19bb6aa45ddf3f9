"""Methods: estimators that learn to turn rows into binary codes, following scikit-learn's contract.

    hasher = rankbits.methods.get("itq", n_bits=32, random_state=0).fit(X)
    codes = hasher.encode(X)      # BinaryCodes; hasher.transform(X) gives the packed bytes
    hasher.save("model")          # rankbits.load("model") reads it; nothing is pickled

Every class can be imported by its name, `from rankbits.methods import ITQ, TalrAP`; its module is
loaded at that moment. Methods trained by gradients need torch: pip install 'rankbits[train]'.
"""

import os
from typing import TYPE_CHECKING, Any

from rankbits._check import extra
from rankbits.methods.fingerprints import fingerprint
from rankbits.methods.persistence import load
from rankbits.methods.registry import class_named, class_names, get, names
from rankbits.methods.training.posterior_cache import PosteriorCache

if TYPE_CHECKING:
    from rankbits.methods.deep.csq import CSQ
    from rankbits.methods.deep.dpn import DPN
    from rankbits.methods.deep.dpsh import DPSH
    from rankbits.methods.deep.dsh import DSH, DispersedDSH
    from rankbits.methods.deep.dtsh import DTSH
    from rankbits.methods.deep.greedyhash import GreedyHash
    from rankbits.methods.deep.hashnet import HashNet
    from rankbits.methods.deep.mihash import MIHash
    from rankbits.methods.deep.orthohash import OrthoHash
    from rankbits.methods.deep.talr import TalrAP, TalrNDCG
    from rankbits.methods.shallow.additive import Additive
    from rankbits.methods.shallow.agh import AGH
    from rankbits.methods.shallow.bre import BRE
    from rankbits.methods.shallow.cmh import CMH
    from rankbits.methods.shallow.density import DensityHashing
    from rankbits.methods.shallow.distilled import Distilled
    from rankbits.methods.shallow.fasthash import FastHash
    from rankbits.methods.shallow.itq import ITQ
    from rankbits.methods.shallow.klsh import KLSH
    from rankbits.methods.shallow.ksh import KSH
    from rankbits.methods.shallow.lsh import LSH
    from rankbits.methods.shallow.lwh import LWH
    from rankbits.methods.shallow.machash import MACHash
    from rankbits.methods.shallow.mlh import MLH
    from rankbits.methods.shallow.pca_rr import PCARR
    from rankbits.methods.shallow.pcah import PCAH
    from rankbits.methods.shallow.rabitq import RaBitQ
    from rankbits.methods.shallow.rsh import RSH
    from rankbits.methods.shallow.sdh import SDH
    from rankbits.methods.shallow.sh import SH
    from rankbits.methods.shallow.sign import Sign
    from rankbits.methods.shallow.sklsh import SKLSH
    from rankbits.methods.shallow.sph import SpH
    from rankbits.methods.shallow.ssh import SSH
    from rankbits.methods.shallow.structhash import StructHash
    from rankbits.methods.shallow.wtah import WTAH

__all__ = [
    "AGH",
    "BRE",
    "CMH",
    "CSQ",
    "DPN",
    "DPSH",
    "DSH",
    "DTSH",
    "ITQ",
    "KLSH",
    "KSH",
    "LSH",
    "LWH",
    "MLH",
    "PCAH",
    "PCARR",
    "RSH",
    "SDH",
    "SH",
    "SKLSH",
    "SSH",
    "WTAH",
    "Additive",
    "DensityHashing",
    "DispersedDSH",
    "Distilled",
    "FastHash",
    "GreedyHash",
    "HashNet",
    "MACHash",
    "MIHash",
    "OrthoHash",
    "PosteriorCache",
    "RaBitQ",
    "Sign",
    "SpH",
    "StructHash",
    "TalrAP",
    "TalrNDCG",
    "export_onnx",
    "fingerprint",
    "get",
    "load",
    "names",
]


def export_onnx(hasher: Any, path: str | os.PathLike[str]) -> int:
    """Write a fitted method as an ONNX file: raw float32 rows in, logits and packed codes out.

    The number of rows is free. Where onnxruntime is installed, the file's bits are compared with
    those of the method on a sample of rows before anything is written.

    Parameters
    ----------
    hasher : BaseHasher
        Fitted method of this package.
    path : str or path-like
        File to write. A file of that name is replaced at the end.

    Returns
    -------
    n_compared : int
        Rows that were compared; 0 without onnxruntime.
    """
    extra("torch", "export to ONNX", "train")
    from rankbits.methods.onnx import export_onnx as export

    return export(hasher, path)


def __getattr__(name: str) -> Any:
    """The class of a method, imported when it is first used."""
    return class_named(name)


def __dir__() -> list[str]:
    """All that is defined here, and the classes that are imported when they are first used."""
    return sorted({*globals(), *class_names()})
