"""TALR: codes learned by optimizing tie-aware AP or NDCG themselves [1]_.

    logits f -> φ = tanh(α f) -> soft tie histogram -> AP_r or NDCG_r -> 1 - mean over queries

Every row of a batch is a query against the others. At ±1 codes the objective is the metric.

Behind a class posterior, labels are drawn. With many classes a list has few relevant rows, and one
wrong draw near its head moves AP by a large part: noise that is larger than what is to be learned.
AP in the mean over the labels of the items has a closed form (docs/math.md), so in the second half
of a run only the class of the query is drawn, and each item counts by its chance to be of that
class. In the first half the noise keeps codes from settling early. Where relevant items are many
and bits are few, it is useful throughout.

What differs from the papers: the sum over tied positions is exact, and from 24 bits on a bin of the
soft histogram spans two bits.

.. [1] K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as tie-aware learning to rank",
   CVPR 2018; arXiv:1705.08562.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankbits import objectives
from rankbits.codes import MAX_BITS
from rankbits.methods.deep.dispersion import KINDS, dispersion_penalty
from rankbits.methods.deep.soft_histograms import choose_n_bins
from rankbits.methods.parameters.fields import (
    auto,
    choice,
    flag,
    integer,
    is_auto,
    number,
    optional,
    parameter,
)
from rankbits.methods.supervision import N_CHANCES, Supervision
from rankbits.methods.training.batches import Batch, ChanceLoss
from rankbits.methods.training.estimator import GradientHasher

_RELEVANCE = tuple(step / (N_CHANCES - 1) for step in range(N_CHANCES))  # of Batch.chances


class TalrLoss(ChanceLoss):
    """1 - mean of the relaxed objective over the queries of a batch that have a positive."""

    def __init__(
        self,
        objective: Callable[..., Tensor],
        relaxation: str,
        n_bins: int | None,
        delta: float,
        dispersion: float = 0.0,
        dispersion_kind: str = "collisions",
        expected: bool | str = False,
    ) -> None:
        super().__init__()
        self.objective, self.relaxation = objective, relaxation
        self.n_bins, self.delta = n_bins, delta
        self.dispersion, self.dispersion_kind = dispersion, dispersion_kind
        self.expected = expected
        self.reads_chances = expected is not False

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        phi = torch.tanh(batch.query_alpha * logits)
        gallery = None if batch.gallery is None else torch.tanh(batch.alpha * batch.gallery)
        lists: dict[str, Any] = {"gallery": gallery, "own": batch.own}
        levels = batch.levels
        if batch.chances is not None and self._prefers_chances(batch.levels, phi.shape[1]):
            levels, lists["relevance"] = batch.chances, _RELEVANCE
        values = self.objective(phi, levels, self.relaxation, self.n_bins, self.delta, **lists)
        loss: Tensor = 1 - objectives.mean_over_queries(values)
        if self.dispersion:
            loss = loss + self.dispersion * self._measure_crowding(phi, gallery, batch)
        return loss

    def _prefers_chances(self, levels: Tensor, n_bits: int) -> bool:
        """Whether drawn labels are too noisy: a query has fewer relevant items than a code bits."""
        if is_auto(self.expected):
            return bool(levels.count_nonzero() < n_bits * len(levels))
        return bool(self.expected)

    def _measure_crowding(self, phi: Tensor, gallery: Tensor | None, batch: Batch) -> Tensor:
        """The penalty on codes that crowd together: those of the items, if queries have others."""
        if gallery is not None and batch.trains_gallery:
            return dispersion_penalty(self.dispersion_kind, gallery)
        return dispersion_penalty(self.dispersion_kind, phi, gallery, batch.own)


class _Talr(GradientHasher):
    """What TalrAP and TalrNDCG share: all but the objective.

    Parameters
    ----------
    relaxation : {"exact", "simplified", "cvpr", "arxiv"}, default="exact"
        The form of the objective at soft codes. "exact" equals the metric at binary codes; the
        others are those of the papers.
    n_bins : int or None, default="auto"
        Number of spacings between the bins of the soft histogram; None for one for each bit. The
        default is one for each bit, but from 24 bits on one for two bits.
    delta : float, default=1.0
        Half the width of a soft bin, in spacings.
    dispersion : float, default=0.0
        Weight of a penalty on codes that crowd together: codes then spread, at some cost in the
        metric.
    dispersion_kind : {"collisions", "correlation"}, default="collisions"
        Whether the penalty is on pairs that share a code, or on bits that are correlated.
    """

    relaxation: str = parameter("exact", choice(*objectives.RELAXATIONS))
    n_bins: int | None = auto(optional(integer(1, MAX_BITS)))
    delta: float = parameter(1.0, number(closed=False))
    dispersion: float = parameter(0.0, number())
    dispersion_kind: str = parameter("collisions", choice(*KINDS))

    _relaxed: ClassVar[Callable[..., Tensor]]

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        return TalrLoss(
            type(self)._relaxed,
            self.relaxation,
            choose_n_bins(self.n_bins, self.n_bits),
            self.delta,
            self.dispersion,
            self.dispersion_kind,
            getattr(self, "expected", False),
        )

    def _loss_settings(self) -> dict[str, Any]:
        n_bins = choose_n_bins(self.n_bins, self.n_bits)
        return {**super()._loss_settings(), "n_bins": n_bins}

    def _query_values(self, phi: Tensor, levels: Tensor, **lists: Any) -> Tensor:
        return type(self)._relaxed(phi, levels, **lists)


class TalrAP(_Talr):
    """Codes that rank by tie-aware average precision (TALR-AP) [1]_.

    The objective is the metric itself, made differentiable: every row of a batch is a query that
    ranks the other rows. y is class labels, multi-hot, an affinity over (X, X), or None.

    Parameters
    ----------
    expected : bool, default="auto"
        Where the bits read a class posterior: whether lists have, in the second half of the epochs,
        the chance that each item is of the query's class in place of a class that is drawn for it.
        The objective is the same in the mean, with less noise. The default is True for lists with
        fewer relevant items than codes have bits.

    References
    ----------
    .. [1] K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as tie-aware learning to rank",
       CVPR 2018; arXiv:1705.08562.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> hasher = TalrAP(16, encoder="linear", epochs=2, random_state=0)
    >>> hasher.fit(data.database_x, data.database_y).encode(data.query_x[:3])
    BinaryCodes(n=3, n_bits=16)
    """

    expected: bool = auto(flag)

    _relaxed = staticmethod(objectives.relaxed_ap)


class TalrNDCG(_Talr):
    """Codes that rank by tie-aware NDCG of graded relevance (TALR-NDCG) [1]_.

    As TalrAP, with NDCG as its objective. The gain of a level is 2^level - 1. The relevance of two
    rows of a multi-hot y is the number of tags they share, unless `graded=False`.

    Parameters
    ----------
    relaxation : {"exact", "simplified", "arxiv"}, default="exact"
        The form of the objective at soft codes. "exact" equals the metric at binary codes; the
        others are those of the papers.

    References
    ----------
    .. [1] K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as tie-aware learning to rank",
       CVPR 2018; arXiv:1705.08562.
    """

    relaxation: str = parameter(
        "exact", choice(*(name for name in objectives.RELAXATIONS if name != "cvpr"))
    )

    _relaxed = staticmethod(objectives.relaxed_ndcg)
    _grades_tags = True
