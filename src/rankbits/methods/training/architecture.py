"""The architecture of an encoder: numbers and words, from which it is rebuilt without pickle."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankbits.errors import InputError


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
