"""Additive codes as a torch module, for export to ONNX: the search of `codes.sums`, step by step.

One step of a loop looks at one codebook of all rows. The steps of a restart first set the entries
that it changes, then go through the codebooks sweep after sweep, and in the end keep the better of
the code that was found and the best so far. A sweep that changes nothing is gone through all the
same.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch._higher_order_ops import scan

from rankbits.codes.sums import N_ENTRIES, SumSearch
from rankbits.methods.onnx_modules import UnitRows, scale_to_units
from rankbits.methods.shallow.additive.class_features import POSTERIOR_WEIGHT, ClassFeatures

# Of the code that is tried: entries (n, m), pull (n, 16 m) as of the kernel, share (n, 1). Then the
# same of the best code, and its error (n, 1).
_State = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def list_steps(search: SumSearch, n_books: int) -> np.ndarray:
    """The steps (steps, 3): codebook, entry to set or -1, and 1 for the last of a restart."""
    sweeps = [(book, -1, 0) for _ in range(search.n_sweeps) for book in range(n_books)]
    steps: list[tuple[int, int, int]] = []
    for changes in (np.empty((0, 2), int), *search.changes.astype(int)):
        steps += [(book, entry, 0) for book, entry in changes.tolist()] + sweeps
        steps[-1] = (*steps[-1][:2], 1)
    return np.array(steps)


class ClassRows(nn.Module):
    """Rows as ClassFeatures has them, on top of rows at length 1."""

    def __init__(self, units: UnitRows, features: ClassFeatures, side: str) -> None:
        super().__init__()
        self.units, self.is_query = units, side == "of_queries"
        self.n_classes, self.query_gain = features.n_classes, features.query_gain
        for name, array in vars(features).items():
            self.register_buffer(name, torch.tensor(array, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Likeness and class posterior of rows, side by side."""
        x = self.units(x) - self.get_buffer("center")
        likeness = scale_to_units(x @ self.get_buffer("metric"))
        hidden = torch.einsum("nd,kdh->knh", x, self.get_buffer("hidden"))
        hidden = torch.relu(hidden + self.get_buffer("hidden_offsets")[:, None])
        logits = torch.bmm(hidden, self.get_buffer("outputs"))
        logits = logits + self.get_buffer("output_offsets")[:, None]
        chances = torch.softmax(logits, dim=2).mean(dim=0)[:, : self.n_classes]
        if self.is_query:
            chances = chances * self.query_gain * (chances**2).sum(dim=1, keepdim=True)
        return torch.cat([likeness, math.sqrt(POSTERIOR_WEIGHT) * chances], dim=1)


