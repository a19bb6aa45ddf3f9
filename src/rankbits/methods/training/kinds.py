"""Kinds of encoders, in one table: how each is built, what it takes, and how a fit treats it.

A module names the class of a kind, which is imported when the kind is first used; so a fit on
vectors loads nothing that knows pictures. The class has a constructor (architecture, n inputs or
channels, n outputs) and a static method `check`, which refuses rows and sizes that do not suit it.

The recipe of a kind is an entry in `recipes.RECIPES`. The rest of a fit, saving, loading and export
know a kind by what the table says of it. What stands before the head of an encoder, and what is
trained before the bits, is a matter of its reader: see `examples`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from rankbits import _check
from rankbits.codes import MAX_BITS
from rankbits.errors import InputError
from rankbits.methods.training.parameters import (
    ACTIVATIONS,
    MOST_LAYERS,
    MOST_NETWORKS,
    MOST_PIXELS,
    NORMALIZATIONS,
    check_fine_tune,
)


@dataclass(frozen=True)
class Architecture:
    """All that is needed to build an encoder, apart from its weights."""

    kind: str  # of the head, one of `kinds.KINDS`
    input_shape: tuple[int, ...]  # of one row as the head sees it: (features,) or (H, W, channels)
    n_bits: int
    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    normalization: str = "batch"
    dropout: float = 0.0
    input_dropout: float = 0.0
    skip: bool = False  # a linear map beside the hidden layers
    n_anchors: int = 0  # RBF features in front of linear or mlp; 0 for none
    backbone: str = ""  # name of the pretrained network, "module" for the user's own, "" for none
    image_size: int = 0  # to which the backbone resizes images
    fine_tune: str = ""  # what of the backbone learned the classes: "all", "last:N", "" for nothing
    posterior: int = 0  # number of classifiers whose posterior the body reads; 0 for none
    n_classes: int = 0
    posterior_width: int = 0  # hidden values of a classifier
    geometry_bits: int = 0  # how many of the bits keep the geometry of the rows

    @property
    def trained_bits(self) -> int:
        """How many of the bits a loss trains."""
        return self.n_bits - self.geometry_bits

    def to_json(self) -> dict[str, Any]:
        """The architecture as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "Architecture":
        """The architecture that `to_json` wrote."""
        try:
            shapes = {name: tuple(values[name]) for name in ("input_shape", "hidden")}
            return Architecture(**{**values, **shapes})
        except (KeyError, TypeError) as error:
            raise InputError(
                f"the architecture of the encoder is not one that this version knows: {error}"
            ) from None


BACKBONE = "backbone"  # an encoder whose head is of a kind below
_READERS = {
    "rows": ("training.examples", "RowReader"),
    "images": ("vision.readers", "PictureReader"),
    "classes": ("vision.readers", "NetworkReader"),
    BACKBONE: ("vision.backbone_readers", "BackboneReader"),
}
_BACKBONE_ENCODER = ("vision.backbone_encoder", "BackboneEncoder")


@dataclass(frozen=True)
class EncoderKind:
    """What is to be known of a kind of encoder."""

    module: str  # within `rankbits.methods`
    class_name: str
    block: int = 4096  # rows that are encoded at a time
    reads_images: bool = False
    learns_classes: bool = False  # by itself, before the bits, which then read what it believes

    @property
    def network(self) -> Any:
        """The class of its network."""
        return _find(self.module, self.class_name)


KINDS = {
    "linear": EncoderKind("training.mlp", "Mlp"),
    "mlp": EncoderKind("training.mlp", "Mlp"),
    "cnn": EncoderKind("vision.cnn", "Cnn", block=256, reads_images=True),
    "resnet": EncoderKind(
        "vision.resnet", "ResNet", block=256, reads_images=True, learns_classes=True
    ),
}


def reader_class(kind: str) -> Any:
    """The class that reads rows for an encoder of that kind, or for a backbone with a head."""
    if kind != BACKBONE:
        known = KINDS[kind]
        kind = "classes" if known.learns_classes else "images" if known.reads_images else "rows"
    return _find(*_READERS[kind])


def backbone_encoder_class() -> Any:
    """The class of encoders with a backbone before the head."""
    return _find(*_BACKBONE_ENCODER)


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
    kind.network.check(a)


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


def _find(module: str, name: str) -> Any:
    """A class of a module within `rankbits.methods`, imported now if it was not."""
    return getattr(import_module(f"rankbits.methods.{module}"), name)
