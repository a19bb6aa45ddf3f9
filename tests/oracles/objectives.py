"""The ranking objectives the plain way: every pair against every bin, gradients by autograd.

Memory grows as M * K * bins, so tests only. Notation as in docs/math.md: c, p soft counts of a tie
and of its relevant part, N, P the sums before it, C = N + c.
"""

import math

import numpy as np
import torch

GUARD = 0.1
EULER = 0.57721566490153286061


def soft_ties(phi, levels, n_bins=None, delta=1.0, *, gallery=None, own=None):
    """Soft counts (M, bins, V), V the levels that occur, ascending from 0."""
    items = phi if gallery is None else gallery
    n_bits = phi.shape[1]
    n_bins = n_bits if n_bins is None else n_bins
    z = (n_bits - phi @ items.T) / 2 * (n_bins / n_bits)
    z = z.clamp(0, n_bins)
    centres = torch.arange(n_bins + 1, dtype=phi.dtype)
    weights = (1 - (z[:, :, None] - centres).abs() / delta).clamp(min=0)
    keep = torch.ones_like(z)
    if gallery is None:
        keep.fill_diagonal_(0)
    elif own is not None:
        known = own >= 0
        keep[torch.nonzero(known)[:, 0], own[known]] = 0
    values = torch.unique(torch.cat([levels.flatten().long(), torch.zeros(1, dtype=torch.long)]))
    masks = torch.stack([(levels == v).to(phi.dtype) * keep for v in values], dim=-1)
    return torch.einsum("qkd,qkv->qdv", weights, masks)


def _parts(counts):
    c, p = counts.sum(-1), counts[..., 1:].sum(-1)
    N, P = c.cumsum(1) - c, p.cumsum(1) - p
    return c, p, N, P


def _digamma(x):
    """psi(x), in the same way: the gradient of torch.digamma has only ten digits."""
    w = x + 40
    tail = torch.log(w) - 1 / (2 * w) - 1 / (12 * w**2) + 1 / (120 * w**4) - 1 / (252 * w**6)
    return tail - sum(1 / (x + k) for k in range(40))


def _trigamma(x):
    """psi'(x) by forty terms of its sum and its asymptotic series."""
    w = x + 40
    tail = 1 / w + 1 / (2 * w**2) + 1 / (6 * w**3) - 1 / (30 * w**5) + 1 / (42 * w**7)
    return tail + sum(1 / (x + k) ** 2 for k in range(40))


def _mean_slope(x, t):
    """(psi(x + t) - psi(x)) / t: by Gauss's quadrature of psi' where t is small beside x."""
    small = t.abs() < 0.1 * x
    far = torch.where(small, torch.ones_like(t), t)
    near = torch.where(small, t, torch.zeros_like(t))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    mean = sum(
        weight / 2 * _trigamma(x + near * (node + 1) / 2)
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True)
    )
    return torch.where(small, mean, (_digamma(x + far) - _digamma(x)) / far)


def _exact_ap(c, p, s, N, P):
    low = c < 0.5
    Q = _mean_slope(N + 1, c)
    B = _mean_slope(N + 2, torch.where(low, torch.ones_like(c), c - 1))
    R = torch.where(
        low,
        (1 - (N + 1) * Q) / torch.where(low, c - 1, torch.ones_like(c)),
        (1 - (N + 1) * B) / torch.where(low, torch.ones_like(c), c),
    )
    return p * (P + 1) * Q + (p**2 - s) * R


def _printed_ap(c, p, N, P, start):
    log = torch.log((N + c).clamp(min=GUARD) / start.clamp(min=GUARD))
    pole = (c - 1) / ((c - 1) ** 2 + GUARD**2)
    level = P + 1 - (p - 1) * pole * (N + 1)
    return p * (p - 1) * pole + p / c.clamp(min=GUARD) * level * log


