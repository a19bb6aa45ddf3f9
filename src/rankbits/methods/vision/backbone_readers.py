"""Readers of rows through a backbone, which stays as it is or is tuned.

frozen             its features are computed once, and the head is trained on them
tuned with bits    it is trained with the head by the loss of the method, after the head alone
tuned to classes   copies of it learn the classes first, and the bits read what they believe
"""

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.checkpoints import compute_fingerprint, stage_checkpoints
from rankbits.methods.training.config import TrainingConfig, fit_to_rows
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.examples import RowReader
from rankbits.methods.training.inputs import Inputs, RowSplit
from rankbits.methods.training.kinds import Architecture, check_architecture
from rankbits.methods.training.layers import Posterior
from rankbits.methods.training.parameters import count_last_blocks
from rankbits.methods.training.posterior import TrainedPosterior, start_behind
from rankbits.methods.training.recipes import Recipes, frozen_backbone_recipe
from rankbits.methods.training.trained_part import BitsStart, build_fresh_encoder
from rankbits.methods.training.trainer import TrainingTask, run_training
from rankbits.methods.vision.activations import compute_activations
from rankbits.methods.vision.augmentation import build_mover
from rankbits.methods.vision.backbone_encoder import BackboneEncoder
from rankbits.methods.vision.backbones import (
    NAMES,
    build_backbone,
    compute_features,
    name_backbone,
    split_backbone,
)
from rankbits.methods.vision.readers import HEAD_VALUES
from rankbits.methods.vision.student import tune_backbone
from rankbits.methods.vision.tuning import TUNING_STAGE, Goal, TunedBackbone, Tuner, tuning_config

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import Preparation

HEAD_STAGE = "head"


class BackboneReader(RowReader):
    """Rows, and the features that a backbone makes of them; it stays as it is.

    The backbone is built, and its features are computed, when they are first needed, and once.
    """

    stages: ClassVar[tuple[str, ...]] = (*RowReader.stages, HEAD_STAGE, TUNING_STAGE)
    is_frozen: ClassVar[bool] = True
    unlabelled: np.ndarray | None = None

    @cached_property
    def backbone(self) -> nn.Module:
        """The backbone, on its device."""
        return build_backbone(self.parameters, self.rows).to(self.device)

    @cached_property
    def features(self) -> Tensor:
        """What the backbone makes of all rows, on the processor."""
        return compute_features(self.backbone, torch.from_numpy(self.rows), self.device)

    def read_others(self, rows: np.ndarray) -> "BackboneReader":
        others = type(self)(self.parameters, rows)
        others.backbone = self.backbone
        return others

    def add_unlabelled(self, rows: np.ndarray) -> None:
        self.unlabelled = rows

    def comparable_rows(self) -> np.ndarray:
        return self.rows if self.rows.ndim == 2 else self.features.numpy()

    def moves_images(self, posterior: int) -> bool:
        return self.rows.ndim == 4 and bool(self.parameters.fine_tune) and not posterior

    def settle(
        self, config: TrainingConfig, supervision: Supervision, split: RowSplit
    ) -> RowReader:
        """The reader that tunes the backbone as configured, if it is tuned."""
        if config.fine_tune and config.posterior:
            return ClassTuningReader(self, config, supervision, split)
        if self.unlabelled is not None:
            super().add_unlabelled(self.unlabelled)  # refuses them
        return BitTuningReader(self, config) if config.fine_tune else self

    @property
    def head_rows(self) -> Tensor:
        return self.features

    def has_features(self, config: TrainingConfig) -> bool:
        return config.kernel is None

    def describe_head(self, config: TrainingConfig) -> dict[str, Any]:
        name = name_backbone(config)
        return {
            "kind": "mlp" if config.hidden else "linear",
            "backbone": name,
            "image_size": config.image_size if name in NAMES else 0,
        }

    def build_encoder(self, architecture: Architecture, config: TrainingConfig) -> Encoder:
        check_architecture(architecture)
        return BackboneEncoder(
            architecture,
            self.backbone,
            keeps_statistics=not config.tune_statistics,
            n_last=count_last_blocks(config.fine_tune),
            is_frozen=self.is_frozen,
        )


class BitTuningReader(BackboneReader):
    """Rows as a backbone reads them that is trained with the bits, after the head alone."""

    is_frozen = False

    def __init__(self, reader: BackboneReader, config: TrainingConfig) -> None:
        super().__init__(reader.parameters, reader.rows)
        vars(self).update(vars(reader))
        self.config = config

    @cached_property
    def trained_rows(self) -> Inputs:
        """All rows, or the activations that the last blocks read."""
        n_last = count_last_blocks(self.config.fine_tune)
        if n_last is None:
            return torch.from_numpy(self.rows)
        first, _ = split_backbone(self.backbone, n_last)
        return compute_activations(first, self.rows, self.config, self.device)

    def start_bits(self, preparation: "Preparation") -> BitsStart:
        weights = train_head(preparation)
        start = super().start_bits(preparation)

        def build_part() -> nn.Module:
            part = cast(Encoder, start.build_part())
            part.head.load_state_dict(weights)
            return part

        return replace(start, build_part=build_part, augment=build_mover(start.config))


