"""A plain convolutional network for small images."""

from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.layers import BatchNorm2d, Dropout
from rankbits.methods.training.mlp import ACTIVATIONS

WIDTHS = (32, 64, 128)


class Cnn(nn.Module):
    """Stages of two 3 × 3 convolutions, halving the image after each, then the mean."""

    def __init__(self, a: Architecture, n_channels: int, n_outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = n_channels
        for width in a.hidden or WIDTHS:
            for size in (before, width):
                layers.append(nn.Conv2d(size, width, 3, padding=1, bias=False))
                layers += [BatchNorm2d(width), ACTIVATIONS[a.activation]()]
            layers.append(nn.MaxPool2d(2))
            before = width
        self.stages = nn.Sequential(*layers)
        self.dropout = Dropout(a.dropout)
        self.output = nn.Linear(before, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.stages(x.permute(0, 3, 1, 2))
        logits: Tensor = self.output(self.dropout(maps.mean((2, 3))))
        return logits

    @staticmethod
    def check(a: Architecture) -> None:
        """Refuse rows that are no images, or too small to be halved after every stage."""
        require_images(a, 2 ** len(a.hidden or WIDTHS))


def require_images(a: Architecture, fewest_pixels: int) -> None:
    """Refuse rows that are no images with so many pixels a side, and anchors among them."""
    if len(a.input_shape) != 3 or min(a.input_shape[:2]) < fewest_pixels:
        raise InputError(
            f"X must have shape (n, height, width, channels) for encoder {a.kind!r}, with at least "
            f"{fewest_pixels} pixels a side, got rows of shape {a.input_shape}"
        )
    if a.n_anchors:
        raise InputError(f"kernel must be None for encoder {a.kind!r}: anchors are feature vectors")
