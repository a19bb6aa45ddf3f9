"""Collections whose classes grow: an encoder of known classes, extended by bits of geometry.

The class bits are those of an ordinary fit with fewer bits, so this works with every loss.
`geometry` says what the others are, in the notation that is used here.
"""

import copy
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from rankbits.errors import InputError
from rankbits.methods.labels import read_labels
from rankbits.methods.parameters.fields import is_auto
from rankbits.methods.shallow.shared.principal import leading_directions
from rankbits.methods.shallow.shared.rotation import learn_rotation, random_rotation
from rankbits.methods.shallow.shared.within_classes import whiten_within_classes
from rankbits.methods.training.encoders import Encoder, encode_rows
from rankbits.methods.training.geometry import Geometry, Metric, join_features
from rankbits.methods.training.layers import scale_to_one_norm
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.recipes import encoder_kind

CLASS_SHARE = 0.125  # of the bits, which a loss trains
_SPREAD = 0.25  # exponent of the variances of whitened rows that scales their directions
_N_ROTATIONS = 50


class FittedEncoders(Protocol):
    """What a fit of the class bits leaves behind."""

    encoder_: Encoder
    query_encoder_: Encoder


def read_class_labels(
    parameters: TrainingParameters, rows: np.ndarray, y: Any, has_log: bool
) -> np.ndarray:
    """The class labels, which say what the geometry should discount."""
    has_backbone = (
        not is_auto(parameters.encoder) and encoder_kind(parameters.encoder) == "backbone"
    )
    if rows.ndim != 2 or has_backbone:
        raise InputError(
            "classes must be 'fixed' for images and backbones: distances between raw rows say "
            "little about them; compute features first and fit on these"
        )
    labels = None if y is None or has_log else read_labels(y)
    if labels is None or labels.ndim != 1:
        raise InputError("classes='grow' needs class labels as y, one for each row")
    return labels


def learn_metric(rows: Tensor, classes: np.ndarray) -> Metric:
    """The metric M = S^(-1/2) E A^(1/8), in which directions that tell classes apart count more.

    S is the covariance of the rows within their classes, and E, A are the principal directions of
    the rows so whitened and their variances: within classes these are 1 in every direction, so a
    large variance is one between classes.
    """
    metric = Metric(rows.shape[1])
    metric.standardize.learn(rows, "common")
    scaled = scale_to_one_norm(metric.standardize(rows.float())).double().numpy()
    mean = scaled.mean(axis=0)
    whitening = whiten_within_classes(scaled, classes)
    whitened = (scaled - mean) @ whitening
    variances, vectors = np.linalg.eigh(whitened.T @ whitened / len(whitened))
    directions = whitening @ vectors * np.maximum(variances, 0) ** (_SPREAD / 2)
    metric.mean.copy_(torch.from_numpy(mean))
    metric.directions.copy_(torch.from_numpy(directions))
    return metric


def count_geometry_bits(n_bits: int, units: Tensor) -> int:
    """Seven eighths of the bits, as far as the rows have directions."""
    wanted = n_bits - max(1, round(CLASS_SHARE * n_bits))
    if wanted == 0:
        return 0
    centered = (units - units.mean(0)).double().numpy()
    return int(leading_directions(centered, wanted).shape[1])


def learn_geometry(
    metric: Metric, units: Tensor, probabilities: Tensor, n_bits: int, random_state: Any
) -> Geometry:
    """ITQ on the rows in the metric, beside their class posteriors.

    Logits are scaled so that they are 1 in the mean of their absolute values, as those of a trained
    map at its start.
    """
    features = join_features(units, probabilities).double().numpy()
    center = features.mean(axis=0)
    directions = leading_directions(features - center, n_bits)
    coordinates = (features - center) @ directions
    rng = check_random_state(copy.deepcopy(random_state))
    start = random_rotation(n_bits, rng)[: directions.shape[1]]
    rotation, _ = learn_rotation(coordinates, start, _N_ROTATIONS)
    planes = directions @ rotation / np.abs(coordinates @ rotation).mean()
    geometry = Geometry(units.shape[1], probabilities.shape[1], n_bits)
    geometry.metric = metric
    geometry.center.copy_(torch.from_numpy(center))
    geometry.planes.copy_(torch.from_numpy(planes))
    return geometry


def compute_probabilities(encoder: Encoder, rows: Tensor) -> Tensor:
    """Class posteriors (n, C) of rows by an encoder that has them, else (n, 0)."""
    parts = dict(encoder.head.named_children())
    if "posterior" not in parts:
        return rows.new_zeros(len(rows), 0)
    beliefs = encode_rows(nn.Sequential(parts["standardize"], parts["posterior"]), rows.float())
    return beliefs[:, encoder.architecture.n_classes :]


def add_geometry(fitted: FittedEncoders, geometry: Geometry) -> tuple[Encoder, Encoder]:
    """The encoders of items and of queries, extended by the bits of geometry.

    Where queries are encoded as items, they stay so: their bits count alike.
    """
    items, queries = fitted.encoder_, fitted.query_encoder_
    extended = _extend(items, geometry)
    if queries is items:
        return extended, extended
    weighing = copy.deepcopy(geometry)
    weighing.weigh_queries()
    return extended, _extend(queries, weighing)


def _extend(encoder: Encoder, geometry: Geometry) -> Encoder:
    n_geometry = geometry.planes.shape[1]
    extended = copy.copy(encoder)  # shares the weights of the class bits
    extended._modules = {**encoder._modules, "geometry": geometry}
    extended.architecture = replace(
        encoder.architecture,
        n_bits=encoder.architecture.n_bits + n_geometry,
        geometry_bits=n_geometry,
    )
    return extended.requires_grad_(False).eval()
