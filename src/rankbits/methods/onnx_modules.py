"""The methods that are not trained by gradients as torch modules, for export to ONNX.

They compute in double precision, as the methods themselves do, so that the bits are the same.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch._higher_order_ops import scan

from rankbits.methods.shallow.shared.kernels import RbfAnchors
from rankbits.methods.shallow.shared.smoothing import GROUP_SHARE

if TYPE_CHECKING:
    from rankbits.methods.shallow.shared.anchor_graph import AnchorGraph
    from rankbits.methods.shallow.shared.smoothing import Smoothing


class Hyperplanes(nn.Module):
    """(x - mean) planes, as in LinearHasher."""

    def __init__(self, mean: np.ndarray, planes: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))
        self.register_buffer("planes", torch.tensor(planes, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        return (x.double() - self.get_buffer("mean")) @ self.get_buffer("planes")


class UnitRows(nn.Module):
    """Rows at length 1, drawn to their groups if there are any, as in UnitHasher."""

    def __init__(self, smoothing: "Smoothing | None") -> None:
        super().__init__()
        self.has_groups = smoothing is not None
        if smoothing is not None:
            self.temperature = smoothing.temperature
            self.register_buffer("centers", torch.tensor(smoothing.centers, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows as the method's maps read them."""
        x = scale_to_units(x.double())
        if not self.has_groups:
            return x
        centers = self.get_buffer("centers")
        groups = scale_to_units(torch.softmax(x @ centers.T / self.temperature, dim=1) @ centers)
        smooth = scale_to_units(GROUP_SHARE * groups + (1 - GROUP_SHARE) * x)
        return torch.where((x != 0).any(dim=1, keepdim=True), smooth, torch.zeros_like(x))


def scale_to_units(x: torch.Tensor) -> torch.Tensor:
    """Rows scaled to length 1; rows of zeros stay."""
    for size in (x.abs().amax(dim=1, keepdim=True), None):
        size = torch.sqrt((x**2).sum(dim=1, keepdim=True)) if size is None else size
        x = x / torch.where(size > 0, size, torch.ones_like(size))
    return x


