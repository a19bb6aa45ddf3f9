"""The architecture of an encoder: numbers and words, from which it is rebuilt without pickle."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods.training.parameters import ACTIVATIONS, NORMALIZATIONS

KINDS = ("linear", "mlp", "cnn")
CNN_WIDTHS = (32, 64, 128)
_FORMER_NAMES = {
    "normalisation": "normalization",
    "trunk": "backbone",
    "n_members": "posterior",
    "width": "posterior_width",
}


@dataclass(frozen=True)
class Architecture:
    """All that is needed to build an encoder, apart from its weights."""

    kind: str  # of the head: linear, mlp or cnn
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
        """The architecture that `to_json` wrote, in this version or under former names."""
        values = {_FORMER_NAMES.get(name, name): value for name, value in values.items()}
        try:
            shapes = {name: tuple(values[name]) for name in ("input_shape", "hidden")}
            return Architecture(**{**values, **shapes})
        except (KeyError, TypeError) as error:
            raise InputError(
                f"the architecture of the encoder is not one that this version knows: {error}"
            ) from None


def check_architecture(architecture: Architecture) -> None:
    """Refuse an encoder that cannot be built."""
    a = architecture
    _check.choice("encoder", a.kind, KINDS)
    _check.choice("activation", a.activation, ACTIVATIONS)
    _check.choice("normalization", a.normalization, NORMALIZATIONS)
    _check.number("dropout", a.dropout, 0.0, 1.0)
    _check.number("input_dropout", a.input_dropout, 0.0, 1.0)
    for size in a.hidden:
        _check.whole("hidden", size, 1)
    _check_cnn(a) if a.kind == "cnn" else _check_vectors(a)


def _check_vectors(a: Architecture) -> None:
    if len(a.input_shape) != 1:
        raise InputError(
            f"X must have shape (n, features) for encoder {a.kind!r}, got rows of shape "
            f"{a.input_shape}; images go to encoder='cnn' or 'backbone'"
        )


def _check_cnn(a: Architecture) -> None:
    n_stages = len(a.hidden or CNN_WIDTHS)
    if len(a.input_shape) != 3 or min(a.input_shape[:2]) < 2**n_stages:
        raise InputError(
            "X must have shape (n, height, width, channels) for encoder 'cnn', with at least "
            f"{2**n_stages} pixels a side, got rows of shape {a.input_shape}"
        )
    if a.n_anchors:
        raise InputError("kernel must be None for encoder 'cnn': anchors are feature vectors")
