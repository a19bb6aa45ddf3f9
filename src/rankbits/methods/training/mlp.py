"""Encoders of vectors: one hyperplane for each bit, or hidden layers before them."""

from itertools import pairwise

from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.layers import BatchNorm1d, Dropout

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


class Mlp(nn.Module):
    """Hidden layers and a linear output, with a linear map beside them if there is a skip."""

    def __init__(self, a: Architecture, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.input_dropout = Dropout(a.input_dropout)
        layers: list[nn.Module] = []
        sizes = (n_inputs, *(a.hidden if a.kind == "mlp" else ()))
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), *_build_normalization(a.normalization, after)]
            layers += [ACTIVATIONS[a.activation](), Dropout(a.dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))
        has_skip = a.skip and len(sizes) > 1
        self.skip = nn.Linear(n_inputs, n_outputs, bias=False) if has_skip else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.input_dropout(x)
        logits: Tensor = self.layers(x)
        return logits if self.skip is None else logits + self.skip(x)

    @staticmethod
    def check(a: Architecture) -> None:
        """Refuse rows that are not vectors."""
        if len(a.input_shape) != 1:
            raise InputError(
                f"X must have shape (n, features) for encoder {a.kind!r}, got rows of shape "
                f"{a.input_shape}; images go to encoder='cnn', 'resnet' or 'backbone'"
            )


def _build_normalization(name: str, size: int) -> list[nn.Module]:
    if name == "batch":
        return [BatchNorm1d(size)]
    return [nn.LayerNorm(size)] if name == "layer" else []
