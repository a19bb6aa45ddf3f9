"""Class posteriors in front of the bits: what a few classifiers believe, and honest lists from it.

A training row is always close to itself, so codes trained on rows and labels alone learn to be
sure. The rows of a database are not: ranking them well means knowing how doubtful each one is.
So, for class labels, the encoder first learns the classes by cross-entropy, on rows with noise
added, and the bits then read its posterior. They are trained by the ranking objective on noisy
rows whose labels are drawn from the posterior itself. Temperature and noise are those at which
labels and doubts are as for rows held out of each classifier: lists with as many doubtful and wrong
items as new data will have.

Notation: K classifiers, C classes, x rows of norm sqrt(d), T the factor of the logits that labels
are drawn with.
"""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from rankbits.methods.supervision import Supervision
from rankbits.methods.training.checkpoints import (
    Checkpoints,
    compute_fingerprint,
    stage_checkpoints,
)
from rankbits.methods.training.classifiers import (
    Classifiers,
    ClassifierTask,
    TrainedClassifiers,
    draw_unseen,
    train_classifiers,
)
from rankbits.methods.training.config import TrainingConfig, common_config
from rankbits.methods.training.encoders import Encoder
from rankbits.methods.training.layers import (
    ClassPosterior,
    Posterior,
    Standardize,
    scale_to_one_norm,
)
from rankbits.methods.training.posterior_cache import PosteriorCache
from rankbits.methods.training.sample_pool import DrawnClasses, SamplePool, draw_pool, match_doubt
from rankbits.methods.training.trained_part import BitsStart, build_trained_part

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import Preparation


NOISES = (0.15, 0.35, 0.7)
STAGES = (*(f"pilot-{noise}" for noise in NOISES), "posterior")  # trainings before that of the bits
_BATCH_SIZE = 250
_N_STEPS, _N_ROWS = 800, 5000  # so many steps for so many rows, growing with their square root
_FEWEST_STEPS = 300
_PILOT_STEPS, _PILOT_WIDTH = 400, 256
_WIDTHS = (128, 1024)


@dataclass(frozen=True)
class PosteriorShape:
    """The sizes of the classifiers."""

    n_features: int
    n_classes: int
    width: int
    n_classifiers: int

    def build(self) -> ClassPosterior:
        """Classifiers with fresh weights."""
        return ClassPosterior(self.n_features, self.n_classes, self.width, self.n_classifiers)


@dataclass(frozen=True)
class TrainedPosterior:
    """Trained classifiers, the rows drawn for the bits, and how both were chosen."""

    classifiers: Posterior
    pool: SamplePool
    report: dict[str, Any]


class NoisyClassifiers(Classifiers):
    """Classifiers of vectors in training, each with noise of its own."""

    def __init__(self, classifiers: ClassPosterior, noise: float) -> None:
        super().__init__(classifiers)
        self.noise = noise

    def forward(self, x: Tensor) -> Tensor:
        rows, noise = scale_to_one_norm(x), self.noise if self.training else 0.0
        members = self.classifiers.members
        return torch.stack([m(rows + noise * torch.randn_like(rows)) for m in members], dim=1)


def learn_posterior(
    shape: PosteriorShape,
    rows: Tensor,
    supervision: Supervision,
    seed: int,
    checkpoints: Callable[[str], Checkpoints],
    cache: PosteriorCache | None = None,
) -> TrainedPosterior:
    """The classifiers and their pool of rows: those of the cache, or trained now.

    `checkpoints(stage)` says where the training of that stage saves its state.
    """
    return recall_or_train(
        lambda: _train_posterior(shape, rows, supervision, seed, checkpoints),
        {"seed": seed, **asdict(shape)},
        rows,
        supervision,
        cache,
    )


def recall_or_train(
    train: Callable[[], TrainedPosterior],
    facts: dict[str, Any],
    rows: Tensor,
    supervision: Supervision,
    cache: PosteriorCache | None,
) -> TrainedPosterior:
    """The posterior of these facts, rows and classes that the cache has, or one trained now."""
    if cache is None:
        return train()
    assert supervision.classes is not None  # noqa: S101
    facts = {"threads": torch.get_num_threads(), **facts}
    fingerprint = compute_fingerprint(facts, [rows.cpu().numpy(), supervision.classes])
    posterior: TrainedPosterior | None = cache.get(fingerprint)
    if posterior is None:
        posterior = train()
        cache.put(fingerprint, posterior)
    return posterior