class Planes(nn.Module):
    """u planes + offsets, u the rows that another module gives, as in Distilled."""

    def __init__(self, units: nn.Module, planes: np.ndarray, offsets: np.ndarray) -> None:
        super().__init__()
        self.units = units
        self.register_buffer("planes", torch.tensor(planes, dtype=torch.float64))
        self.register_buffer("offsets", torch.tensor(offsets, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        return self.project(self.units(x))

    def project(self, units: torch.Tensor) -> torch.Tensor:
        """Logits of rows at length 1."""
        return units @ self.get_buffer("planes") + self.get_buffer("offsets")


_State = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # pull, rest and codes


class DescendingRows(nn.Module):
    """Bits that are chosen together, as in Distilled: sweeps of `shallow.descent`, bit by bit."""

    def __init__(
        self, start: Planes, mean: np.ndarray, planes: np.ndarray, along: float, n_sweeps: int
    ) -> None:
        super().__init__()
        self.start, self.along, self.n_sweeps = start, along, n_sweeps
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))
        self.register_buffer("decoder", torch.tensor(planes, dtype=torch.float64))
        self.register_buffer("gram", torch.tensor(planes.T @ planes, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Bits of rows as signs, times the size of their margins."""
        mean, planes, gram = (self.get_buffer(name) for name in ("mean", "decoder", "gram"))
        x = self.start.units(x)
        codes = torch.where(self.start.project(x) > 0, 1.0, -1.0).double()
        shares = x @ planes
        own = gram.diagonal() + self.along * shares**2
        pull = shares - mean @ planes - codes @ gram
        rest = (x * (x - mean)).sum(dim=1, keepdim=True) - (shares * codes).sum(dim=1, keepdim=True)
        state = self._sweep(gram, shares, own, (pull, rest, codes))
        pull, rest, codes = state
        return codes * (pull + self.along * shares * rest + own * codes).abs()

    def _sweep(
        self, gram: torch.Tensor, shares: torch.Tensor, own: torch.Tensor, state: _State
    ) -> _State:
        """The sweeps, as one loop of the exported graph rather than a part of it for each bit."""

        def set_bit(state: _State, bit: torch.Tensor) -> tuple[_State, torch.Tensor]:
            (pull, rest, codes), (row, one) = state, bit.unbind(0)
            share, code = shares @ one[:, None], codes @ one[:, None]
            margin = pull @ one[:, None] + self.along * share * rest + (own @ one[:, None]) * code
            change = torch.where(margin > 0, 1.0, -1.0).double() - code
            after = pull - change * row, rest - change * share, codes + change * one
            return after, margin.sum()

        bits = torch.stack([gram, torch.eye(len(gram), dtype=gram.dtype)], dim=1)
        after: _State
        after, _ = scan(set_bit, state, bits.repeat(self.n_sweeps, 1, 1))
        return after


class Waves(nn.Module):
    """cos(angles) + thresholds, as in WaveHasher; the angles end at `last_angles` if these are set.

    `planes` maps rows to angles without their phases.
    """

    def __init__(self, planes: nn.Module, phases: np.ndarray, thresholds: np.ndarray) -> None:
        super().__init__()
        self.planes, self.is_clipped = planes, False
        self.register_buffer("phases", torch.tensor(phases, dtype=torch.float64))
        self.register_buffer("thresholds", torch.tensor(thresholds, dtype=torch.float64))

    def set_last_angles(self, last_angles: np.ndarray) -> None:
        """Take angles below 0 for 0, and those above the last ones for these."""
        self.is_clipped = True
        self.register_buffer("last_angles", torch.tensor(last_angles, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        angles = self.planes(x) + self.get_buffer("phases")
        if self.is_clipped:
            angles = torch.minimum(angles.clamp(min=0), self.get_buffer("last_angles"))
        return torch.cos(angles) + self.get_buffer("thresholds")


class Shifted(nn.Module):
    """The outputs of another module, plus a number for each, as in DensityHashing and MACHash."""

    def __init__(self, module: nn.Module, shifts: np.ndarray) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("shifts", torch.tensor(shifts, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        logits: torch.Tensor = self.module(x) + self.get_buffer("shifts")
        return logits


class Spheres(nn.Module):
    """Squared radii less squared distances from the centers, as in SpH."""

    def __init__(self, centers: np.ndarray, squared_radii: np.ndarray) -> None:
        super().__init__()
        points = torch.tensor(centers, dtype=torch.float64)
        self.register_buffer("centers", points)
        self.register_buffer("squares", (points**2).sum(dim=1))
        self.register_buffer("radii", torch.tensor(squared_radii, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        return self.get_buffer("radii") - squared_distances(x.double(), self, "centers")


class Symbols(nn.Module):
    """Margins of the bits of symbols, as in SymbolHasher; `values` maps rows to (n, S K)."""

    def __init__(self, values: nn.Module, table: np.ndarray, n_bits: int, least: float) -> None:
        super().__init__()
        self.values, self.n_bits, self.least = values, n_bits, least
        self.n_places, self.n_values = table.shape
        for place, has_bit in enumerate(table):
            self.register_buffer(f"with_{place}", torch.tensor(np.flatnonzero(has_bit)))
            self.register_buffer(f"without_{place}", torch.tensor(np.flatnonzero(~has_bit)))
            signs = np.where(has_bit, least, -least)
            self.register_buffer(f"if_equal_{place}", torch.tensor(signs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        values = self.values(x)
        values = values.reshape(values.shape[0], -1, self.n_values)
        largest = values.argmax(dim=2)
        logits = torch.stack(
            [self._margin(values, largest, place) for place in range(self.n_places)], dim=2
        )
        return logits.reshape(logits.shape[0], -1)[:, : self.n_bits]

    def _margin(self, values: torch.Tensor, largest: torch.Tensor, place: int) -> torch.Tensor:
        best, other = (
            values.index_select(2, self.get_buffer(f"{side}_{place}")).amax(dim=2)
            for side in ("with", "without")
        )
        if_equal = self.get_buffer(f"if_equal_{place}")[largest]
        return torch.where(best == other, if_equal, best - other)


def squared_distances(x: torch.Tensor, module: nn.Module, points: str) -> torch.Tensor:
    """Squared distances of rows from the points in a buffer; `squares` has the points' lengths."""
    lengths = (x**2).sum(dim=1, keepdim=True) + module.get_buffer("squares")
    return (lengths - 2 * x @ module.get_buffer(points).T).clamp(min=0)


class AnchorLayers(nn.Module):
    """Vectors of an anchor graph and their second bits, as in AGH."""

    def __init__(self, graph: "AnchorGraph", planes: np.ndarray, thresholds: np.ndarray) -> None:
        super().__init__()
        anchors = torch.tensor(graph.anchors, dtype=torch.float64)
        self.gamma, self.n_nearest = graph.gamma, graph.n_nearest
        self.n_second = len(thresholds) - planes.shape[1]
        self.register_buffer("anchors", anchors)
        self.register_buffer("squares", (anchors**2).sum(dim=1))
        self.register_buffer("planes", torch.tensor(planes, dtype=torch.float64))
        second = torch.tensor(thresholds[planes.shape[1] :], dtype=torch.float64)
        self.register_buffer("low", second[:, 0].contiguous())
        self.register_buffer("high", second[:, 1].contiguous())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        squares = squared_distances(x.double(), self, "anchors")
        nearest, places = torch.topk(squares, self.n_nearest, dim=1, largest=False)
        weights = torch.exp(-self.gamma * (nearest - nearest[:, :1]))
        weights = weights / weights.sum(dim=1, keepdim=True)
        values = (weights[:, :, None] * self.get_buffer("planes")[places]).sum(dim=1)
        if self.n_second == 0:
            return values
        second = values[:, : self.n_second]
        thresholds = torch.where(second > 0, self.get_buffer("high"), self.get_buffer("low"))
        return torch.cat([values, second.abs() - thresholds], dim=1)


class ChosenFeatures(nn.Module):
    """Some columns of x less their means, as in Sign."""

    def __init__(self, columns: np.ndarray, mean: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("columns", torch.tensor(columns, dtype=torch.int64))
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of rows."""
        chosen = x.index_select(1, self.get_buffer("columns"))
        return chosen.double() - self.get_buffer("mean")


class AnchorFeatures(nn.Module):
    """exp(-gamma |x - a|²), times the basis if there is one, as in RbfAnchors."""

    def __init__(self, anchors: RbfAnchors) -> None:
        super().__init__()
        rows = torch.tensor(anchors.rows, dtype=torch.float64)
        self.gamma, self.has_basis = anchors.gamma, anchors.basis is not None
        self.register_buffer("rows", rows)
        self.register_buffer("squares", (rows**2).sum(dim=1))
        if anchors.basis is not None:
            self.register_buffer("basis", torch.tensor(anchors.basis, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Features or coordinates of rows."""
        features = torch.exp(-self.gamma * squared_distances(x.double(), self, "rows"))
        return features @ self.get_buffer("basis") if self.has_basis else features
