"""Export to ONNX: one file that turns raw float32 rows into logits and packed codes.

The graph has the input `x` (n, d) and the outputs `logits` (n, b) float32 and `codes`
(n, ceil(b / 8)) uint8, packed as everywhere in rankbits; n is free. The bits are taken before
logits are rounded to float32. Its metadata has the number of bits and the model's fingerprint.
"""

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from rankbits._check import extra
from rankbits._files import write_atomically
from rankbits.codes.stored import MODEL_KEY, N_BITS_KEY
from rankbits.errors import RankbitsError
from rankbits.methods._base import BaseHasher
from rankbits.methods._fingerprint import fingerprint

_SAMPLE_ROWS = 64
_ROUNDING = 1e-4  # relative to the largest logit; nearer to 0 two float32 libraries may differ


class Hyperplanes(nn.Module):
    """(x - mean) planes, in double as in LinearHasher."""

    def __init__(self, mean: np.ndarray, planes: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))
        self.register_buffer("planes", torch.tensor(planes, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        return (x.double() - self.get_buffer("mean")) @ self.get_buffer("planes")


class Features(nn.Module):
    """Some columns of x less their means, in double as in Sign."""

    def __init__(self, columns: np.ndarray, mean: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("columns", torch.tensor(columns, dtype=torch.int64))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        chosen = x.index_select(1, self.get_buffer("columns"))
        return chosen.double() - self.get_buffer("mean")


class Packed(nn.Module):
    """A module's logits, and their signs packed as `numpy.packbits` does."""

    def __init__(self, logits: nn.Module, n_bits: int) -> None:
        super().__init__()
        self.logits = logits
        self.n_bytes, self.n_spare = -(-n_bits // 8), -n_bits % 8
        self.register_buffer("weights", 2 ** torch.arange(7, -1, -1, dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits as float32, and codes as uint8."""
        logits = self.logits(x)
        bits = nn.functional.pad((logits > 0).to(torch.int32), (0, self.n_spare))
        bytes_of_bits = bits.reshape(-1, self.n_bytes, 8) * self.get_buffer("weights")
        return logits.float(), bytes_of_bits.sum(dim=2, dtype=torch.int32).to(torch.uint8)


def export_onnx(hasher: BaseHasher, path: str | os.PathLike[str]) -> int:
    """Write a fitted method as an ONNX file; return how many rows of a sample were compared.

    Where onnxruntime is installed, the file is run on random rows, and if a bit is not ours, up to
    rounding, nothing is written. Without it no row is compared and 0 is returned.
    """
    for package in ("onnx", "onnxscript"):
        extra(package, "export to ONNX", "onnx")
    check_is_fitted(hasher)
    sample = _sample(hasher)
    module = Packed(hasher._torch_module(), hasher.n_bits_).eval()
    content = _graph(module, torch.from_numpy(sample), _metadata(hasher))
    n_compared = _compare(hasher, content, sample)
    with write_atomically(path) as file:
        file.write(content)
    return n_compared


def _sample(hasher: BaseHasher) -> np.ndarray:
    """Random rows of the shape that the method was fitted on."""
    shape = _SAMPLE_ROWS, *hasher._row_shape()
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _metadata(hasher: BaseHasher) -> dict[str, str]:
    """What the file says about its codes, under the names that code files use."""
    model = fingerprint(hasher)
    return {N_BITS_KEY: str(hasher.n_bits_), **({} if model is None else {MODEL_KEY: model})}


def _graph(module: nn.Module, sample: torch.Tensor, metadata: dict[str, str]) -> bytes:
    """The ONNX model of a module, weights included, with a free number of rows."""
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            (sample,),
            dynamo=True,
            input_names=["x"],
            output_names=["logits", "codes"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            external_data=False,
            verbose=False,
        )
    model: Any = program.model_proto  # type: ignore[union-attr]
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    content: bytes = model.SerializeToString()
    return content


def _compare(hasher: BaseHasher, content: bytes, sample: np.ndarray) -> int:
    """Run the model on the sample and compare bits; the rows compared, 0 without onnxruntime."""
    try:
        onnxruntime = import_module("onnxruntime")
    except ImportError:
        return 0
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    packed = session.run(["codes"], {"x": sample})[0]
    logits = hasher.project(sample)
    theirs = np.unpackbits(packed, axis=1, count=hasher.n_bits_)
    is_clear = np.abs(logits) > _ROUNDING * np.abs(logits).max()
    wrong = int(((logits > 0) != theirs)[is_clear].sum())
    if wrong:
        raise RankbitsError(
            f"the exported model must give the method's bits, {wrong} of {theirs.size} differ on a "
            "sample; please report it"
        )
    return len(sample)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's progress, warnings and log lines off the caller's streams."""
    before = logging.root.manager.disable
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)
