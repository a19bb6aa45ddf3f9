"""Stages that come before the training of a job: class posteriors, the head of a trunk to be tuned.

Each keeps its state in a folder of its own inside the job's, so that a run continues where it was.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils import check_random_state
from torch import Tensor, nn

from rankbits.methods._deep import parallel, recipes
from rankbits.methods._deep.asked import plan_of
from rankbits.methods._deep.checkpoint import Checkpoints
from rankbits.methods._deep.layers import Posterior, Standardise
from rankbits.methods._deep.posterior import STAGES, DrawnClasses, learn_posterior
from rankbits.methods._deep.run import encode
from rankbits.methods._deep.trainer import Task, train
from rankbits.methods._supervision import Supervision

if TYPE_CHECKING:
    from rankbits.methods._deep.job import Job

_HEAD = "head"


def read_posterior(
    job: "Job", rows: Tensor, supervision: Supervision, inputs: Tensor
) -> tuple[Tensor, Supervision, Tensor]:
    """Learn the classes first: the rows, labels and validation rows of the bits instead."""
    d, parts = job.description, dict(job.encoder.head.named_children())
    scale = parts["standardise"].to(job.device)
    n_inputs = d.input_shape[-1]

    def make(n_members: int, width: int) -> Posterior:
        return Posterior(n_inputs, d.n_classes, width or d.width, n_members or d.n_members)

    job.learned = learn_posterior(
        make,
        scale(rows.float()),
        supervision,
        job.seed,
        lambda name: checkpoints_of(job.hasher, job.checkpoints, name),
    )
    parts["posterior"].load_state_dict(job.learned.posterior.state_dict())
    job.encoder.head.requires_grad_(False).to(job.device).eval()
    pool = job.learned.pool
    cast(Standardise, parts["rescale"]).learn(pool.inputs)
    drawn = DrawnClasses.first(pool.chances)
    front = nn.Sequential(scale, parts["posterior"])
    return pool.inputs, drawn, encode(front, inputs.float()) if job.is_validated() else inputs


def trained_head(job: "Job", supervision: Supervision) -> dict[str, Tensor]:
    """Weights of the head, trained on the features of the trunk before it is tuned.

    A fresh head would first spoil the trunk: its gradients say nothing yet.
    """
    recipe = recipes.of_head(job.recipe, job.hasher._recipes)
    task = Task(
        make_module=lambda: job.module().head,
        make_loss=lambda: job.hasher._loss(job.supervision),
        inputs=job.features.to(job.device),
        supervision=supervision.tabulated(),
        plan=plan_of(job.hasher, recipe, len(supervision), job.plan.batches, job.seed),
        checkpoints=checkpoints_of(job.hasher, job.checkpoints, _HEAD),
        name=job.name,
    )
    return train(task).standing.weights


def checkpoints_of(hasher: Any, last: Checkpoints, name: str) -> Checkpoints:
    """Where an earlier stage of the same run keeps its state."""
    folder = hasher.checkpoint
    found = Checkpoints(
        None if folder is None else Path(folder) / name,
        resume=hasher.resume,
        every_seconds=hasher.checkpoint_seconds,
    )
    found.fingerprint = f"{name} of {last.fingerprint}"
    return found


def seed_of(hasher: Any, last: Checkpoints) -> int:
    """The seed that random_state gives; a run to be resumed keeps its own."""
    folder = hasher.checkpoint
    there = [
        name for name in (*STAGES, _HEAD) if folder is not None and (Path(folder) / name).is_dir()
    ]
    for kept in (last, *(checkpoints_of(hasher, last, name) for name in there)):
        facts = kept.peek()
        if hasher.random_state is None and facts is not None:
            return int(facts["seed"])
    seed = check_random_state(hasher.random_state).randint(np.iinfo(np.int32).max)
    return int(parallel.agree(float(seed)))
