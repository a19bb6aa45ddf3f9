"""One call of `fit`: parameters settled, data in place, the trainer called, a report written."""

import copy
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods._deep import encoders, parallel, recipes, stages, trunks
from rankbits.methods._deep.asked import (
    batches_of,
    check_cheap_things,
    check_kind,
    kind_of,
    n_anchors,
    plan_of,
)
from rankbits.methods._deep.checkpoint import Checkpoints, fingerprint
from rankbits.methods._deep.divergence import Watch, require_several_codes
from rankbits.methods._deep.encoders import Description, Encoder
from rankbits.methods._deep.journal import Journal, progress_bar
from rankbits.methods._deep.plan import Plan
from rankbits.methods._deep.posterior import (
    Learned,
    pool_size,
    width_of,
)
from rankbits.methods._deep.run import encode
from rankbits.methods._deep.starts import Start
from rankbits.methods._deep.trainer import Outcome, Task, device_of, train
from rankbits.methods._deep.validation import HardScore, split
from rankbits.methods._registry import known_name
from rankbits.methods._supervision import supervise


class Job:
    """One call of `fit`: its parameters settled, its data in place."""

    def __init__(self, hasher: Any, rows: np.ndarray, y: Any) -> None:
        self.hasher, self.rows = hasher, rows
        self.name = known_name(hasher) or type(hasher).__name__
        self.learned: Learned | None = None
        check_cheap_things(hasher, y)
        kind, self.user_trunk = kind_of(hasher)
        grades = hasher._grades_tags if recipes.is_auto(hasher.graded) else bool(hasher.graded)
        self.supervision = supervise(rows, y, graded=grades)
        check_kind(hasher, recipes.supervision_kind(self.supervision))
        params = hasher.get_params(deep=False)
        self.recipe = recipes.resolve(kind, self.supervision, params, hasher._recipes)
        self.head: dict[str, Tensor] | None = None
        hasher._loss(self.supervision)  # refuses bad parameters before any work
        self.checkpoints = Checkpoints(
            hasher.checkpoint,
            resume=hasher.resume,
            every_epochs=hasher.checkpoint_epochs,
            every_seconds=hasher.checkpoint_seconds,
        )
        self.seed = stages.seed_of(hasher, self.checkpoints)
        self.split = split(self.supervision, self.recipe.validation_fraction, self.seed)
        self.device = device_of(hasher.device)
        self.trunk = trunks.made(hasher, kind, self.user_trunk, rows, self.device)
        self.plan = self._plan()
        raw = torch.from_numpy(rows)
        self.inputs = raw if self._tunes() else trunks.features(self.trunk, raw, self.device)
        self.description = self._description(kind)
        self.encoder = encoders.build(self.description, self.trunk)
        self.constant, self.start = self._learn(raw)

    def run(self) -> Outcome:
        """Train, or continue the checkpoint's run."""
        if self.checkpoints.path is not None:
            self.checkpoints.fingerprint = self._fingerprint()
        journal = Journal(self.hasher.log)
        inputs = self.inputs.to(self.device)
        rows = inputs[torch.from_numpy(self.split.train)]
        supervision = self.supervision.take(self.split.train)
        if self.description.n_members:
            rows, supervision, inputs = stages.read_posterior(self, rows, supervision, inputs)
        if self.trunk is not None and self._tunes():
            self.head = stages.trained_head(self, supervision)
        task = Task(
            make_module=self.module,
            make_loss=lambda: self.hasher._loss(self.supervision),
            inputs=rows,
            supervision=supervision.tabulated(),
            plan=self.plan,
            score=self._score(inputs),
            checkpoints=self.checkpoints,
            journal=journal,
            name=self.name,
        )
        n_epochs = self.plan.n_epochs * self.plan.n_restarts
        with progress_bar(self.hasher.verbose, n_epochs) as task.progress:
            outcome = train(task)
        require_several_codes(
            Watch(self.name, self.plan.learning_rate),
            lambda rows: encode(outcome.module, rows),
            task.inputs,
            task.supervision,
            outcome.history,
        )
        return outcome

    def whole(self, module: nn.Module) -> Encoder:
        """The encoder of raw rows around the module that was trained."""
        if isinstance(module, Encoder):
            return module
        shell = copy.copy(self.encoder)
        head = module if self.learned is None else nn.Sequential()
        if self.learned is not None:
            parts = {**dict(self.encoder.head.named_children()), **dict(module.named_children())}
            for name, part in parts.items():
                head.add_module(name, part)
        shell._modules = {**self.encoder._modules, "head": head}
        return shell.eval()

    def report(self, outcome: Outcome, seconds: float) -> dict[str, Any]:
        """What was done, as JSON values."""
        return {
            "method": type(self.hasher).__name__,
            "loss": self.hasher._loss_settings(),
            "encoder": self.description.to_json(),
            "scaling": self.recipe.scaling,
            "init": self.start.name,
            "plan": self.plan.to_json(),
            "supervision": self.supervision.notes(),
            "posterior": None if self.learned is None else self.learned.notes,
            "split": self.split.to_json(),
            "constant_features": self.constant.tolist(),
            "epochs": len(outcome.history),
            "epochs_resumed": outcome.n_resumed,
            "best": outcome.standing.to_json(),
            "is_validated": self.is_validated(),
            "seconds": round(seconds, 3),
            "device": str(self.device),
            "threads": torch.get_num_threads(),
            "processes": parallel.world_size(),
            "checkpoints_failed": self.checkpoints.n_failed,
        }

    def _tunes(self) -> bool:
        return self.trunk is None or bool(self.hasher.fine_tune)

    def _description(self, kind: str) -> Description:
        hasher, recipe = self.hasher, self.recipe
        shape = tuple(self.inputs.shape[1:])
        if self.trunk is not None:
            width = trunks.n_features(self.trunk, torch.from_numpy(self.rows[0]).to(self.device))
            shape, kind = (width,), "mlp" if recipe.hidden else "linear"
        trunk = "" if self.trunk is None else "module" if self.user_trunk else hasher.backbone
        return Description(
            kind=kind,
            input_shape=shape,
            n_bits=hasher._asked_bits(),
            hidden=recipe.hidden,
            activation=recipe.activation,
            normalisation=recipe.normalisation,
            dropout=recipe.dropout,
            input_dropout=recipe.input_dropout,
            skip=bool(recipe.skip),
            n_anchors=n_anchors(hasher, len(self.split.train)),
            trunk=trunk,
            image_size=hasher.image_size if trunk in trunks.NAMES else 0,
            **self._posterior_shape(kind),
        )

    def _posterior_shape(self, kind: str) -> dict[str, int]:
        n_members = _check.whole("posterior", self.recipe.posterior, 0, 64)
        if not n_members:
            return {}
        classes = self.supervision.classes
        if classes is None or kind != "mlp" or self.hasher.kernel is not None:
            raise InputError(
                "posterior must be 0 unless y is class labels and the encoder is 'mlp' without "
                f"kernel, got {n_members}"
            )
        width = width_of(len(self.split.train))
        return {"n_members": n_members, "n_classes": int(classes.max()) + 1, "width": width}

    def _plan(self) -> Plan:
        n = len(self.split.train)
        n = pool_size(n) if self.recipe.posterior else n
        recipe = self.recipe
        if self.rows.ndim != 4 or not self._tunes():
            recipe = replace(recipe, flip=False, shift=0)
        batches = batches_of(self.hasher, self.supervision, min(recipe.batch_size, n))
        return plan_of(self.hasher, recipe, n, batches, self.seed, self.hasher.epochs)

    def _learn(self, raw: Tensor) -> tuple[np.ndarray, Start]:
        """Scales, anchors and start from the training rows; features that never vary."""
        rows = torch.from_numpy(self.split.train)
        rng = np.random.default_rng([self.seed, 1 << 20])
        if self.trunk is not None and self._tunes():
            inputs = self.features = trunks.features(self.trunk, raw[rows], self.device)
        else:
            inputs = self.inputs[rows]
        constant = encoders.learn(self.encoder, inputs, rng, self.recipe.scaling)
        if self.trunk is not None and not self._tunes():
            self.encoder.freeze()
        head, init = self.encoder.head, self.recipe.init
        if recipes.is_auto(self.hasher.init):
            init = Start.possible(init, head)
        return constant, Start(init, head, inputs, self.description.n_bits)

    def module(self) -> Any:
        """Fresh weights around the scales and anchors: the part that is trained."""
        trunk = copy.deepcopy(self.trunk) if self._tunes() else None
        keeps = not self.hasher.tune_statistics
        fresh = encoders.build(self.description, trunk, keeps_statistics=keeps)
        learned = dict(self.encoder.head.named_buffers())
        own = [name for name in learned if name.split(".")[0] != "body"]
        fresh.head.load_state_dict({name: learned[name] for name in own}, strict=False)
        self.start.apply(fresh.head)
        if self.head is not None:
            fresh.head.load_state_dict(self.head)
        if self.learned is not None:
            parts = dict(fresh.head.named_children())
            return nn.Sequential(OrderedDict(rescale=parts["rescale"], body=parts["body"]))
        return fresh if self._tunes() else fresh.head

    def is_validated(self) -> bool:
        """Whether epochs have a score."""
        return self.hasher.scoring is not None or len(self.split.held_out) > 0

    def _score(self, inputs: Tensor) -> Any:
        scoring = self.hasher.scoring
        if scoring is not None:
            return lambda module: scoring(self.whole(module))
        if len(self.split.held_out) == 0:
            return None
        return HardScore(inputs, self.supervision, self.split.held_out, self.hasher._objective)

    def _fingerprint(self) -> str:
        facts = {
            "method": type(self.hasher).__name__,
            "loss": self.hasher._loss_settings(),
            "encoder": self.description.to_json(),
            "plan": self.plan.to_json(),
            "split": self.split.to_json(),
            "supervision": self.supervision.digest(),
            "fine_tune": [bool(self.hasher.fine_tune), bool(self.hasher.tune_statistics)],
            "start": [self.recipe.scaling, self.start.name],
        }
        return fingerprint(facts, [self.rows])