class ClassTuningReader(BackboneReader):
    """Rows as networks read them that are tuned to the classes, before the bits.

    The head reads the logits of these networks, which take the place of the backbone's features.
    """

    def __init__(
        self,
        reader: BackboneReader,
        config: TrainingConfig,
        supervision: Supervision,
        split: RowSplit,
    ) -> None:
        super().__init__(reader.parameters, reader.rows)
        self.unlabelled = reader.unlabelled
        self.tuned = tune_to_classes(reader, config, supervision, split)
        self.backbone = self.tuned.networks
        self.tuning_report = self.tuned.report

    @property
    def extra_arrays(self) -> dict[str, np.ndarray]:
        return {} if self.unlabelled is None else {"unlabelled": self.unlabelled}

    def select_head_rows(self, split: RowSplit) -> Tensor:
        return self.tuned.networks.no_logits  # the head learns nothing from rows

    def describe_posterior(self, config: TrainingConfig, n_rows: int) -> dict[str, Any]:
        return {"posterior": len(self.tuned.networks.networks), "fine_tune": config.fine_tune}

    def learn_layers(
        self, encoder: Encoder, rows: Tensor, rng: np.random.Generator, scaling: str
    ) -> np.ndarray:
        return np.arange(0)

    def start_bits(self, preparation: "Preparation") -> BitsStart:
        """What the networks believe; they have learned the classes already."""
        classifiers = dict(preparation.encoder.head.named_children())["posterior"]
        names = ("held_out_accuracy", "held_out_loss", "factor")
        report = {name: self.tuned.report[name] for name in names}
        pool = replace(self.tuned.pool, inputs=self.tuned.pool.inputs.to(self.device))
        start = start_behind(
            preparation, TrainedPosterior(cast(Posterior, classifiers), pool, report)
        )
        return replace(start, config=replace(start.config, precision="single"))  # the networks' is


def tune_to_classes(
    reader: BackboneReader, config: TrainingConfig, supervision: Supervision, split: RowSplit
) -> TunedBackbone:
    """Let copies of the backbone learn the classes, or recall those that have learned them."""
    images = reader.rows[split.train] if split.holds_out else reader.rows
    goal, cache = Goal(supervision.take(split.train)), config.posterior_cache
    configure = partial(tuning_config, reader.parameters, config, n_labelled=len(images))

    def build_tuner(rows: np.ndarray) -> Tuner:
        return Tuner(reader.backbone, rows, configure(n_rows=len(rows)), reader.device)

    def tune() -> TunedBackbone:
        return tune_backbone(build_tuner, images, goal, config.posterior, reader.unlabelled)

    if cache is None:
        return tune()
    facts = {
        "config": configure(n_rows=len(images)).to_json(),
        "networks": config.posterior,
        "threads": torch.get_num_threads(),
    }
    others = [] if reader.unlabelled is None else [reader.unlabelled]
    fingerprint = compute_fingerprint(facts, [images, goal.classes, *others])
    tuned: TunedBackbone | None = cache.get(fingerprint)
    if tuned is None:
        tuned = tune()
        cache.put(fingerprint, tuned)
    return tuned


def train_head(preparation: "Preparation") -> dict[str, Tensor]:
    """Weights of the head, trained on the features of the backbone before it is tuned.

    A fresh head would first spoil the backbone: its gradients mean nothing yet.
    """
    method = preparation.method
    supervision = preparation.supervision.take(preparation.split.train)
    task = TrainingTask(
        build_module=lambda: (
            build_fresh_encoder(preparation.encoder, preparation.initialization).head
        ),
        build_loss=preparation.copy_loss,
        inputs=preparation.head_inputs.to(preparation.device),
        query_inputs=preparation.examples.read_head_queries(preparation.split),
        supervision=supervision.tabulated(),
        config=head_config(preparation.config, method.recipes, len(supervision)),
        checkpoints=stage_checkpoints(preparation, HEAD_STAGE),
        method_name=method.name,
    )
    return run_training(task).best.weights


def head_config(config: TrainingConfig, method_recipes: Recipes, n_rows: int) -> TrainingConfig:
    """How the head is trained: as that of a frozen backbone."""
    recipe = frozen_backbone_recipe(method_recipes)
    config = replace(config, **{name: recipe[name] for name in HEAD_VALUES})
    return fit_to_rows(config, n_rows)
