"""The kinds of encoders. A new one is a file with its network and an entry in the table below.

Its recipe is an entry in `recipes.RECIPES`. The rest of a fit, saving, loading and export know a
kind by what the table says of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from rankbits import _check
from rankbits.codes import MAX_BITS
from rankbits.methods.training import cnn, mlp, resnet
from rankbits.methods.training.architecture import Architecture
from rankbits.methods.training.parameters import (
    ACTIVATIONS,
    MOST_LAYERS,
    MOST_NETWORKS,
    MOST_PIXELS,
    NORMALIZATIONS,
    check_fine_tune,
)


@dataclass(frozen=True)
class EncoderKind:
    """What is to be known of a kind of encoder."""

    build: Callable[[Architecture, int, int], nn.Module]  # of n inputs or channels and n outputs
    check: Callable[[Architecture], None]  # refuses rows and sizes that do not suit it
    block: int = 4096  # rows that are encoded at a time
    reads_images: bool = False
    learns_classes: bool = False  # by itself, before the bits, which then read what it believes


KINDS = {
    "linear": EncoderKind(mlp.Mlp, mlp.check_vectors),
    "mlp": EncoderKind(mlp.Mlp, mlp.check_vectors),
    "cnn": EncoderKind(cnn.Cnn, cnn.check_images, block=256, reads_images=True),
    "resnet": EncoderKind(
        resnet.ResNet, resnet.check_pictures, block=256, reads_images=True, learns_classes=True
    ),
}


def check_architecture(architecture: Architecture) -> None:
    """Refuse an encoder that cannot be built."""
    a = architecture
    kind = KINDS[_check.choice("encoder", a.kind, tuple(KINDS))]
    _check_sizes(a)
    _check.choice("activation", a.activation, ACTIVATIONS)
    _check.choice("normalization", a.normalization, NORMALIZATIONS)
    _check.number("dropout", a.dropout, 0.0, 1.0)
    _check.number("input_dropout", a.input_dropout, 0.0, 1.0)
    _check.whole("posterior", a.posterior, 0, MOST_NETWORKS)
    if a.fine_tune:
        check_fine_tune("fine_tune", a.fine_tune)
    kind.check(a)


def _check_sizes(a: Architecture) -> None:
    """Refuse counts and sizes that no encoder has; those that are 0 stand for what is absent."""
    _check.whole("n_bits", a.n_bits, 1, MAX_BITS)
    _check.whole("geometry_bits", a.geometry_bits, 0, a.n_bits - 1)
    _check.whole("number of hidden layers", len(a.hidden), 0, MOST_LAYERS)
    for name in ("hidden", "input_shape"):
        for size in getattr(a, name):
            _check.whole(name, size, 1)
    has_classifiers = a.posterior and not a.fine_tune and not KINDS[a.kind].learns_classes
    _check.whole("n_anchors", a.n_anchors, 0)
    _check.whole("n_classes", a.n_classes, 1 if a.posterior else 0)
    _check.whole("posterior_width", a.posterior_width, 1 if has_classifiers else 0)
    _check.whole("image_size", a.image_size, 0, MOST_PIXELS)
    _check.flag("skip", a.skip)
