"""Relaxed average precision and NDCG: the tie-aware metrics of a soft histogram.

With c, p the soft counts of a tie and of its relevant part, N, P those before it, C = N + c, and
H the harmonic numbers continued to the reals, a tie adds to AP

    exact       p * [(P + 1) Q + (p - 1) R],   Q = (H(C) - H(N)) / c,   R = (1 - (N + 1) Q)/(c - 1)
    simplified  p * (2P + p + 1) / (2N + c + 1)
    cvpr        Eq. (11) of the CVPR text: a logarithm of C / N
    arxiv       Eq. (7) of the arXiv text: a logarithm of C / (N + 1)

and to DCG, G the gain 2^v - 1 and g = sum over v of G(v) c[v],

    exact       g / c * (D(C) - D(N)), D the sums of discounts, linear between whole ranks
    simplified  g / log2(N + (c + 1)/2 + 1)
    arxiv       g / c * ln 2 * (li(C + 1) - li(N + 2)), Eq. (8)

`exact` equals the tie-aware metric wherever the counts are whole. The printed forms have poles: a
count that is divided by, or whose logarithm is taken, is read as at least 0.1, and 1 / (c - 1) as
(c - 1) / ((c - 1)^2 + 0.01). Eq. (12) of the CVPR text starts its integral where it diverges for
the first tie, and is not offered. docs/math.md derives all of them and says why Q and R are smooth.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from rankbits import _check, _native
from rankbits.errors import InputError
from rankbits.objectives._lists import MAX_LEVELS, Lists, integer_levels, lists_of, positions_of
from rankbits.objectives._soft import pull

RELAXATIONS = ("exact", "simplified", "cvpr", "arxiv")
_MAX_GAIN_LEVEL = 50
_Value = Callable[[_native.SoftHistogram, np.ndarray], None]


def relaxed_ap(
    phi: torch.Tensor,
    levels: torch.Tensor,
    relaxation: str = "exact",
    n_bins: int | None = None,
    delta: float = 1.0,
    *,
    gallery: torch.Tensor | None = None,
    own: torch.Tensor | None = None,
    relevance: Sequence[float] | None = None,
) -> torch.Tensor:
    """Relaxed average precision of each query, differentiable once.

    Levels above 0 are relevant. NaN for a query without a relevant item: `mean_over_queries`
    leaves it out. Where labels are not certain, `relevance` gives the chance that an item of a
    level is relevant, and the formulas read the expected number of relevant items. A query that
    expects less than one of them counts by what it expects: its value is not divided by it.

    Parameters
    ----------
    phi : floating tensor of shape (M, b), in [-1, 1]
        Relaxed codes. Each is a query against the others, or against `gallery`.
    levels : integer or bool tensor of shape (M, M), or (M, K) with a gallery
        Affinity of each pair, 0 for irrelevant and anything above it for relevant.
    relaxation : {"exact", "simplified", "cvpr", "arxiv"}, default="exact"
        The formula for what a tie adds to the average precision. "exact" equals the tie-aware
        metric where the counts are whole numbers; docs/math.md derives all four.
    n_bins : int or None, default=None
        Number of spacings between the bin centers 0, b/n_bins, ..., b, at most 4096. None takes b
        of them, one for each bit.
    delta : float, default=1.0
        Half the width of a soft bin, in spacings. It must be positive.
    gallery : floating tensor of shape (K, b), in [-1, 1], or None, default=None
        Relaxed codes to rank for each query. None ranks the other codes of `phi`.
    own : integer tensor of shape (M,) or None, default=None
        The row of each query itself in `gallery`, which is left out of its list; -1 for a query
        that is not in it. It must be None without a gallery.
    relevance : sequence of floats from 0 to 1, or None, default=None
        The chance that an item of level 0, 1, ... is relevant; levels above the last count as the
        last. None stands for (0, 1).

    Returns
    -------
    tensor of shape (M,)
        With the dtype and on the device of `phi`.

    >>> phi = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> same_class = torch.tensor([0, 0, 1, 1])
    >>> relaxed_ap(phi, same_class[:, None] == same_class)
    tensor([1.0000, 1.0000, 0.6111, 1.0000])
    """
    form = RELAXATIONS.index(_check.choice("relaxation", relaxation, RELAXATIONS))
    chances = _read_relevance(relevance)
    # Whatever is above the last level counts as the last: of two, as relevant.
    lists = lists_of(phi, integer_levels(levels), len(chances), n_bins, delta, gallery, own)
    ap: torch.Tensor = _Relaxed.apply(  # type: ignore[no-untyped-call]
        phi, gallery, lists, lambda hist, values: hist.ap(form, chances, values)
    )
    return ap


def relaxed_ndcg(
    phi: torch.Tensor,
    levels: torch.Tensor,
    relaxation: str = "exact",
    n_bins: int | None = None,
    delta: float = 1.0,
    *,
    gallery: torch.Tensor | None = None,
    own: torch.Tensor | None = None,
) -> torch.Tensor:
    """Relaxed NDCG of each query, gain 2^v - 1, differentiable once.

    The ideal ranking is that of the query's own list. NaN for a query without a relevant item.

    Parameters
    ----------
    phi : floating tensor of shape (M, b), in [-1, 1]
        Relaxed codes. Each is a query against the others, or against `gallery`.
    levels : integer or bool tensor of shape (M, M), or (M, K) with a gallery
        Affinity v of each pair, 0 for irrelevant and at most 50.
    relaxation : {"exact", "simplified", "arxiv"}, default="exact"
        The formula for what a tie adds to the DCG. "exact" equals the tie-aware metric where the
        counts are whole numbers; docs/math.md derives all three.
    n_bins : int or None, default=None
        Number of spacings between the bin centers 0, b/n_bins, ..., b, at most 4096. None takes b
        of them, one for each bit.
    delta : float, default=1.0
        Half the width of a soft bin, in spacings. It must be positive.
    gallery : floating tensor of shape (K, b), in [-1, 1], or None, default=None
        Relaxed codes to rank for each query. None ranks the other codes of `phi`.
    own : integer tensor of shape (M,) or None, default=None
        The row of each query itself in `gallery`, which is left out of its list; -1 for a query
        that is not in it. It must be None without a gallery.

    Returns
    -------
    tensor of shape (M,)
        With the dtype and on the device of `phi`.
    """
    known = tuple(name for name in RELAXATIONS if name != "cvpr")
    form = RELAXATIONS.index(_check.choice("relaxation", relaxation, known))
    level_values, positions = positions_of(integer_levels(levels), every=False)
    if level_values[-1] > _MAX_GAIN_LEVEL:
        raise InputError(
            f"levels must be at most {_MAX_GAIN_LEVEL} for gains of 2^level - 1, "
            f"got {level_values[-1]}"
        )
    lists = lists_of(phi, positions, len(level_values), n_bins, delta, gallery, own)
    gains = np.exp2(level_values.astype(np.float64)) - 1
    sums = _discount_sums(int(lists.items.shape[0] * (1 + np.ceil(delta))) + 3)
    ndcg: torch.Tensor = _Relaxed.apply(  # type: ignore[no-untyped-call]
        phi, gallery, lists, lambda hist, values: hist.ndcg(form, gains, sums, values)
    )
    return ndcg


def mean_over_queries(values: torch.Tensor) -> torch.Tensor:
    """Mean of the queries that have a value; 0, with a gradient of 0, if none has.

    Parameters
    ----------
    values : floating tensor of shape (n_queries,)
        The value of each query, NaN for a query that has none, as `relaxed_ap` and `relaxed_ndcg`
        return them.

    Returns
    -------
    tensor of shape ()

    >>> mean_over_queries(torch.tensor([1.0, float("nan"), 0.5]))
    tensor(0.7500)
    """
    n_defined = (~torch.isnan(values)).sum().clamp(min=1)
    return torch.nansum(values) / n_defined


def _read_relevance(relevance: Sequence[float] | None) -> np.ndarray:
    """The chance of each level as the kernels read it."""
    if relevance is None:
        return np.array([0.0, 1.0])
    chances: np.ndarray = np.asarray(relevance, np.float64)
    is_chance = (chances >= 0) & (chances <= 1)
    if chances.ndim != 1 or not 1 <= chances.size <= MAX_LEVELS or not is_chance.all():
        raise InputError(
            f"relevance must be 1 to {MAX_LEVELS} chances from 0 to 1, one for each level, "
            f"got {_check.describe(relevance)}"
        )
    return chances


@lru_cache(maxsize=8)
def _discount_sums(n: int) -> np.ndarray:
    """Sums of the first 0, 1, ..., n discounts 1 / log2(rank + 1)."""
    return np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2.0, n + 2)))])


class _Relaxed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, phi: torch.Tensor, gallery: torch.Tensor | None, lists: Lists, value: _Value
    ) -> torch.Tensor:
        hist = lists.count(keeps_cells=any(ctx.needs_input_grad))
        values = np.empty(len(lists.queries), lists.queries.dtype)
        value(hist, values)
        ctx.hist, ctx.lists, ctx.phi_type = hist, lists, (phi.device, phi.dtype)
        return torch.from_numpy(values).to(*ctx.phi_type)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (*pull(ctx, ctx.hist.pull_values, grad), None, None)