def relaxed_ap(
    phi,
    levels,
    relaxation="exact",
    n_bins=None,
    delta=1.0,
    *,
    gallery=None,
    own=None,
    relevance=None,
):
    counts = soft_ties(phi, levels, n_bins, delta, gallery=gallery, own=own)
    n_items = _level_counts(phi, levels, gallery, own)
    if relevance is not None:  # of every level that occurs
        chances = torch.as_tensor(relevance, dtype=phi.dtype)
        squares = counts @ chances**2
        counts = torch.stack([counts @ (1 - chances), counts @ chances], dim=2)
        expected = n_items.to(phi.dtype) @ chances
        total = ap_of_counts(counts, relaxation, squares)
        return _divide(total, expected.clamp(min=1) * (expected > 0))
    return _divide(ap_of_counts(counts, relaxation), n_items[:, 1:].sum(1))


def ap_of_counts(counts, relaxation, squares=None):
    """The sum over ties, before it is divided by the number of relevant items."""
    c, p, N, P = _parts(counts)
    if relaxation == "exact":
        added = _exact_ap(c, p, p if squares is None else squares, N, P)
    elif relaxation == "simplified":
        added = p * (2 * P + p + 1) / (2 * N + c + 1)
    else:
        added = _printed_ap(c, p, N, P, N if relaxation == "cvpr" else N + 1)
    return added.sum(1)


def _level_counts(phi, levels, gallery, own):
    hard = soft_ties(
        torch.zeros_like(phi),
        levels,
        1,
        1.0,
        gallery=None if gallery is None else torch.zeros_like(gallery),
        own=own,
    )
    return hard.sum(1).detach().round()


def _divide(total, by):
    return torch.where(by > 0, total / by.clamp(min=1), torch.full_like(total, math.nan))


def _discount_sum(x, table):
    low = x.floor().clamp(max=len(table) - 2).long()
    return table[low] + (x - low) * (table[low + 1] - table[low])


def _log_integral(x):
    """li(x) by the trapezoid-free series Ei(u) = γ + ln|u| + Σ u^k / (k k!), u = ln x."""
    u = x.log()
    total, term = EULER + u.abs().log(), torch.ones_like(u)
    for k in range(1, 80):
        term = term * u / k
        total = total + term / k
    return total


def relaxed_ndcg(
    phi, levels, relaxation="exact", n_bins=None, delta=1.0, *, gallery=None, own=None
):
    counts = soft_ties(phi, levels, n_bins, delta, gallery=gallery, own=own)
    values = torch.unique(torch.cat([levels.flatten().long(), torch.zeros(1, dtype=torch.long)]))
    gains = (2.0 ** values.to(phi.dtype)) - 1
    of_level = _level_counts(phi, levels, gallery, own)
    n = int(of_level.sum(1).max())
    table = torch.cat(
        [
            torch.zeros(1, dtype=phi.dtype),
            (1 / torch.log2(torch.arange(1, n + 3, dtype=phi.dtype) + 1)).cumsum(0),
        ]
    )
    ideal = torch.zeros_like(phi[:, 0])
    before = torch.zeros_like(of_level[:, 0])
    for v in range(len(values) - 1, 0, -1):
        after = before + of_level[:, v]
        ideal = ideal + gains[v] * (table[after.long()] - table[before.long()])
        before = after
    return _divide_by(dcg_of_counts(counts, gains, table, relaxation), ideal)


def dcg_of_counts(counts, gains, table, relaxation):
    c, _, N, _ = _parts(counts)
    gained = counts @ gains
    if relaxation == "exact":
        span = _discount_sum(N + c, table) - _discount_sum(N, table)
        return torch.where(
            c > 0, gained / torch.where(c > 0, c, torch.ones_like(c)) * span, torch.zeros_like(c)
        ).sum(1)
    if relaxation == "simplified":
        return (gained / torch.log2(N + (c + 1) / 2 + 1)).sum(1)
    span = math.log(2) * (_log_integral((N + c).clamp(min=GUARD) + 1) - _log_integral(N + 2))
    return (gained / c.clamp(min=GUARD) * span).sum(1)


def _divide_by(total, ideal):
    return torch.where(ideal > 0, total / ideal.clamp(min=1e-300), torch.full_like(total, math.nan))