def _train_posterior(
    shape: PosteriorShape,
    rows: Tensor,
    supervision: Supervision,
    seed: int,
    checkpoints: Callable[[str], Checkpoints],
) -> TrainedPosterior:
    """Choose the noise by short trainings, train the classifiers, and draw rows from them."""
    started = time.perf_counter()
    is_unseen = draw_unseen(len(rows), shape.n_classifiers, seed)

    def train(
        stage: str, shape: PosteriorShape, noise: float, config: TrainingConfig
    ) -> TrainedClassifiers:
        return train_classifiers(
            ClassifierTask(
                build=lambda: NoisyClassifiers(shape.build(), noise),
                rows=rows,
                supervision=supervision,
                is_unseen=is_unseen[:, : shape.n_classifiers],
                config=config,
                checkpoints=checkpoints(stage),
            )
        )

    pilot_shape = replace(shape, n_classifiers=1, width=_PILOT_WIDTH)
    pilot_config = posterior_config(len(rows), seed, _PILOT_STEPS)
    losses = {
        noise: train(f"pilot-{noise}", pilot_shape, noise, pilot_config).held_out_loss
        for noise in NOISES
    }
    noise = min(losses, key=lambda candidate: losses[candidate])
    config = posterior_config(len(rows), seed)
    final = train("posterior", shape, noise, config)
    classifiers = final.module.classifiers
    largest = match_doubt(classifiers, rows, noise, final.factor, final.doubt, seed)
    pool = draw_pool(classifiers, rows, (noise, largest), final.factor, seed)
    report = {
        "noise": noise,
        "pilots": {str(candidate): round(loss, 5) for candidate, loss in losses.items()},
        "factor": round(final.factor, 4),
        "held_out_loss": round(final.held_out_loss, 5),
        "doubt": round(final.doubt, 5),
        "pool_noise": [noise, round(largest, 4)],
        "config": config.to_json(),
        "seconds": round(time.perf_counter() - started, 3),
    }
    return TrainedPosterior(classifiers, pool, report)


def posterior_config(n_rows: int, seed: int, n_steps: int | None = None) -> TrainingConfig:
    """How the classifiers are trained: by steps rather than epochs, so that time stays bounded."""
    n_steps = n_steps or max(_FEWEST_STEPS, round(_N_STEPS * math.sqrt(n_rows / _N_ROWS)))
    return common_config(
        epochs=max(1, round(n_steps * min(_BATCH_SIZE, n_rows) / n_rows)),
        batch_size=min(_BATCH_SIZE, n_rows),
        learning_rate=2e-3,
        weight_decay=0.2,
        schedule="one-cycle",
        warm_up=0.0,
        ema=0.99,
        seed=seed,
    )


def choose_width(n_rows: int) -> int:
    """Width of a classifier of n rows: the power of two nearest to a quarter of them, in bounds."""
    low, high = _WIDTHS
    return int(min(high, max(low, 2 ** round(math.log2(max(n_rows, 4) / 4)))))


def start_behind(preparation: "Preparation", posterior: TrainedPosterior) -> BitsStart:
    """Bits behind classifiers: they are not trained on the rows, but on a pool of noisy ones."""
    frame = insert_posterior(preparation.encoder, posterior)
    return BitsStart(
        frame=frame,
        config=preparation.config,
        inputs=posterior.pool.inputs,
        supervision=DrawnClasses(posterior.pool.probabilities),
        build_part=lambda: build_trained_part(frame, preparation.initialization),
        posterior_report=posterior.report,
    )


def train_posterior(preparation: "Preparation") -> TrainedPosterior:
    """Train the classifiers of vectors whose posterior the bits read."""
    config, encoder = preparation.config, preparation.encoder
    architecture = encoder.architecture
    shape = PosteriorShape(
        n_features=architecture.input_shape[-1],
        n_classes=architecture.n_classes,
        width=architecture.posterior_width,
        n_classifiers=architecture.posterior,
    )
    standardize = dict(encoder.head.named_children())["standardize"].to(preparation.device)
    rows = preparation.head_inputs.to(preparation.device)
    return learn_posterior(
        shape,
        standardize(rows.float()),
        preparation.supervision.take(preparation.split.train),
        config.seed,
        lambda stage: stage_checkpoints(preparation, stage),
        config.posterior_cache,
    )


def insert_posterior(encoder: Encoder, posterior: TrainedPosterior) -> Encoder:
    """A copy of the encoder with the trained classifiers, and the scales of what they say."""
    encoder = copy.deepcopy(encoder)
    parts = dict(encoder.head.named_children())
    parts["posterior"].load_state_dict(posterior.classifiers.state_dict())
    encoder.head.requires_grad_(False).to(posterior.pool.inputs.device).eval()
    cast(Standardize, parts["rescale"]).learn(posterior.pool.inputs)
    return encoder
