"""Readers of pictures: networks that are trained from scratch, with or without classes first."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rankbits.methods.training.checkpoints import stage_checkpoints
from rankbits.methods.training.config import TrainingConfig, fit_to_rows
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.examples import RowReader
from rankbits.methods.training.posterior import TrainedPosterior, start_behind
from rankbits.methods.training.recipes import Recipes, beliefs_recipe
from rankbits.methods.training.trained_part import BitsStart, build_fresh_encoder
from rankbits.methods.vision.augmentation import build_mover
from rankbits.methods.vision.network_posterior import learn_network_posterior
from rankbits.methods.vision.resnet import ImageLayer

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import Preparation

HEAD_VALUES = (  # of training, which the bits take from another recipe; the shape of a head stays
    "alpha",
    "alpha_end",
    "optimizer",
    "learning_rate",
    "weight_decay",
    "precision",
    "nesterov",
    "schedule",
    "warm_up",
    "batch_size",
    "epochs",
    "noise",
    "noise_scaling",
    "mixup",
    "flip",
    "shift",
    "ema",
)
_BITS_VALUES = tuple(name for name in HEAD_VALUES if name not in ("alpha", "alpha_end"))
_SAMPLE = 1000  # images from which layers learn before any gradient


class PictureReader(RowReader):
    """Pictures that a network reads as they are, mirrored and moved in training."""

    def moves_images(self, posterior: int) -> bool:
        return self.rows.ndim == 4

    def learn_layers(
        self, encoder: Encoder, rows: Tensor, rng: np.random.Generator, scaling: str
    ) -> np.ndarray:
        constant_features = super().learn_layers(encoder, rows, rng, scaling)
        learn_image_layers(encoder, rows, rng)
        return constant_features

    def start_bits(self, preparation: "Preparation") -> BitsStart:
        start = super().start_bits(preparation)
        return replace(start, augment=build_mover(start.config))


class NetworkReader(PictureReader):
    """Pictures whose classes the encoder's own network learns first."""

    def count_rows(self, n_rows: int, posterior: int) -> int:
        return n_rows

    def has_features(self, config: TrainingConfig) -> bool:
        return True

    def describe_posterior(self, config: TrainingConfig, n_rows: int) -> dict[str, Any]:
        return {"posterior": config.posterior}

    def start_bits(self, preparation: "Preparation") -> BitsStart:
        if not preparation.config.posterior:
            return super().start_bits(preparation)
        posterior = train_class_network(preparation)
        recipes, n_rows = preparation.method.recipes, len(posterior.pool.inputs)
        config = bits_config(preparation.config, recipes, n_rows)
        report = {**posterior.report, "bits_config": config.to_json()}
        start = start_behind(preparation, posterior)
        return replace(start, config=config, posterior_report=report)


def learn_image_layers(encoder: Encoder, rows: Tensor, rng: np.random.Generator) -> None:
    """Let the layers that learn from images do so, from some of the training rows."""
    layers = [layer for layer in encoder.head.modules() if isinstance(layer, ImageLayer)]
    if layers:
        chosen = torch.from_numpy(rng.permutation(len(rows))[:_SAMPLE])
        standardize = dict(encoder.head.named_children())["standardize"].cpu()
        sample = standardize(rows[chosen].float())
        for layer in layers:
            layer.learn(sample)


def train_class_network(preparation: "Preparation") -> TrainedPosterior:
    """Train the encoder's own network on the classes."""
    config = replace(preparation.config, batches="plain", gallery="batch", n_restarts=1)
    return learn_network_posterior(
        lambda: build_fresh_encoder(preparation.encoder, preparation.initialization),
        preparation.head_inputs.to(preparation.device),
        preparation.supervision.take(preparation.split.train),
        config,
        stage_checkpoints(preparation, "posterior"),
        config.posterior_cache,
    )


def bits_config(config: TrainingConfig, method_recipes: Recipes, n_rows: int) -> TrainingConfig:
    """How the bits behind a network are trained: as those of an MLP, on so many rows."""
    recipe = beliefs_recipe(config, method_recipes)
    config = replace(config, **{name: recipe[name] for name in _BITS_VALUES})
    return fit_to_rows(config, n_rows)
