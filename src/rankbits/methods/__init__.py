"""Methods: estimators that learn to turn rows into binary codes, by scikit-learn's contract.

    hasher = rankbits.methods.get("itq", n_bits=32, random_state=0).fit(X)
    codes = hasher.encode(X)      # BinaryCodes; hasher.transform(X) gives the packed bytes
    hasher.save("model")          # rankbits.load("model") gives it back; nothing is pickled

Methods with a gradient need torch: pip install 'rankbits[train]'.
"""

import os
from typing import Any

from rankbits._check import extra
from rankbits.methods._fingerprint import fingerprint
from rankbits.methods._persist import load
from rankbits.methods._registry import get, names

__all__ = ["export_onnx", "fingerprint", "get", "load", "names"]


def export_onnx(hasher: Any, path: str | os.PathLike[str]) -> int:
    """Write a fitted method as an ONNX file: raw float32 rows in, logits and packed codes out.

    The number of rows is free. Where onnxruntime is installed, its bits are compared with ours on a
    sample before anything is written; the rows compared are returned, 0 without it.
    """
    extra("torch", "export to ONNX", "train")
    from rankbits.methods._onnx import export_onnx as export

    return export(hasher, path)
