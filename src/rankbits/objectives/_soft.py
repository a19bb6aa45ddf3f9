"""The soft tie histogram: how many items lie at each distance, in a form that has a gradient.

A pair at distance z, in bin spacings, adds max(0, 1 - |z - d| / delta) to bin d. With delta = 1 it
touches the two bins around it, so a query's counts sum to the number of its items, and at codes of
-1 and +1 they are the hard counts of `rankbits.count_ties`. Equation (soft bin) of docs/math.md;
after Eq. (14) of He et al., arXiv:1705.08562, and Ustinova & Lempitsky, NIPS 2016.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rankbits.objectives._lists import Lists, integer_levels, lists_of, positions_of

_Pull = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


def soft_ties(
    phi: torch.Tensor,
    levels: torch.Tensor,
    n_bins: int | None = None,
    delta: float = 1.0,
    *,
    gallery: torch.Tensor | None = None,
    own: torch.Tensor | None = None,
) -> torch.Tensor:
    """Soft counts c[q, d, v] of items at distance bin d with the v-th level, differentiable once.

    Parameters
    ----------
    phi : tensor of shape (M, b), in [-1, 1]
        Relaxed codes. Each is a query against the others, or against `gallery`.
    levels : integer tensor of shape (M, M), or (M, K) with a gallery
        Affinity of each pair, 0 for irrelevant. V distinct ones occur, 0 always counted among them.
    n_bins : spacings between bin centres 0, b/n_bins, ..., b; b of them by default
    delta : half width of a soft bin, in spacings
    gallery, own : codes (K, b) to rank instead, and the row in it of each query itself (-1: none)

    Returns
    -------
    tensor of shape (M, n_bins + 1, V)
    """
    values, positions = positions_of(integer_levels(levels), every=True)
    lists = lists_of(phi, positions, len(values), n_bins, delta, gallery, own)
    counts: torch.Tensor = _SoftTies.apply(phi, gallery, lists)  # type: ignore[no-untyped-call]
    return counts


class _SoftTies(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, phi: torch.Tensor, gallery: torch.Tensor | None, lists: Lists
    ) -> torch.Tensor:
        hist = lists.count(keeps_cells=any(ctx.needs_input_grad))
        shape = (len(lists.queries), lists.n_bins + 1, lists.n_levels)
        counts = np.empty(shape, lists.queries.dtype)
        hist.counts(counts)
        ctx.hist, ctx.lists, ctx.phi_type = hist, lists, (phi.device, phi.dtype)
        return torch.from_numpy(counts).to(*ctx.phi_type)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (*pull(ctx, ctx.hist.pull_counts, grad), None)


def pull(ctx: Any, native_pull: _Pull, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Gradients of phi and gallery, in the type and on the device of the codes."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "rankbits objectives are differentiable once: call backward without create_graph=True"
        )
    for_items = bool(ctx.needs_input_grad[1])
    queries, items = ctx.lists.queries, ctx.lists.items
    grad_queries = np.empty_like(queries)
    grad_items = np.empty_like(items if for_items else items[:0])
    dtype = torch.float64 if queries.dtype == np.float64 else torch.float32
    native_pull(grad.to("cpu", dtype).contiguous().numpy(), grad_queries, grad_items)
    grad_gallery = torch.from_numpy(grad_items).to(*ctx.phi_type) if for_items else None
    return torch.from_numpy(grad_queries).to(*ctx.phi_type), grad_gallery
