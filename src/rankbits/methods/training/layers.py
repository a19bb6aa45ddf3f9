"""The layers that an encoder learns from data before any gradient: scales and anchors.

What they learn lies in buffers, so that it is saved with the weights and no optimizer touches it.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rankbits.methods.training import parallel

_BLOCK_CELLS = 1 << 22
_FLOOR = -8.0  # smallest log-probability: below it, differences mean nothing
_CLASSIFIER_DROPOUT = 0.3


class DataLayer(nn.Module):
    """A layer that learns from rows before any gradient, in a method `learn`."""


def settled_buffers(module: nn.Module) -> dict[str, Tensor]:
    """What the layers of a module have learned before any gradient, by name."""
    return {
        f"{layer_name}.{name}": buffer
        for layer_name, layer in module.named_modules()
        if isinstance(layer, DataLayer)
        for name, buffer in layer.named_buffers(recurse=False)
    }


class Standardize(DataLayer):
    """(x - mean) / scale along the last axis: features of vectors, channels of images.

    A feature that never varies gets scale 1, so that it becomes 0 on the training rows. A common
    scale, the root of the mean variance, keeps the ratios of distances between rows.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def learn(self, rows: Tensor, scaling: str = "each") -> np.ndarray:
        """Take mean and scale from the rows; returns which features are constant."""
        mean = torch.stack([_flat(block).sum(0) for block in _blocks(rows)]).sum(0)
        n = rows.numel() // rows.shape[-1]
        mean = mean / n
        squares = [((_flat(block) - mean) ** 2).sum(0) for block in _blocks(rows)]
        scale = (torch.stack(squares).sum(0) / n).sqrt()
        highest = torch.stack([_flat(block).amax(0) for block in _blocks(rows)]).amax(0)
        lowest = torch.stack([_flat(block).amin(0) for block in _blocks(rows)]).amin(0)
        constant = (highest == lowest) | (scale.float() == 0)
        self.mean.copy_(torch.where(constant, lowest, mean))
        if scaling == "common" and not constant.all():
            scale = (scale[~constant] ** 2).mean().sqrt().expand_as(scale)
        self.scale.copy_(torch.where(constant, torch.ones_like(scale), scale))
        return np.flatnonzero(constant.cpu().numpy())

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.scale


class RbfFeatures(DataLayer):
    """Kernel features exp(-|x - a|² / 2w²) of the anchors a; 1 / 2w² is the gamma of kernels.py."""

    anchors: Tensor
    width: Tensor

    def __init__(self, n_features: int, n_anchors: int) -> None:
        super().__init__()
        self.register_buffer("anchors", torch.zeros(n_anchors, n_features))
        self.register_buffer("width", torch.ones(()))

    def learn(self, rows: Tensor, rng: np.random.Generator) -> None:
        """Draw anchors among the rows without repeats, and measure the width on a sample."""
        from rankbits.methods.shallow.shared.kernels import (
            median_gamma,
        )  # only fitting needs SciPy's part

        chosen = rng.choice(len(rows), len(self.anchors), replace=False)
        self.anchors.copy_(rows[torch.from_numpy(chosen)])
        gamma = median_gamma(rows.numpy(), self.anchors.cpu().numpy(), rng)
        self.width.fill_(1 / math.sqrt(2 * gamma))

    def forward(self, x: Tensor) -> Tensor:
        squares = (x**2).sum(1, keepdim=True) + (self.anchors**2).sum(1) - 2 * x @ self.anchors.T
        return torch.exp(-squares.clamp(min=0) / (2 * self.width**2))


class Dropout(nn.Module):
    """Zero a share of the values in training and scale the others up.

    On the processor drawing the mask costs more than the layer it masks, so eight values share one
    64-bit draw; the share is a multiple of 1/256.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self._cut = min(round(share * 256), 255)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self._cut == 0:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.share)
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        is_on = words.view(torch.uint8)[: x.numel()].reshape(x.shape) >= self._cut
        return x * (is_on * (256 / (256 - self._cut)))


class Posterior(nn.Module):
    """Log-probabilities and probabilities of the classes, from the members' mean logits."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def logits(self, rows: Tensor) -> Tensor:
        """Logits (n, K, C) of rows as the members read them."""
        return torch.stack([member(rows) for member in self.members], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.logits(x).mean(1)
        return class_beliefs(logits)


class ClassPosterior(Posterior):
    """Small classifiers of vectors, which they read scaled to norm sqrt(d)."""

    def __init__(self, n_features: int, n_classes: int, width: int, n_members: int) -> None:
        super().__init__([_classifier(n_features, n_classes, width) for _ in range(n_members)])

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(scale_to_one_norm(x))


def scale_to_one_norm(x: Tensor) -> Tensor:
    """Rows scaled to norm sqrt(d): 1 a feature, in the mean of squares."""
    length: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x * (math.sqrt(x.shape[1]) / length.clamp(min=1e-6))


def class_beliefs(logits: Tensor) -> Tensor:
    """Log-probabilities, at least -8, and probabilities side by side: (n, 2 C)."""
    log = functional.log_softmax(logits, dim=1).clamp(min=_FLOOR)
    return torch.cat([log, log.exp()], dim=1)


def _classifier(n_features: int, n_classes: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_features, width),
        nn.LayerNorm(width),
        nn.GELU(),
        Dropout(_CLASSIFIER_DROPOUT),
        nn.Linear(width, n_classes),
    )


class _SharedStatistics:
    """Batch normalization over all processes' parts of a batch, as if it were in one place."""

    def _normalize(self, x: Tensor) -> Tensor:
        assert isinstance(self, nn.modules.batchnorm._BatchNorm)  # noqa: S101
        x = x.to(self.weight.dtype)  # in mixed precision a sum over a batch would be rounded
        axes = [axis for axis in range(x.dim()) if axis != 1]
        n = parallel.total(torch.tensor(float(x.numel() // x.shape[1]), dtype=torch.float64))
        shape = [1, -1] + [1] * (x.dim() - 2)
        mean = parallel.summed(x.sum(axes)) / n.item()
        centered = x - mean.reshape(shape)
        variance = parallel.summed((centered**2).sum(axes)) / n.item()
        with torch.no_grad():
            assert self.num_batches_tracked is not None  # noqa: S101
            self.num_batches_tracked += 1
            share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            assert self.running_mean is not None  # noqa: S101
            assert self.running_var is not None  # noqa: S101
            self.running_mean.lerp_(mean.detach(), share)
            self.running_var.lerp_(variance.detach() * (n.item() / max(n.item() - 1, 1)), share)
        scaled = centered * (variance + self.eps).rsqrt().reshape(shape)
        return scaled * self.weight.reshape(shape) + self.bias.reshape(shape)


class BatchNorm1d(nn.BatchNorm1d, _SharedStatistics):
    """Batch normalization of vectors; a training batch of one row uses the running statistics."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and parallel.world_size() > 1:
            return self._normalize(x)
        if self.training and len(x) == 1:  # one row has no variance
            return functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


class BatchNorm2d(nn.BatchNorm2d, _SharedStatistics):
    """Batch normalization of feature maps."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and parallel.world_size() > 1:
            return self._normalize(x)
        return super().forward(x)


def _flat(block: Tensor) -> Tensor:
    return block.reshape(-1, block.shape[-1]).double()


def _blocks(rows: Tensor) -> list[Tensor]:
    step = max(1, _BLOCK_CELLS // max(1, rows[0].numel()))
    return [rows[start : start + step] for start in range(0, len(rows), step)]
