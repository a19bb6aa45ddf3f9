"""TALR: codes learned by optimising tie-aware AP or NDCG themselves [1]_.

    logits f -> φ = tanh(α f) -> soft tie histogram -> AP_r or NDCG_r -> 1 - mean over queries

Every row of a batch is a query against the others. At ±1 codes the objective is the metric.

.. [1] K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as tie-aware learning to rank",
   CVPR 2018; arXiv:1705.08562.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankbits import _check, objectives
from rankbits.codes import MAX_BITS
from rankbits.methods._deep.batches import Batch
from rankbits.methods._deep.dispersion import KINDS, penalty
from rankbits.methods._deep.recipes import is_auto
from rankbits.methods._gradient import GradientHasher
from rankbits.methods._supervision import Supervision

_HALF_FROM = 24  # bits


class TalrLoss(nn.Module):
    """1 - mean of the relaxed objective over the queries of a batch that have a positive."""

    def __init__(
        self,
        objective: Callable[..., Tensor],
        relaxation: str,
        n_bins: int | None,
        delta: float,
        dispersion: float = 0.0,
        dispersion_kind: str = "collisions",
    ) -> None:
        super().__init__()
        if n_bins is not None:
            _check.whole("n_bins", n_bins, 1, MAX_BITS)
        self.objective, self.relaxation = objective, relaxation
        self.n_bins, self.delta = n_bins, delta
        self.dispersion, self.dispersion_kind = dispersion, dispersion_kind

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        phi = torch.tanh(batch.alpha * logits)
        gallery = None if batch.gallery is None else torch.tanh(batch.alpha * batch.gallery)
        values = self.objective(
            phi,
            batch.levels,
            self.relaxation,
            self.n_bins,
            self.delta,
            gallery=gallery,
            own=batch.own,
        )
        loss: Tensor = 1 - objectives.mean_over_queries(values)
        if self.dispersion:
            crowding = penalty(self.dispersion_kind, phi, gallery, batch.own)
            loss = loss + self.dispersion * crowding
        return loss


class _Talr(GradientHasher):
    """What TalrAP and TalrNDCG share: all but the objective."""

    _relaxed: ClassVar[Callable[..., Tensor]]
    _relaxations: ClassVar[tuple[str, ...]] = objectives.RELAXATIONS
    _own: ClassVar[dict[str, Any]] = {
        "relaxation": "exact",
        "n_bins": "auto",
        "delta": 1.0,
        "dispersion": 0.0,
        "dispersion_kind": "collisions",
    }

    def _loss(self, supervision: Supervision) -> nn.Module:
        _check.choice("relaxation", self.relaxation, self._relaxations)
        _check.choice("dispersion_kind", self.dispersion_kind, KINDS)
        return TalrLoss(
            type(self)._relaxed,
            self.relaxation,
            self._bins(),
            self.delta,
            _check.number("dispersion", self.dispersion),
            self.dispersion_kind,
        )

    def _bins(self) -> int | None:
        """Bins of the soft histogram: from 24 bits on, one for two bits, as in the paper's runs."""
        if not is_auto(self.n_bins):
            return self.n_bins  # type: ignore[no-any-return]
        n_bits = self._asked_bits()
        return n_bits // 2 if n_bits >= _HALF_FROM else None

    def _loss_settings(self) -> dict[str, Any]:
        return {**super()._loss_settings(), "n_bins": self._bins()}

    def _objective(self, phi: Tensor, levels: Tensor, **gallery: Tensor) -> Tensor:
        return type(self)._relaxed(phi, levels, **gallery)


class TalrAP(_Talr):
    """Codes that rank by tie-aware average precision (TALR-AP) [1]_.

    Parameters of its own; the others are those of `GradientParameters`.

    Parameters
    ----------
    relaxation : "exact", "simplified", "cvpr", "arxiv"; n_bins : int; delta : float
        The form of the objective, and the bins of its soft histogram.
    dispersion : float, default=0; dispersion_kind : "collisions", "correlation"
        Weight of a penalty on pairs that share a code, or on bits that are correlated: codes then
        spread, at some cost in AP. See `_deep/dispersion.py`.

    .. [1] K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as tie-aware learning to rank",
       CVPR 2018; arXiv:1705.08562.
    """

    _relaxed = staticmethod(objectives.relaxed_ap)


class TalrNDCG(_Talr):
    """Codes that rank by tie-aware NDCG of graded relevance (TALR-NDCG); as `TalrAP`.

    Gains are 2^level - 1. Multi-hot y counts shared tags unless `graded=False`.
    """

    _relaxed = staticmethod(objectives.relaxed_ndcg)
    _relaxations = tuple(name for name in objectives.RELAXATIONS if name != "cvpr")
    _grades_tags = True
