"""Examples: the rows of a fit, what is relevant to what among them, and how an encoder reads them.

Here every row is a query to the others; in `logged_queries`, queries are rows of their own.
A reader says what the head of an encoder reads, what of the encoder is trained, and what is trained
before the bits. The one here reads rows as they are; `kinds` names those of other encoders.
"""

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from rankbits.errors import InputError
from rankbits.methods.parameters.fields import is_auto
from rankbits.methods.supervision import Supervision, supervise
from rankbits.methods.training.config import Epoch, TrainingConfig
from rankbits.methods.training.devices import choose_device
from rankbits.methods.training.encoders import Encoder, build_encoder, learn_scales
from rankbits.methods.training.inputs import Inputs, RowSplit
from rankbits.methods.training.kinds import Architecture, reader_class
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.posterior import STAGES, choose_width, start_behind, train_posterior
from rankbits.methods.training.recipes import encoder_kind, supervision_kind
from rankbits.methods.training.sample_pool import pool_size
from rankbits.methods.training.trained_part import BitsStart, start_on_rows

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import MethodDefinition, Preparation


class RowReader:
    """Rows that an encoder reads as they are."""

    stages: ClassVar[tuple[str, ...]] = ("", *STAGES)  # trainings of a fit, by their folders
    tuning_report: dict[str, Any] | None = None  # of networks that learned classes before the fit

    def __init__(self, parameters: TrainingParameters, rows: np.ndarray) -> None:
        self.parameters, self.rows = parameters, rows

    def read_others(self, rows: np.ndarray) -> "RowReader":
        """Other rows, read alike."""
        return type(self)(self.parameters, rows)

    def add_unlabelled(self, rows: np.ndarray) -> None:
        """Take rows without labels, if a network is there to label them."""
        raise InputError(
            "unlabelled must be None unless y is class labels and a backbone is tuned to them "
            "(encoder='backbone', fine_tune='last:11'): its networks label the other rows"
        )

    @cached_property
    def device(self) -> torch.device:
        """Where the encoder is trained."""
        return choose_device(self.parameters.device)

    @property
    def extra_arrays(self) -> dict[str, np.ndarray]:
        """What a training depends on beside the rows, by name."""
        return {}

    def comparable_rows(self) -> np.ndarray:
        """Rows whose distances mean something."""
        return self.rows

    def count_rows(self, n_rows: int, posterior: int) -> int:
        """Rows of an epoch of the bits: those of a pool behind classifiers."""
        return pool_size(n_rows) if posterior else n_rows

    def moves_images(self, posterior: int) -> bool:
        """Whether the training of the bits may mirror and move rows."""
        return False

    def settle(
        self, config: TrainingConfig, supervision: Supervision, split: RowSplit
    ) -> "RowReader":
        """The reader for a training as configured, on the rows of the split."""
        return self

    @property
    def head_rows(self) -> Tensor:
        """All rows as the head reads them."""
        return torch.from_numpy(self.rows)

    @property
    def trained_rows(self) -> Inputs:
        """All rows as the trained part of the encoder reads them."""
        return self.head_rows

    def select_head_rows(self, split: RowSplit) -> Tensor:
        """The training rows as the head reads them."""
        return self.head_rows[torch.from_numpy(split.train)] if split.holds_out else self.head_rows

    def describe_head(self, config: TrainingConfig) -> dict[str, Any]:
        """The kind of the head, and what stands before it."""
        return {"kind": encoder_kind(config.encoder)}

    def has_features(self, config: TrainingConfig) -> bool:
        """Whether classifiers can read what the head reads."""
        return encoder_kind(config.encoder) == "mlp" and config.kernel is None

    def describe_posterior(self, config: TrainingConfig, n_rows: int) -> dict[str, Any]:
        """How many classifiers the head has, and of which sizes."""
        return {"posterior": config.posterior, "posterior_width": choose_width(n_rows)}

    def build_encoder(self, architecture: Architecture, config: TrainingConfig) -> Encoder:
        """The encoder of raw rows, with fresh weights."""
        return build_encoder(architecture)

    def learn_layers(
        self, encoder: Encoder, rows: Tensor, rng: np.random.Generator, scaling: str
    ) -> np.ndarray:
        """Let layers learn from rows what they know before any gradient; the constant features."""
        return learn_scales(encoder, rows, rng, scaling)

    def start_bits(self, preparation: "Preparation") -> BitsStart:
        """Train what stands before the bits, if anything."""
        if preparation.config.posterior:
            return start_behind(preparation, train_posterior(preparation))
        return start_on_rows(preparation)


def build_reader(parameters: TrainingParameters, rows: np.ndarray) -> RowReader:
    """The reader of rows for the encoder that the user chose; "auto" is one that reads vectors."""
    encoder = "linear" if is_auto(parameters.encoder) else parameters.encoder
    reader: RowReader = reader_class(encoder_kind(encoder))(parameters, rows)
    return reader


class Examples:
    """Rows that are queries to each other, and y, which says what is relevant."""

    def __init__(self, reader: RowReader, y: Any) -> None:
        self.reader, self.y = reader, y

    @property
    def arrays(self) -> list[np.ndarray]:
        """The rows that a training depends on."""
        return [self.reader.rows]

    def supervise(self, method: "MethodDefinition") -> Supervision:
        """What y says about the rows, if the method can use it."""
        rows = self.reader.rows
        if self.y is None:
            method.require_labels("distances")
            rows = self.reader.comparable_rows()
        supervision = supervise(rows, self.y, graded=self.is_graded(method))
        method.require_labels(supervision_kind(supervision))
        return supervision

    def is_graded(self, method: "MethodDefinition") -> bool:
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
