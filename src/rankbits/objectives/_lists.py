"""The ranked lists of a batch: each query's code, the codes it is ranked against, their levels.

Square lists are a batch against itself, and a query never meets itself. Rectangular lists are
queries against a gallery: a memory of earlier batches, or a whole training set.
"""

from dataclasses import dataclass

import numpy as np
import torch

from rankbits import _check, _native
from rankbits.errors import InputError

_ROUNDING = 1e-5
_SMALL = 1 << 17  # pairs below which a second thread costs more than it brings
MAX_LEVELS = 256
_NATIVE_LEVELS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True, eq=False, slots=True)
class Lists:
    """Checked arrays in the shape of the native kernels."""

    queries: np.ndarray  # (M, b) float32 or float64
    items: np.ndarray  # (K, b); the same array as queries in a square problem
    levels: np.ndarray  # (M, K) integers; one above the last level counts as the last
    own: np.ndarray  # (M,) int64, -1 for none; or of size 0
    n_levels: int
    n_bins: int
    delta: float
    is_square: bool

    def count(self, keeps_cells: bool) -> "_native.SoftHistogram":
        """The soft histogram; one that keeps its cells can be pulled for gradients."""
        is_long = self.levels.size > _SMALL
        hist = _native.soft_histogram(
            self.queries,
            self.items,
            self.levels,
            self.own,
            self.n_levels,
            self.n_bins,
            self.delta,
            self.is_square,
            keeps_cells,
            _native.threads(torch.get_num_threads() if is_long else 1),
        )
        if hist.has_negative_level:
            raise InputError(f"levels must not be negative, got {self.levels.min()}")
        return hist


def lists_of(
    phi: torch.Tensor,
    levels: np.ndarray,
    n_levels: int,
    n_bins: int | None,
    delta: float,
    gallery: torch.Tensor | None,
    own: torch.Tensor | None,
) -> Lists:
    """Codes and levels as arrays of the kernels; what does not fit is refused."""
    queries = _codes("phi", phi)
    items = queries if gallery is None else _codes("gallery", gallery).astype(queries.dtype)
    if items.shape[1] != queries.shape[1]:
        raise InputError(f"gallery must have the {queries.shape[1]} bits of phi, got {items.shape}")
    n_bins = queries.shape[1] if n_bins is None else _check.whole("n_bins", n_bins, 1, 4096)
    if not (isinstance(delta, int | float) and 0 < delta < float("inf")):
        raise InputError(f"delta must be a positive number of bin spacings, got {delta!r}")
    if levels.shape != (len(queries), len(items)):
        raise InputError(
            f"levels must have shape {(len(queries), len(items))}, one level for each pair, "
            f"got {levels.shape}"
        )
    rows = _own(own, gallery, len(queries), len(items))
    return Lists(queries, items, levels, rows, n_levels, n_bins, float(delta), gallery is None)


def _codes(name: str, codes: torch.Tensor) -> np.ndarray:
    """Codes as float32 or float64 in [-1, 1]."""
    if not isinstance(codes, torch.Tensor) or codes.ndim != 2 or not codes.is_floating_point():
        raise InputError(
            f"{name} must be a floating tensor of shape (n, bits), got {_describe(codes)}"
        )
    if 0 in codes.shape:
        raise InputError(f"{name} must not be empty, got {_describe(codes)}")
    dtype = torch.float64 if codes.dtype == torch.float64 else torch.float32
    values: np.ndarray = codes.detach().to("cpu", dtype).contiguous().numpy()
    if not _native.are_within(values, 1 + _ROUNDING):
        raise InputError(f"{name} must lie in [-1, 1]; squash the logits, as in torch.tanh(logits)")
    return values


def _own(
    own: torch.Tensor | None, gallery: torch.Tensor | None, n_queries: int, n_items: int
) -> np.ndarray:
    if own is None:
        return np.empty(0, np.int64)
    if gallery is None:
        raise InputError("own must be None without a gallery: a batch leaves its diagonal out")
    rows: np.ndarray = torch.as_tensor(own).detach().to("cpu", torch.int64).contiguous().numpy()
    if rows.shape != (n_queries,) or (rows >= n_items).any():
        raise InputError(
            f"own must hold one gallery row below {n_items} for each of {n_queries} queries, "
            f"-1 for none; got shape {rows.shape}"
        )
    return rows


def integer_levels(levels: torch.Tensor) -> np.ndarray:
    """Levels in the integers they came in, which the kernels read as they are."""
    if not isinstance(levels, torch.Tensor) or levels.ndim != 2 or levels.is_floating_point():
        raise InputError(
            f"levels must be an integer tensor of shape (queries, items), got {_describe(levels)}"
        )
    levels = levels.detach().cpu().contiguous()
    if levels.dtype == torch.bool:
        levels = levels.view(torch.uint8)
    elif levels.dtype not in _NATIVE_LEVELS:
        levels = levels.to(torch.int64)
    array: np.ndarray = levels.numpy()
    return array


def positions_of(levels: np.ndarray, every: bool) -> tuple[np.ndarray, np.ndarray]:
    """Distinct levels, ascending from 0, and each pair's place among them.

    Unless `every` one must occur, low levels are taken as they are: a sort of all pairs is spared.
    """
    lowest, highest = _native.level_range(levels)
    if lowest < 0:
        raise InputError(f"levels must not be negative, got {lowest}")
    if not every and highest < 16:
        return np.arange(highest + 1), levels
    values = np.union1d(levels, [0])
    if len(values) > MAX_LEVELS:
        raise InputError(
            f"levels must have at most {MAX_LEVELS} distinct values, got {len(values)}"
        )
    return values, np.searchsorted(values, levels).astype(np.uint8)


def _describe(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return _check.describe(value)
