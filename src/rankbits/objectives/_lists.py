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
_MAX_LEVELS = 256


@dataclass(frozen=True)
class Lists:
    """Checked arrays in the shape of the native kernels."""

    queries: np.ndarray  # (M, b) float32 or float64
    items: np.ndarray  # (K, b); the same array as queries in a square problem
    positions: np.ndarray  # (M, K) uint8 positions of levels
    own: np.ndarray  # (M,) int64, -1 for none; or of size 0
    n_levels: int
    n_bins: int
    delta: float
    is_square: bool

    @property
    def n_threads(self) -> int:
        """Torch's threads, or one where the lists are short."""
        return _native.threads(torch.get_num_threads() if self.positions.size > _SMALL else 1)

    def count(self, keep_bins: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Soft counts (M, bins, V), hard counts of each level (M, V), and bins for `pull`."""
        shape = (len(self.queries), self.n_bins + 1, self.n_levels)
        counts = np.empty(shape, self.queries.dtype)
        of_level = np.empty((shape[0], shape[2]), np.int64)
        how = (self.n_bins, self.delta, self.is_square)
        kept = _native.kept_bins(self.queries, self.items, *how) if keep_bins else 0
        bins = np.empty(kept, np.uint8)
        lists = (self.queries, self.items, self.positions, self.own, *how)
        _native.count_soft(*lists, counts, of_level, bins, self.n_threads)
        return counts, of_level, bins

    def pull(
        self, grad_counts: np.ndarray, bins: np.ndarray, for_items: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of the queries' codes and, where asked, of the gallery's."""
        grad_queries = np.empty_like(self.queries)
        grad_items = np.empty_like(self.items if for_items else self.items[:0])
        how = (self.n_bins, self.delta, self.is_square)
        lists = (self.queries, self.items, self.positions, self.own, *how)
        _native.pull_soft(*lists, grad_counts, bins, grad_queries, grad_items, self.n_threads)
        return grad_queries, grad_items


def lists_of(
    phi: torch.Tensor,
    positions: torch.Tensor,
    n_levels: int,
    n_bins: int | None,
    delta: float,
    gallery: torch.Tensor | None,
    own: torch.Tensor | None,
) -> Lists:
    """Codes and level positions as arrays of the kernels; what does not fit is refused."""
    queries = _codes("phi", phi)
    items = queries if gallery is None else _codes("gallery", gallery).astype(queries.dtype)
    if items.shape[1] != queries.shape[1]:
        raise InputError(f"gallery must have the {queries.shape[1]} bits of phi, got {items.shape}")
    n_bins = queries.shape[1] if n_bins is None else _check.whole("n_bins", n_bins, 1, 4096)
    if not (isinstance(delta, int | float) and 0 < delta < float("inf")):
        raise InputError(f"delta must be a positive number of bin spacings, got {delta!r}")
    if positions.shape != (len(queries), len(items)):
        raise InputError(
            f"levels must have shape {(len(queries), len(items))}, one level a pair, "
            f"got {tuple(positions.shape)}"
        )
    where = positions.detach().to("cpu", torch.uint8).contiguous().numpy()
    mine = _own(own, gallery, len(queries), len(items))
    return Lists(queries, items, where, mine, n_levels, n_bins, float(delta), gallery is None)


def _codes(name: str, codes: torch.Tensor) -> np.ndarray:
    """Codes as float32 or float64 in [-1, 1]."""
    if not isinstance(codes, torch.Tensor) or codes.ndim != 2 or not codes.is_floating_point():
        raise InputError(
            f"{name} must be a floating tensor of shape (n, bits), got {_describe(codes)}"
        )
    if 0 in codes.shape:
        raise InputError(f"{name} must not be empty, got {_describe(codes)}")
    dtype = torch.float64 if codes.dtype == torch.float64 else torch.float32
    found: np.ndarray = codes.detach().to("cpu", dtype).contiguous().numpy()
    if not np.abs(found).max() <= 1 + _ROUNDING:
        raise InputError(f"{name} must lie in [-1, 1]; squash the logits, as in torch.tanh(logits)")
    return found


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


def whole_levels(levels: torch.Tensor) -> torch.Tensor:
    """Levels as they came, if they are non-negative integers or booleans in two dimensions."""
    if not isinstance(levels, torch.Tensor) or levels.ndim != 2 or levels.is_floating_point():
        raise InputError(
            f"levels must be an integer tensor of shape (queries, items), got {_describe(levels)}"
        )
    if levels.dtype not in (torch.bool, torch.uint8) and levels.numel() and levels.min() < 0:
        raise InputError(f"levels must not be negative, got {int(levels.min())}")
    return levels


def relevant(levels: torch.Tensor) -> torch.Tensor:
    """1 where a level is above 0, as bytes."""
    return (levels if levels.dtype == torch.bool else levels != 0).view(torch.uint8)


def positions_of(levels: torch.Tensor, every: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct levels, ascending from 0, and each pair's place among them.

    Unless `every` one must occur, low levels are taken as they are: a sort of all pairs is spared.
    """
    highest = int(levels.max()) if levels.numel() else 0
    if not every and highest < 16:
        return torch.arange(highest + 1), levels
    zero = torch.zeros(1, dtype=torch.int64)
    values = torch.unique(torch.cat([zero, levels.detach().cpu().flatten().to(torch.int64)]))
    if len(values) > _MAX_LEVELS:
        raise InputError(
            f"levels must have at most {_MAX_LEVELS} distinct values, got {len(values)}"
        )
    return values, torch.searchsorted(values, levels.detach().cpu().to(torch.int64))


def _describe(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return _check.describe(value)
