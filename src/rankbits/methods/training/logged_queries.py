"""Queries that are rows of their own, such as a log of searches, and the items that they rank."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rankbits.methods.query_log import QueryLog, rank_items, read_query_log
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.batches import queries_of_step
from rankbits.methods.training.config import Epoch, TrainingConfig
from rankbits.methods.training.examples import Examples, RowReader
from rankbits.methods.training.inputs import Inputs, RowSplit, keep_all
from rankbits.methods.training.recipes import supervision_kind

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import MethodDefinition


@dataclass(frozen=True)
class LoggedEpoch(Epoch):
    """An epoch of logged queries, each with some of the rows."""

    n_queries: int

    def count_steps(self, batch_size: int) -> int:
        """Steps of one epoch."""
        return -(-self.n_queries // queries_of_step(batch_size))


class LoggedQueries(Examples):
    """Items, queries, and judgements over both, or None for what is nearest."""

    def __init__(self, reader: RowReader, queries: np.ndarray, judgements: Any) -> None:
        super().__init__(reader, judgements)
        self.queries = reader.read_others(queries)

    @property
    def arrays(self) -> list[np.ndarray]:
        return [self.reader.rows, self.queries.rows]

    def supervise(self, method: "MethodDefinition") -> QueryLog:
        """What judgements say about the queries, or else their own rankings of the items."""
        if self.y is None:
            method.require_labels("distances")
            rows = self.queries.comparable_rows(), self.reader.comparable_rows()
            log = rank_items(*rows, self.is_graded(method))
        else:
            log = read_query_log(self.y, len(self.queries.rows), len(self.reader.rows))
        method.require_labels(supervision_kind(log))
        return log

    def describe_epoch(self, split: RowSplit, posterior: int) -> Epoch:
        n_rows = self.reader.count_rows(len(self.reader.rows), posterior)
        return LoggedEpoch(n_rows, n_queries=len(split.train))

    def settle(self, config: TrainingConfig, supervision: Supervision, split: RowSplit) -> Self:
        settled = super().settle(config, supervision, split)
        settled.queries = self.queries.settle(config, supervision, split)
        return settled

    def split_items(self, split: RowSplit) -> RowSplit:
        return keep_all(len(self.reader.rows))

    def read_queries(self, split: RowSplit) -> Inputs | None:
        return split.take_training(self.queries.trained_rows).to(self.reader.device)

    def read_head_queries(self, split: RowSplit) -> Inputs | None:
        return split.take_training(self.queries.head_rows).to(self.reader.device)
