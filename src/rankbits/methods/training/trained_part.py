"""The part of an encoder that gradients reach, and the encoder around it.

A frame is an encoder whose scales, anchors, classifiers and backbone are settled. A training draws
fresh weights for the rest, trains the part that is not settled, and puts it back into the frame:

    encoder without backbone, or with one that is tuned    all of the encoder
    backbone whose last blocks are tuned                   these blocks and the head
    frozen backbone                                        its head
    class posterior                                        what follows the classifiers
"""

import copy
from collections import OrderedDict

from torch import Tensor, nn

from rankbits.methods.training.backbones import split_backbone
from rankbits.methods.training.encoders import Encoder, build_encoder
from rankbits.methods.training.initialization import Initialization
from rankbits.methods.training.layers import settled_buffers


def build_trained_part(
    frame: Encoder,
    initialization: Initialization,
    *,
    tune_statistics: bool = False,
    head_weights: dict[str, Tensor] | None = None,
) -> nn.Module:
    """The part to train, with fresh weights or those of a head that was trained before."""
    encoder = build_fresh_encoder(frame, initialization, tune_statistics=tune_statistics)
    if head_weights is not None:
        encoder.head.load_state_dict(head_weights)
    if frame.architecture.posterior:
        parts = dict(encoder.head.named_children())
        return nn.Sequential(OrderedDict(rescale=parts["rescale"], body=parts["body"]))
    has_frozen_backbone = frame.backbone is not None and encoder.backbone is None
    return encoder.head if has_frozen_backbone else encoder


def build_fresh_encoder(
    frame: Encoder, initialization: Initialization, *, tune_statistics: bool = False
) -> Encoder:
    """Fresh weights, drawn from torch's generator, around the scales and anchors of the frame."""
    backbone = None if frame.is_frozen else copy.deepcopy(_trained_backbone(frame))
    encoder = build_encoder(frame.architecture, backbone, keeps_statistics=not tune_statistics)
    encoder.head.load_state_dict(settled_buffers(frame.head), strict=False)
    initialization.apply(encoder.head)
    return encoder


def assemble_encoder(frame: Encoder, part: nn.Module) -> Encoder:
    """The encoder of raw rows around a trained part, in evaluation mode."""
    if isinstance(part, Encoder) and frame.n_last is None:
        return part.eval()
    modules: dict[str, nn.Module | None] = dict(frame._modules)
    if isinstance(part, Encoder):
        modules |= {"head": part.head, "backbone": _join_backbone(frame, part)}
    else:
        parts = {**dict(frame.head.named_children()), **dict(part.named_children())}
        modules["head"] = nn.Sequential(OrderedDict(parts))
    encoder = copy.copy(frame)  # shares everything else with the frame
    encoder._modules = modules
    return encoder.eval()


def _trained_backbone(frame: Encoder) -> nn.Module | None:
    """The backbone, or its last blocks if only they are trained."""
    if frame.backbone is None or frame.n_last is None:
        return frame.backbone
    return split_backbone(frame.backbone, frame.n_last)[1]


def _join_backbone(frame: Encoder, part: Encoder) -> nn.Module:
    """The frame's backbone with the last blocks of a trained part."""
    assert frame.n_last is not None  # noqa: S101
    assert part.backbone is not None  # noqa: S101
    backbone = copy.deepcopy(frame.backbone)
    assert backbone is not None  # noqa: S101
    split_backbone(backbone, frame.n_last)[1].load_state_dict(part.backbone.state_dict())
    return backbone
