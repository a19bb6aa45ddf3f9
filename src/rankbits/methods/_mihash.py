"""MIHash: codes whose distances say as much as they can about what is relevant [1]_ [2]_.

    logits f -> φ = tanh(α f) -> soft tie histogram -> I(D; C) -> minus the mean over queries
    I(D; C) = H(D) - p(1) H(D | C = 1) - p(0) H(D | C = 0)

D is the distance of an item drawn from a query's list, C whether it is relevant (level > 0); p(C)
are the shares of the list. I is at most H(C), where no distance has both kinds of items; it does
not ask which of the two is nearer. Natural logarithms.

.. [1] F. Cakir, K. He, S. A. Bargal and S. Sclaroff, "MIHash: online hashing with mutual
   information", ICCV 2017; arXiv:1703.08919.
.. [2] The same, "Hashing with mutual information", TPAMI 2019; arXiv:1803.00974.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankbits import _check, objectives
from rankbits.codes import MAX_BITS
from rankbits.methods._deep.batches import Batch
from rankbits.methods._deep.recipes import is_auto
from rankbits.methods._gradient import GradientHasher
from rankbits.methods._supervision import Supervision

_HALF_FROM = 24  # bits
_LEAST = 1e-12  # of a probability whose logarithm is taken: an empty bin has a finite gradient


def binary_ties(phi: Tensor, batch: Batch, n_bins: int | None = None) -> Tensor:
    """Soft counts (M, bins, 2) of irrelevant and relevant items; levels above 0 are one."""
    relevant = (batch.levels != 0).to(torch.uint8).contiguous()
    gallery = None if batch.gallery is None else torch.tanh(batch.alpha * batch.gallery)
    counts = objectives.soft_ties(phi, relevant, n_bins, gallery=gallery, own=batch.own)
    if counts.shape[2] == 1:  # nothing is relevant to anything
        counts = torch.cat([counts, torch.zeros_like(counts)], dim=2)
    return counts


def items_of_kind(counts: Tensor) -> Tensor:
    """How many items of each kind a query's list has, (M, 2): whole numbers without gradient."""
    return counts.detach().sum(1).round()


def mutual_information(counts: Tensor) -> Tensor:
    """I(D; C) of each query, in nats; NaN where all items are of one kind.

    Entropies of empty bins are 0.
    """
    n = items_of_kind(counts)
    share = n / n.sum(1, keepdim=True).clamp(min=1)
    within = counts / n.clamp(min=1)[:, None, :]
    overall = (within * share[:, None, :]).sum(2)
    gained = _entropy(overall) - (share * _entropy(within)).sum(1)
    return torch.where((n > 0).all(1), gained, torch.nan)


def _entropy(p: Tensor) -> Tensor:
    return -(p * p.clamp(min=_LEAST).log()).sum(1)


class MIHashLoss(nn.Module):
    """Minus the mean of I(D; C) over the queries of a batch that have items of both kinds."""

    def __init__(self, n_bins: int | None) -> None:
        super().__init__()
        self.n_bins = None if n_bins is None else _check.whole("n_bins", n_bins, 1, MAX_BITS)

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        counts = binary_ties(torch.tanh(batch.alpha * logits), batch, self.n_bins)
        return -objectives.mean_over_queries(mutual_information(counts))


class MIHash(GradientHasher):
    """Codes whose distances carry the most information on relevance (MIHash) [1]_.

    Any y; levels above 0 count alike. Parameters of its own; the others are those of
    `GradientParameters`.

    Parameters
    ----------
    n_bins : int, None or "auto", default="auto"
        Spacings between the bins of the soft histogram; None for one a bit. By default that, but
        from 24 bits on one for two bits, as in `talr-ap`.

    .. [1] F. Cakir, K. He, S. A. Bargal and S. Sclaroff, "Hashing with mutual information", TPAMI
       2019; arXiv:1803.00974.
    """

    _own: ClassVar[dict[str, Any]] = {"n_bins": "auto"}
    _recipes: ClassVar[dict[str | tuple[str, str], dict[str, Any]]] = {
        "mlp": {"alpha": 2.0, "learning_rate": 1e-2},
        ("mlp", "posterior"): {"learning_rate": 1e-3},
    }

    def _loss(self, supervision: Supervision) -> nn.Module:
        return MIHashLoss(self._bins())

    def _bins(self) -> int | None:
        if not is_auto(self.n_bins):
            return self.n_bins  # type: ignore[no-any-return]
        n_bits = self._asked_bits()
        return n_bits // 2 if n_bits >= _HALF_FROM else None

    def _loss_settings(self) -> dict[str, Any]:
        return {**super()._loss_settings(), "n_bins": self._bins()}
