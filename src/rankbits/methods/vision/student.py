"""Rows without labels: networks that were tuned to the labeled rows label them for one more.

The networks, tuned as in `tuning`, say how likely the classes of every other row are. One more
network, the student, starts from the backbone again and learns from all rows: from labels where
there are any, and else from these probabilities. It comes to believe what the others believe
together, and takes their place, so that encoding costs one network.

The bits are trained on its beliefs about the rows without labels, which are many, and like the rows
that will be encoded. How sure it may be is read from labeled rows that were kept from it.

Notation: n labeled rows, m others, C classes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from rankbits import affinity
from rankbits.methods.supervision import Supervision
from rankbits.methods.training import parallel
from rankbits.methods.training.checkpoints import Checkpoints, compute_fingerprint
from rankbits.methods.training.classifiers import draw_unseen
from rankbits.methods.training.sample_pool import MOST_SAMPLES
from rankbits.methods.vision.tuning import (
    Asked,
    Goal,
    Tuned,
    TunedBackbone,
    Tuner,
    join_networks,
    tune_networks,
)


def tune_backbone(
    build_tuner: Callable[[np.ndarray], Tuner],
    images: np.ndarray,
    goal: Goal,
    n_networks: int,
    unlabelled: np.ndarray | None = None,
) -> TunedBackbone:
    """Networks tuned to the classes of images, or one that learned from other images too."""
    tuner = build_tuner(images)
    tuned = tune_networks(tuner, goal, n_networks)
    if unlabelled is None:
        return join_networks(tuner, tuned)
    tuner = build_tuner(np.concatenate([images, unlabelled]))
    student = join_networks(tuner, [tune_student(tuner, goal, tuned)])
    student.report["teachers"] = [teacher.report for teacher in tuned]
    return student


def tune_student(tuner: Tuner, goal: Goal, teachers: Sequence[Tuned]) -> Tuned:
    """A network tuned to all rows of the tuner; those of the goal come first, others unlabelled."""
    n_labelled, n_rows = len(goal.classes), len(tuner.images)
    others = np.arange(n_labelled, n_rows)
    chances = label_rows(tuner, others, teachers)
    labels = np.eye(goal.n_classes, dtype=np.float32)[goal.classes]
    classes = np.concatenate([goal.classes, chances.argmax(1)])
    supervision = Supervision(
        "classes", affinity.classes(classes, classes), np.arange(n_rows), classes
    )
    is_unseen = np.zeros((n_rows, 1), bool)
    is_unseen[:n_labelled] = draw_unseen(n_labelled, 1, tuner.config.seed)
    asked = Asked(others[:: -(-len(others) // MOST_SAMPLES)], 1)
    student = tuner.tune(
        "student", Goal(supervision, np.concatenate([labels, chances])), is_unseen, asked
    )
    tuner.clear()
    return student


def label_rows(tuner: Tuner, rows: np.ndarray, teachers: Sequence[Tuned]) -> np.ndarray:
    """Probabilities (m, C) of the classes of rows, from the mean logits of several networks."""
    config = tuner.config
    folder = None if config.checkpoint is None else Path(config.checkpoint) / "labels"
    digests = [teacher.logits.numpy() for teacher in teachers]
    finished = Checkpoints(
        folder, compute_fingerprint({}, [tuner.images, rows, *digests]), resume=config.resume
    )
    saved = finished.load()
    if saved is not None:
        return np.asarray(saved[0]["chances"].numpy())
    logits = torch.stack(
        [teacher.factor * tuner.ask(teacher.network, Asked(rows, 1)) for teacher in teachers]
    )
    chances = functional.softmax(logits.mean(0), dim=1).cpu()
    if parallel.rank() == 0:
        finished.save({"chances": chances}, {"seed": config.seed})
    return np.asarray(chances.numpy())
