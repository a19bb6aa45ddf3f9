"""What a loss may be: one that compares queries with items, or one that looks at rows alone.

A loss is a torch module with `forward(logits, batch) -> scalar`. Most losses compare: their logits
are those of the queries, and what the queries rank is in the batch. A `RowLoss` adds up over rows,
such as the distances to hash centers, and knows no pairs: where queries have a map of their own, it
is computed for the rows of either side, with the same centers. A loss that `reads_chances` has the
chance that an item is relevant, where labels are drawn, beside the level that was drawn.
"""

from torch import Tensor, nn

from rankbits.methods.training.batches import Batch


class RowLoss(nn.Module):
    """Base of the losses that add up over rows."""


class ChanceLoss(nn.Module):
    """Base of the losses that may read `Batch.chances`."""

    reads_chances: bool


def reads_chances(loss: nn.Module) -> bool:
    """Whether the loss needs chances: they take time to look up."""
    return isinstance(loss, ChanceLoss) and loss.reads_chances


def compute_loss(loss: nn.Module, logits: Tensor, items: Tensor | None, batch: Batch) -> Tensor:
    """The loss of a step; `items` are logits of the items, if these are not the queries'."""
    value: Tensor = loss(logits, batch)
    if items is None or not isinstance(loss, RowLoss):
        return value
    of_items: Tensor = loss(items, batch.of_items())
    return (value + of_items) / 2
