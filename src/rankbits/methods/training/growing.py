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
from torch import Tensor

from rankbits.errors import InputError
from rankbits.methods.labels import read_labels
from rankbits.methods.shallow.principal import leading_directions
from rankbits.methods.shallow.rotation import learn_rotation, random_rotation
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.fields import is_auto
from rankbits.methods.training.geometry import Geometry
from rankbits.methods.training.layers import Standardize, scale_to_one_norm
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.recipes import encoder_kind

CLASS_SHARE = 0.25  # of the bits, which labels train
_SHRINKAGE = 0.1  # of S towards a multiple of the identity
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


def fit_geometry(
    parameters: TrainingParameters, rows: np.ndarray, labels: np.ndarray
) -> Geometry | None:
    """The geometry of the rows: three quarters of the bits, as far as the rows have directions."""
    n_bits = parameters.n_bits - max(1, round(CLASS_SHARE * parameters.n_bits))
    if n_bits == 0:
        return None
    seed = check_random_state(copy.deepcopy(parameters.random_state)).randint(2**31 - 1)
    return learn_geometry(torch.from_numpy(rows), labels, n_bits, seed)


def learn_geometry(rows: Tensor, classes: np.ndarray, n_bits: int, seed: int) -> Geometry | None:
    """The map of at most so many bits, fewer where rows have fewer directions; None for no bit.

    Logits are scaled so that they are 1 in the mean of their absolute values, as those of a trained
    map at its start.
    """
    standardize = Standardize(rows.shape[1])
    standardize.learn(rows, "common")
    scaled = scale_to_one_norm(standardize(rows.float())).double().numpy()
    mean = scaled.mean(axis=0)
    whitening = whiten_within_classes(scaled, classes)
    whitened = (scaled - mean) @ whitening
    directions = leading_directions(whitened, n_bits)
    if directions.shape[1] == 0:
        return None
    coordinates = whitened @ directions
    start = random_rotation(directions.shape[1], np.random.RandomState(seed))
    rotation, _ = learn_rotation(coordinates, start, _N_ROTATIONS)
    planes = whitening @ directions @ rotation / np.abs(coordinates @ rotation).mean()
    geometry = Geometry(rows.shape[1], planes.shape[1])
    geometry.standardize = standardize
    geometry.mean.copy_(torch.from_numpy(mean))
    geometry.planes.copy_(torch.from_numpy(planes))
    return geometry


def whiten_within_classes(rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """S^(-1/2), S the shrunk covariance of the rows about the means of their classes."""
    _, members = np.unique(classes, return_inverse=True)
    sums = np.zeros((members.max() + 1, rows.shape[1]))
    np.add.at(sums, members, rows)
    residuals = rows - (sums / np.bincount(members)[:, None])[members]
    covariance = residuals.T @ residuals / len(rows)
    level = np.trace(covariance) / len(covariance)
    if level == 0:  # rows of a class are equal: nothing to discount
        return np.eye(len(covariance))
    shrunk = (1 - _SHRINKAGE) * covariance + _SHRINKAGE * level * np.eye(len(covariance))
    variances, vectors = np.linalg.eigh(shrunk)
    whitening: np.ndarray = vectors / np.sqrt(variances) @ vectors.T
    return whitening


def add_geometry(fitted: FittedEncoders, geometry: Geometry | None) -> tuple[Encoder, Encoder]:
    """The encoders of items and of queries, extended by the bits of geometry.

    Where queries are encoded as items, they stay so: their bits count alike.
    """
    items, queries = fitted.encoder_, fitted.query_encoder_
    if geometry is None:
        return items, queries
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
