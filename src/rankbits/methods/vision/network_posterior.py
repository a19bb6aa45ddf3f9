"""A class posterior learned by the encoder's own network, and the pool of beliefs for the bits.

A network that is trained from scratch on images knows its training rows by heart, so beliefs about
these say little about new ones. The pool has the rows that were kept from the network instead, as
they are and moved as in training: they are as doubtful as new images are. Their labels are drawn
from the posterior, at the temperature at which the network is as sure as it is right about them.

Notation: K networks, C classes.
"""

import time
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.checkpoints import Checkpoints
from rankbits.methods.training.classifiers import (
    Classifiers,
    ClassifierTask,
    TrainedClassifiers,
    draw_unseen,
    held_out_logits,
    train_classifiers,
)
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.devices import mixed_precision, use_mixed_precision
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.kinds import KINDS
from rankbits.methods.training.layers import Posterior, class_beliefs
from rankbits.methods.training.log import progress_bar
from rankbits.methods.training.posterior import TrainedPosterior, recall_or_train
from rankbits.methods.training.posterior_cache import PosteriorCache
from rankbits.methods.training.sample_pool import SamplePool, pool_size
from rankbits.methods.vision.augmentation import build_mover, move_images

SMOOTHING = 0.1  # share of a label that is spread over all classes
_STREAM = 0x9001  # keeps the moves of the pool apart from those of epochs


def learn_network_posterior(
    build_encoder: Callable[[], Encoder],
    rows: Tensor,
    supervision: Supervision,
    config: TrainingConfig,
    checkpoints: Checkpoints,
    cache: PosteriorCache | None = None,
) -> TrainedPosterior:
    """The networks of an encoder, trained on the classes of raw rows, and the pool of the bits.

    `build_encoder` gives an encoder with fresh weights; its head has a posterior.
    """
    architecture = asdict(build_encoder().architecture) | {"n_bits": 0}
    described = {k: v for k, v in config.to_json().items() if k != "n_bits"}
    return recall_or_train(
        lambda: _train_posterior(build_encoder, rows, supervision, config, checkpoints),
        {"architecture": architecture, "config": described},
        rows,
        supervision,
        cache,
    )


def _train_posterior(
    build_encoder: Callable[[], Encoder],
    rows: Tensor,
    supervision: Supervision,
    config: TrainingConfig,
    checkpoints: Checkpoints,
) -> TrainedPosterior:
    started = time.perf_counter()
    architecture = build_encoder().architecture
    block = KINDS[architecture.kind].block
    is_unseen = draw_unseen(len(rows), architecture.posterior, config.seed)
    with progress_bar(config.verbose, config.epochs, "epoch of the classes") as progress:
        trained = train_classifiers(
            ClassifierTask(
                build=lambda: select_classifiers(build_encoder()),
                rows=rows,
                supervision=supervision,
                is_unseen=is_unseen,
                config=config,
                smoothing=SMOOTHING,
                block=block,
                augment=build_mover(config),
                checkpoints=checkpoints,
                progress=progress,
            )
        )
    pool = draw_moved_pool(trained, rows, is_unseen, config, block)
    report = {
        "factor": round(trained.factor, 4),
        "held_out_loss": round(trained.held_out_loss, 5),
        "held_out_accuracy": round(trained.held_out_accuracy, 5),
        "doubt": round(trained.doubt, 5),
        "smoothing": SMOOTHING,
        "config": config.to_json(),
        "history": trained.history,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return TrainedPosterior(trained.module.classifiers, pool, report)


def select_classifiers(encoder: Encoder) -> Classifiers:
    """The parts of an encoder that turn rows into logits of classes."""
    parts = dict(encoder.head.named_children())
    classifiers = parts["posterior"]
    assert isinstance(classifiers, Posterior)  # noqa: S101
    return Classifiers(classifiers, parts["standardize"])


def draw_moved_pool(
    trained: TrainedClassifiers,
    rows: Tensor,
    is_unseen: np.ndarray,
    config: TrainingConfig,
    block: int,
) -> SamplePool:
    """Beliefs about rows that a network did not see, as they are and moved, and labels' chances."""
    rng = np.random.default_rng([config.seed, _STREAM])
    positions = np.flatnonzero(is_unseen.any(axis=1))
    unseen, is_unseen = rows[torch.from_numpy(positions)], is_unseen[positions]
    logits = []
    with mixed_precision(use_mixed_precision(config.precision)):
        for copy in range(pool_size(len(unseen)) // len(unseen)):
            moved = move_images(unseen, False, config.shift, rng) if copy else unseen
            logits.append(held_out_logits(trained.module, moved, is_unseen, block)[0])
    together = torch.cat(logits)
    probabilities = functional.softmax(trained.factor * together, dim=1)
    return SamplePool(class_beliefs(together), probabilities.cpu().numpy())
