"""An encoder with a backbone before its head: frozen, or trained with the bits."""

import copy
from collections.abc import Mapping

from torch import Tensor, nn

from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.layers import Posterior
from rankbits.methods.vision import backbones
from rankbits.methods.vision.backbones import keep_statistics, split_backbone
from rankbits.methods.vision.tuned_networks import NetworkLogits, rebuild_backbone


class BackboneEncoder(Encoder):
    """A backbone and a head; a frozen backbone stays in evaluation mode whatever happens.

    A backbone that is tuned keeps the statistics of its batch normalization, unless told otherwise:
    its weights were trained with them, and batches of other pictures have others. With `n_last` a
    training reaches its last blocks only.
    """

    def __init__(
        self,
        architecture: Architecture,
        backbone: nn.Module,
        *,
        keeps_statistics: bool = True,
        n_last: int | None = None,
        is_frozen: bool = False,
    ) -> None:
        super().__init__(architecture)
        self.keeps_statistics, self.n_last, self.is_frozen = keeps_statistics, n_last, is_frozen
        self.backbone = backbone
        self._modules = {"backbone": backbone, **self._modules}  # it comes first in files too
        if is_frozen:
            backbone.requires_grad_(False).eval()

    @classmethod
    def rebuild(
        cls, architecture: Architecture, weights: Mapping[str, Tensor]
    ) -> "BackboneEncoder":
        """The encoder that these weights are of, if they are."""
        return cls(architecture, rebuild_backbone(architecture, weights))

    @property
    def block(self) -> int:
        return backbones.BLOCK

    def build_alike(self) -> Encoder:
        if self.is_frozen:
            return BackboneEncoder(self.architecture, nn.Identity())  # its head reads features
        blocks = copy.deepcopy(self._select_blocks(self.backbone))
        return BackboneEncoder(self.architecture, blocks, keeps_statistics=self.keeps_statistics)

    def select_trained(self, fresh: Encoder) -> nn.Module:
        return fresh.head if self.is_frozen else fresh

    def join(self, part: Encoder) -> Encoder:
        if self.n_last is None:
            return part
        assert isinstance(part, BackboneEncoder)  # noqa: S101
        backbone = copy.deepcopy(self.backbone)
        self._select_blocks(backbone).load_state_dict(part.backbone.state_dict())
        encoder = copy.copy(self)  # shares everything else
        encoder._modules = {**self._modules, "head": part.head, "backbone": backbone}
        return encoder

    def train(self, mode: bool = True) -> "BackboneEncoder":
        super().train(mode)
        if self.is_frozen:
            self.backbone.eval()
        elif self.keeps_statistics:
            keep_statistics(self.backbone)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.backbone(x))

    def _select_blocks(self, backbone: nn.Module) -> nn.Module:
        """The last blocks of a backbone if only they are trained, else all of it."""
        return backbone if self.n_last is None else split_backbone(backbone, self.n_last)[1]

    def _build_posterior(self, a: Architecture, n_inputs: int) -> Posterior:
        if a.fine_tune:  # the networks stand before the head
            return Posterior([NetworkLogits(k, a.n_classes) for k in range(a.posterior)])
        return super()._build_posterior(a, n_inputs)
