"""Export to ONNX: one file that turns raw float32 rows into logits and packed codes.

The graph has the input `x` (n, d) and the outputs `logits` (n, b) float32 and `codes`
(n, ceil(b / 8)) uint8, packed as everywhere in rankbits; the number of rows n is free. The outputs
`query_logits` and `query_codes` are those of `project_queries` and `encode_queries`; they are equal
to the first two unless the model encodes queries by a map of their own, and a model whose queries
have no bits gives no `query_codes`. The bits are taken before the logits are rounded to float32.
The metadata has the number of bits and the model's fingerprint.
"""

import math
import os
from importlib import import_module

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from rankbits._check import extra
from rankbits._files import write_atomically
from rankbits.codes.stored import MODEL_KEY, N_BITS_KEY
from rankbits.errors import RankbitsError
from rankbits.methods.base import BaseHasher
from rankbits.methods.fingerprints import fingerprint
from rankbits.methods.graphs import trace_graph

_SAMPLE_ROWS, _SAMPLE_CELLS = 64, 1 << 22
_ROUNDING = 1e-4  # relative to the largest logit; closer to 0 two float32 libraries may differ


_OUTPUTS = ("logits", "codes", "query_logits", "query_codes")


class PackedCodes(nn.Module):
    """Logits of rows and their signs packed as `numpy.packbits` does, as items and as queries.

    Without a map for queries, those of items are returned twice; where queries have no bits, only
    their logits are.
    """

    def __init__(
        self,
        logits: nn.Module,
        n_bits: int,
        query_logits: nn.Module | None = None,
        *,
        has_query_bits: bool = True,
    ) -> None:
        super().__init__()
        self.logits, self.query_logits = logits, query_logits
        self.has_query_bits = has_query_bits
        self.n_bytes, self.n_spare = -(-n_bits // 8), -n_bits % 8
        self.register_buffer("weights", 2 ** torch.arange(7, -1, -1, dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Logits as float32 and codes as uint8, of items and of queries."""
        items = self._pack(self.logits(x))
        if self.query_logits is None:
            return (*items, *items)
        queries = self.query_logits(x)
        return (*items, *self._pack(queries)) if self.has_query_bits else (*items, queries.float())

    def _pack(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        bits = nn.functional.pad((logits > 0).to(torch.int32), (0, self.n_spare))
        bytes_of_bits = bits.reshape(-1, self.n_bytes, 8) * self.get_buffer("weights")
        return logits.float(), bytes_of_bits.sum(dim=2, dtype=torch.int32).to(torch.uint8)


def export_onnx(hasher: BaseHasher, path: str | os.PathLike[str]) -> int:
    """Write a fitted method as an ONNX file; return how many rows of a sample were compared.

    Where onnxruntime is installed, the file is run on random rows. If a bit differs from that of
    the method by more than rounding can explain, nothing is written. Without onnxruntime no row is
    compared and 0 is returned.
    """
    for package in ("onnx", "onnxscript"):
        extra(package, "export to ONNX", "onnx")
    check_is_fitted(hasher)
    sample = _sample(hasher)
    query_logits = hasher._query_torch_module() if hasher._has_query_map else None
    has_bits = "bits" in hasher.query_kinds
    module = PackedCodes(
        hasher._torch_module(), hasher.n_bits_, query_logits, has_query_bits=has_bits
    )
    outputs = _OUTPUTS if has_bits else _OUTPUTS[:-1]
    content = _graph(module.eval(), torch.from_numpy(sample), outputs, _metadata(hasher))
    n_compared = _compare(hasher, content, sample)
    with write_atomically(path) as file:
        file.write(content)
    return n_compared


def _sample(hasher: BaseHasher) -> np.ndarray:
    """Random rows of the shape that the method was fitted on, fewer if they are very long."""
    row_shape = hasher._row_shape()
    shape = max(2, min(_SAMPLE_ROWS, _SAMPLE_CELLS // math.prod(row_shape))), *row_shape
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _metadata(hasher: BaseHasher) -> dict[str, str]:
    """What the file says about its codes, under the names that code files use."""
    model = fingerprint(hasher)
    return {N_BITS_KEY: str(hasher.n_bits_), **({} if model is None else {MODEL_KEY: model})}


def _graph(
    module: nn.Module, sample: torch.Tensor, outputs: tuple[str, ...], metadata: dict[str, str]
) -> bytes:
    """The ONNX model of a module, with its metadata."""
    model = trace_graph(module, sample, outputs)
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    content: bytes = model.SerializeToString()
    return content


def _compare(hasher: BaseHasher, content: bytes, sample: np.ndarray) -> int:
    """Run the model on the sample and compare bits; returns the number of rows compared."""
    try:
        onnxruntime = import_module("onnxruntime")
    except ImportError:
        return 0
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    logits = {"codes": hasher.project, "query_codes": hasher.project_queries}
    for output in session.get_outputs():
        if output.name in logits:
            (packed,) = session.run([output.name], {"x": sample})
            _require_bits(packed, logits[output.name](sample))
    return len(sample)


def _require_bits(packed: np.ndarray, logits: np.ndarray) -> None:
    """Refuse bits of the exported model that are not the signs of the method's logits."""
    exported_bits = np.unpackbits(packed, axis=1, count=logits.shape[1])
    is_clear = np.abs(logits) > _ROUNDING * np.abs(logits).max()
    n_wrong = int(((logits > 0) != exported_bits)[is_clear].sum())
    if n_wrong:
        raise RankbitsError(
            f"the exported model must give the method's bits, but {n_wrong} of "
            f"{exported_bits.size} differ on a sample of rows; please report this"
        )
