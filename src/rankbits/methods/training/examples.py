"""Examples: the rows of a fit, and what is relevant to what among them.

Here every row is a query to the others; in `logged_queries`, queries are rows of their own.
"""

import copy
from typing import Any, Self

import numpy as np

from rankbits.methods.supervision import Supervision, supervise
from rankbits.methods.training.config import Epoch, TrainingConfig
from rankbits.methods.training.fields import is_auto
from rankbits.methods.training.inputs import Inputs
from rankbits.methods.training.method import MethodDefinition
from rankbits.methods.training.readers import RowReader
from rankbits.methods.training.recipes import supervision_kind
from rankbits.methods.training.validation import RowSplit


class Examples:
    """Rows that are queries to each other, and y, which says what is relevant."""

    def __init__(self, reader: RowReader, y: Any) -> None:
        self.reader, self.y = reader, y

    @property
    def arrays(self) -> list[np.ndarray]:
        """The rows that a training depends on."""
        return [self.reader.rows]

    def supervise(self, method: MethodDefinition) -> Supervision:
        """What y says about the rows, if the method can use it."""
        rows = self.reader.rows
        if self.y is None:
            method.require_labels("distances")
            rows = self.reader.comparable_rows()
        supervision = supervise(rows, self.y, graded=self.is_graded(method))
        method.require_labels(supervision_kind(supervision))
        return supervision

    def is_graded(self, method: MethodDefinition) -> bool:
        """Whether relevance has levels: as the user says, else as the method optimizes."""
        graded = self.reader.parameters.graded
        return method.grades_tags if is_auto(graded) else graded

    def describe_epoch(self, split: RowSplit, posterior: int) -> Epoch:
        """What the training of the bits goes through, behind so many classifiers."""
        return Epoch(self.reader.count_rows(len(split.train), posterior))

    def settle(self, config: TrainingConfig, supervision: Supervision, split: RowSplit) -> Self:
        """The same, with a reader for a training as configured."""
        settled = copy.copy(self)
        settled.reader = self.reader.settle(config, supervision, split)
        return settled

    def split_items(self, split: RowSplit) -> RowSplit:
        """The items to train on, where the split is one of queries."""
        return split

    def read_queries(self, split: RowSplit) -> Inputs | None:
        """The training queries as the trained part reads them; None if the items are queries."""
        return None

    def read_head_queries(self, split: RowSplit) -> Inputs | None:
        """The same as the head reads them."""
        return None