class SearchedSums(nn.Module):
    """Logits of additive codes, as in Additive: the bits, times the size of their margins."""

    def __init__(
        self, units: UnitRows | ClassRows, vectors: np.ndarray, search: SumSearch, n_bits: int
    ) -> None:
        super().__init__()
        self.units, self.along, self.n_bits = units, search.along, n_bits
        self.n_books = len(vectors) // N_ENTRIES
        values = np.arange(N_ENTRIES)[:, None] >> np.array([3, 2, 1, 0]) & 1
        buffers = {"vectors": vectors, "products": search.products, "values": values}
        for name, array in buffers.items():
            self.register_buffer(name, torch.tensor(array, dtype=torch.float64))
        self.register_buffer("steps", torch.tensor(list_steps(search, self.n_books)))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of rows."""
        products = self.get_buffer("products")
        units = self.units(x)
        shares = units @ self.get_buffer("vectors").T
        square = (units**2).sum(dim=1, keepdim=True)
        zeros = torch.zeros_like(square)
        entries = zeros.long() + torch.zeros(self.n_books, dtype=torch.int64)
        pull = zeros + products[::N_ENTRIES].sum(dim=0)
        share = shares[:, ::N_ENTRIES].sum(dim=1, keepdim=True)
        infinite = torch.full_like(square, float("inf"))
        start = (entries, pull, share, entries.clone(), pull.clone(), share.clone(), infinite)

        def step(state: _State, row: Tensor) -> tuple[_State, Tensor]:
            tried = self._change(state, row, shares, square)
            after = self._compare((*tried, *state[3:]), row, square)
            return after, after[6].sum()

        after: _State
        after, _ = scan(step, start, self.get_buffer("steps"))
        return self._measure(after[3], shares, square)

    def _change(
        self, state: _State, row: Tensor, shares: Tensor, square: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The tried code after its entry of a codebook is set, or chosen anew."""
        entries, pull, share = state[:3]
        products, book = self.get_buffer("products"), row[0:1]
        columns = N_ENTRIES * book + torch.arange(N_ENTRIES)
        rows = products.index_select(0, columns)  # of the vectors of the codebook
        block, of_row = rows.index_select(1, columns), shares.index_select(1, columns)
        current = entries.index_select(1, book)
        own = block.index_select(0, current[:, 0])
        rest = square - (share - of_row.gather(1, current))
        others = pull.index_select(1, columns) - own
        errors = (
            block.diagonal().clone() + 2 * (others - of_row) + self.along * (rest - of_row) ** 2
        )
        chosen = errors.argmin(dim=1, keepdim=True)
        entry = torch.where(row[1] >= 0, row[1] + torch.zeros_like(chosen), chosen)
        share = share + (of_row.gather(1, entry) - of_row.gather(1, current))
        before, after = (rows.index_select(0, which[:, 0]) for which in (current, entry))
        is_here = torch.arange(self.n_books) == book
        return torch.where(is_here, entry, entries), pull + (after - before), share

    def _compare(self, state: _State, row: Tensor, square: Tensor) -> _State:
        """After the last step of a restart, the better code is the best, and is tried next."""
        *tried, least = (*state[:3], state[6])
        entries, pull, share = tried
        named = N_ENTRIES * torch.arange(self.n_books) + entries
        length = pull.gather(1, named).sum(dim=1, keepdim=True)
        error = length - 2 * share + self.along * (square - share) ** 2
        is_better, is_last = (error < least) & (row[2] > 0), row[2] > 0
        best = [torch.where(is_better, *pair) for pair in zip(tried, state[3:6], strict=True)]
        nexts = [torch.where(is_last, *pair) for pair in zip(best, tried, strict=True)]
        return (*nexts, *best, torch.where(is_better, error, least))  # type: ignore[return-value]

    def _measure(self, entries: Tensor, shares: Tensor, square: Tensor) -> Tensor:
        """The bits of the best codes as -1 and +1, times the margins of `measure_margins`."""
        products, values = self.get_buffer("products"), self.get_buffer("values")
        shape = (-1, self.n_books, N_ENTRIES)
        blocks = products.reshape(self.n_books, N_ENTRIES, self.n_books, N_ENTRIES)
        own = blocks.diagonal(dim1=0, dim2=2).permute(2, 0, 1).clone()  # (m, 16, 16)
        named = nn.functional.one_hot(entries, N_ENTRIES).double()
        pull = (named.reshape(-1, len(products)) @ products).reshape(shape)
        others = pull - torch.einsum("nmk,mkj->nmj", named, own)
        shares = shares.reshape(shape)
        share = (named * shares).sum(dim=2, keepdim=True)
        left = square[:, :, None] - share.sum(dim=1, keepdim=True) + share - shares
        errors = own.diagonal(dim1=1, dim2=2) + 2 * (others - shares) + self.along * left**2
        infinite = torch.full_like(errors, float("inf"))[..., None]
        if_set = torch.where(values > 0, errors[..., None], infinite).amin(dim=2)
        if_clear = torch.where(values > 0, infinite, errors[..., None]).amin(dim=2)
        logits = (2 * (named @ values) - 1) * (if_clear - if_set).abs()
        return logits.reshape(-1, 4 * self.n_books)[:, : self.n_bits]
