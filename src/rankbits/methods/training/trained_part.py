"""The part of an encoder that gradients reach, and the encoder around it.

A frame is an encoder whose scales, anchors and classifiers are settled. A training draws fresh
weights for the rest, trains the part that is not settled, and puts it back into the frame: what
follows a class posterior, or what the frame selects, which is all of it unless there is a backbone.
"""

import copy
from collections import OrderedDict

from torch import nn

from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.initialization import Initialization
from rankbits.methods.training.layers import settled_buffers


def build_trained_part(frame: Encoder, initialization: Initialization) -> nn.Module:
    """The part to train, with fresh weights."""
    encoder = build_fresh_encoder(frame, initialization)
    if frame.architecture.posterior:
        parts = dict(encoder.head.named_children())
        return nn.Sequential(OrderedDict(rescale=parts["rescale"], body=parts["body"]))
    return frame.select_trained(encoder)


def build_fresh_encoder(frame: Encoder, initialization: Initialization) -> Encoder:
    """Fresh weights, drawn from torch's generator, around the scales and anchors of the frame."""
    encoder = frame.build_alike()
    encoder.head.load_state_dict(settled_buffers(frame.head), strict=False)
    initialization.apply(encoder.head)
    return encoder


def assemble_encoder(frame: Encoder, part: nn.Module) -> Encoder:
    """The encoder of raw rows around a trained part, in evaluation mode."""
    if isinstance(part, Encoder):
        return frame.join(part).eval()
    parts = {**dict(frame.head.named_children()), **dict(part.named_children())}
    encoder = copy.copy(frame)  # shares everything else with the frame
    encoder._modules = {**frame._modules, "head": nn.Sequential(OrderedDict(parts))}
    return encoder.eval()
