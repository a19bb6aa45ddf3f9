"""DSH and dispersed DSH: similar pairs drawn together, dissimilar ones pushed apart [1]_ [2]_.

    DSH         codes are the logits themselves, held near ±1; similar pairs as close as can be
    dispersed   codes are tanh(α f); similar pairs within a zone, neither closer nor wider, so that
                a class fills a ball of codes instead of one code

Distances are counted in bits, ‖u - v‖² / 4 or ‖u - v‖₁ / 2: at codes of ±1 either is the Hamming
distance. Margins and zones are shares of the code length b.

What differs from the papers:
- All pairs of a batch count, in the mean instead of the sum. Half of the bits is the margin of DSH,
  as m = 2b says for squared distances. Eq. 19 and 24 print |b - 1|; we read ||b| - 1|, as in the
  paper on DSH.
- Dispersed codes are tanh with a growing slope. On raw outputs a pair can be half a bit apart in
  every bit and still share its code: the zone was met without any code being spread. The margin is
  a third of the bits: the paper's m = 2b is all of them for distances of the first norm, and half
  of them leaves no room for the zones of ten classes.
- Zones at 12 bits are one and a half times the paper's, whose r = b/6 and R = b/3 of the first norm
  are a twelfth and a sixth of the bits, and grow with the root of b instead of b.

.. [1] H. Liu, R. Wang, S. Shan and X. Chen, "Deep supervised hashing for fast image retrieval",
   CVPR 2016.
.. [2] P. L. K. Ding, Y. Li and B. Li, "Mean local group average precision (mLGAP): a new
   performance metric for hashing-based retrieval", 2018. Equations are numbered as there.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods.deep.pairs import mask_pairs, select_bits, weighted_mean
from rankbits.methods.parameters.fields import auto, integer, is_auto, number, parameter
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.estimator import GradientHasher
from rankbits.methods.training.recipes import RECIPES, Recipes

Zone = tuple[float, float]
_ONE_ZONE = ((1 / 8, 1 / 4),)  # of 12 bits; longer codes have wider zones by the root of b
_TWO_ZONES = ((1 / 16, 1 / 8), (1 / 8, 1 / 4))
_SLOPES = {"alpha": 1.0, "alpha_end": 8.0}
_MLP = {"dropout": 0.0, "input_dropout": 0.0, "batch_size": 256}


class DshLoss(nn.Module):
    """Eq. 16: mean over pairs of d if similar, max(0, m b - d) if not, plus q |‖f| - 1| a row.

    A pair is similar from a level on; d = ‖f_i - f_j‖² / 4.
    """

    def __init__(self, margin: float, quantization: float, least_level: int = 1) -> None:
        super().__init__()
        self.margin, self.quantization = margin, quantization
        self.least_level = least_level

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        others = logits if batch.gallery is None else batch.gallery
        apart = _squared_bits(logits, others)
        similar = batch.levels >= self.least_level
        terms = torch.where(similar, apart, _below(apart, self.margin * logits.shape[1]))
        loss = weighted_mean(terms, mask_pairs(logits, batch.gallery, batch.own))
        return loss + self.quantization * _off_unit(select_bits(logits, others, batch))


class DispersedLoss(nn.Module):
    """Eq. 20 and 25: zones for similar pairs, a margin for the others, codes near ±1.

    Mean over pairs of sum_i max(0, r_i b - d) + max(0, d - R_i b) over the zones [r_i, R_i] of the
    pair's level and of lower levels, or of max(0, m b - d) at level 0; plus q |‖φ| - 1| a row.
    `cuts` has the lowest level of each zone; d = ‖φ_i - φ_j‖₁ / 2, φ = tanh(α f).
    """

    def __init__(
        self, zones: Sequence[Zone], cuts: Sequence[int], margin: float, quantization: float
    ) -> None:
        super().__init__()
        self.zones, self.cuts = tuple(zones), tuple(cuts)
        self.margin, self.quantization = margin, quantization

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        phi, n_bits = torch.tanh(batch.query_alpha * logits), logits.shape[1]
        others = phi if batch.gallery is None else torch.tanh(batch.alpha * batch.gallery)
        apart = torch.cdist(phi, others, p=1) / 2
        terms = _below(apart, self.margin * n_bits) * (batch.levels == 0)
        for (low, high), cut in zip(self.zones, self.cuts, strict=True):
            outside = _below(apart, low * n_bits) + torch.relu(apart - high * n_bits)
            terms = terms + outside * (batch.levels >= cut)
        loss = weighted_mean(terms, mask_pairs(phi, batch.gallery, batch.own))
        return loss + self.quantization * _off_unit(select_bits(phi, others, batch))


def _squared_bits(u: Tensor, v: Tensor) -> Tensor:
    squares = (u * u).sum(1, keepdim=True) + (v * v).sum(1) - 2 * u @ v.T
    return torch.relu(squares) / 4


def _below(apart: Tensor, limit: float) -> Tensor:
    return torch.relu(limit - apart)


def _off_unit(codes: Tensor) -> Tensor:
    """Mean over rows of the sum over bits of the distance to the nearer of -1 and +1."""
    return (codes.abs() - 1).abs().sum(1).mean()


def _share(name: str, value: Any) -> float:
    if not _is_number(value) or not 0 < value <= 1:
        raise InputError(
            f"{name} must be a share of the bits, above 0 and at most 1, got "
            f"{_check.describe(value)}"
        )
    return float(value)


def _zones(name: str, value: Any) -> tuple[Zone, ...]:
    if not isinstance(value, list | tuple) or len(value) == 0:
        raise InputError(
            f"{name} must be 'auto' or a list of pairs (from, to), got {_check.describe(value)}"
        )
    for zone in value:
        is_pair = isinstance(zone, list | tuple) and len(zone) == 2 and all(map(_is_number, zone))
        if not is_pair or not 0 <= zone[0] <= zone[1] <= 1:
            raise InputError(
                f"{name} must be pairs (from, to) of shares of the bits, 0 <= from <= to <= 1, got "
                f"{_check.describe(zone)}"
            )
    return tuple((float(low), float(high)) for low, high in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class DSH(GradientHasher):
    """Deep supervised hashing: a contrastive loss of pairs, on any encoder [1]_.

    Similar pairs are drawn together, dissimilar ones pushed apart. y may be of any kind; a pair is
    similar or not, and its level does not count otherwise.

    Parameters
    ----------
    margin : float, default=0.5
        Share of the bits in which dissimilar pairs should differ.
    quantization : float, default=0.01
        Weight of the distance of the outputs from ±1.
    least_level : int, default=1
        The smallest level of a pair that is similar.

    References
    ----------
    .. [1] H. Liu, R. Wang, S. Shan and X. Chen, "Deep supervised hashing for fast image retrieval",
       CVPR 2016.
    """

    margin: float = parameter(0.5, _share)
    quantization: float = parameter(0.01, number())
    least_level: int = parameter(1, integer(1))

    _recipes: ClassVar[Recipes] = {"mlp": _MLP}

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        _check.whole("least_level", self.least_level, 1, int(supervision.values[-1]))
        return DshLoss(self.margin, self.quantization, self.least_level)


class DispersedDSH(GradientHasher):
    """DSH with zones: a class spreads over the codes near its center [1]_.

    y may be of any kind. With one level above 0, as classes give, similar pairs have one zone of
    distances (Eq. 20); with more, there is a narrow zone for the highest level and a wide one for
    all of them (Eq. 25).

    Parameters
    ----------
    zones : list of (float, float), default="auto"
        Shares of the bits (from, to) in which similar pairs should differ, the zone of the highest
        level first; the last one serves all lower levels too. The default is (1/8, 1/4), or
        (1/16, 1/8) and (1/8, 1/4), times √(12 / n_bits): balls grow so fast with the code length
        that zones of the same shares would leave most codes empty.
    margin : float, default=1/3
        Share of the bits in which dissimilar pairs should differ.
    quantization : float, default=0.01
        Weight of the distance of the relaxed codes from ±1.

    References
    ----------
    .. [1] P. L. K. Ding, Y. Li and B. Li, "Mean local group average precision (mLGAP): a new
       performance metric for hashing-based retrieval", 2018.
    """

    zones: Sequence[Zone] = auto(_zones)
    margin: float = parameter(1 / 3, _share)
    quantization: float = parameter(0.01, number())

    _recipes: ClassVar[Recipes] = {
        key: {**_SLOPES, **(_MLP if key == "mlp" else {})} for key in RECIPES
    }

    def _build_loss(self, supervision: Supervision) -> nn.Module:
        levels = sorted((int(v) for v in supervision.values if v > 0), reverse=True)
        zones = self._choose_zones(len(levels))
        lowest_levels = [*levels[: len(zones) - 1], levels[-1]]
        return DispersedLoss(zones, lowest_levels, self.margin, self.quantization)

    def _choose_zones(self, n_levels: int) -> Sequence[Zone]:
        if is_auto(self.zones):
            scale = math.sqrt(12 / self.n_bits)
            zones = _ONE_ZONE if n_levels == 1 else _TWO_ZONES
            return [(scale * low, scale * high) for low, high in zones]
        if len(self.zones) > n_levels:
            raise InputError(
                f"zones must be 'auto' or a list of 1 to {n_levels} pairs (from, to), at most one "
                f"for each level of y, got {len(self.zones)} pairs"
            )
        return _zones("zones", self.zones)
