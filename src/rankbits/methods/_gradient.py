"""The estimator around the trainer: what every method with a gradient shares.

A method gives its loss (`_loss`) and, if it is not AP that validation shall maximise, the value of
each query (`_objective`).
Parameters left at "auto" come from the recipe of the encoder's kind, `_deep/recipes.py`.
"""

import copy
import time
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from rankbits import _check, objectives
from rankbits.errors import FileFormatError, InputError
from rankbits.methods._deep import encoders, trunks
from rankbits.methods._deep.encoders import Description
from rankbits.methods._deep.job import Job
from rankbits.methods._deep.run import encode
from rankbits.methods._deep.trainer import threads
from rankbits.methods._parameters import GradientParameters
from rankbits.methods._supervision import Supervision

_CNN_BLOCK = 256
_PLACES = ("checkpoint", "log", "scoring")  # they belong to a machine, not to a model


class GradientHasher(GradientParameters):
    """Base of the methods that train an encoder by gradients.

    A method says in `_takes` which kinds of y its loss can use ("classes", "tags", "distances",
    "judgements", "levels"; all of them if empty), and in `_recipes` where its defaults differ from
    the common ones, by the key of the recipe.
    """

    _grades_tags = False
    _takes: ClassVar[tuple[str, ...]] = ()
    _recipes: ClassVar[dict[str | tuple[str, str], dict[str, Any]]] = {}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the encoder.

        Parameters
        ----------
        X : array of shape (n, features), or images of shape (n, height, width, channels)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            None takes the nearest 5, 1, 0.2 and 0.1 % of training pairs as levels 1, 2, 5, 10.
        """
        started = time.perf_counter()
        rows = self._training_rows(X)
        if len(rows) < 2:
            raise InputError("X must have at least two rows to rank, got n_samples = 1")
        with threads(self.n_threads):
            job = Job(self, rows, y)
            outcome = job.run()
        self.encoder_ = job.whole(outcome.module).cpu().eval()
        self.history_ = outcome.history
        self.report_ = job.report(outcome, time.perf_counter() - started)
        return self

    def _loss(self, supervision: Supervision) -> nn.Module:
        """A fresh loss: a module with forward(logits, batch) -> scalar; it may own parameters."""
        raise NotImplementedError

    def _loss_settings(self) -> dict[str, Any]:
        """Parameters of the loss, for the fingerprint of a run and its report."""
        return {name: getattr(self, name) for name in self._own}

    def _objective(self, phi: Tensor, levels: Tensor, **gallery: Tensor) -> Tensor:
        """Value of each query at codes phi of ±1, which validation maximises: tie-aware AP."""
        values: Tensor = objectives.relaxed_ap(phi, levels, **gallery)  # type: ignore[arg-type]
        return values

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return self.encoder_.description.n_bits

    def _check_X(self, X: Any, *, reset: bool) -> np.ndarray:  # noqa: N802 - X is its name
        is_image = isinstance(X, np.ndarray) and X.ndim > 2
        rows = _images(X) if is_image else super()._check_X(X, reset=reset)
        if reset:
            self.input_shape_ = tuple(rows.shape[1:])
            self.n_features_in_ = rows.shape[1]
        elif rows.shape[1:] != self.input_shape_:
            raise InputError(f"X must have rows of shape {self.input_shape_}, got {rows.shape[1:]}")
        return rows

    def _rows(self, rows: np.ndarray, first: int) -> np.ndarray:
        if rows.dtype == np.uint8 and rows.ndim > 2:
            return np.array(rows)
        flat = super()._rows(rows.reshape(len(rows), -1), first).reshape(rows.shape)
        largest = np.finfo(np.float32).max
        if np.abs(flat).max(initial=0.0) > largest:
            raise InputError(f"X must fit in float32, below {largest:.3g}; divide it first")
        return flat.astype(np.float32)

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        with threads(self.n_threads):
            block = _block_size(self.encoder_.description)
            logits: np.ndarray = encode(self.encoder_, torch.from_numpy(rows), block).numpy()
        return logits

    def _row_shape(self) -> tuple[int, ...]:
        return tuple(self.input_shape_)

    def _torch_module(self) -> nn.Module:
        return copy.deepcopy(self.encoder_).eval()

    def _saved_params(self) -> dict[str, Any]:
        params = {k: v for k, v in super()._saved_params().items() if k not in _PLACES}
        if not isinstance(params["random_state"], int | np.integer | None):
            del params["random_state"]  # the report has the seed it gave
        return params

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        description = self.encoder_.description
        if description.trunk == "module":
            raise InputError(
                "encoder must be built of known parts to be saved, got a torch module of your own; "
                "save hasher.encoder_.state_dict() beside the code that builds the module"
            )
        arrays = {name: tensor.numpy() for name, tensor in self.encoder_.state_dict().items()}
        facts = {
            "encoder": description.to_json(),
            "input_shape": list(self.input_shape_),
            "report": self.report_,
            "history": self.history_,
        }
        return arrays, facts

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        description = Description.from_json(facts["encoder"])
        with torch.device("meta"):  # shapes only: a wrong description costs no memory
            trunk = (
                trunks.named(description.trunk, description.image_size, pretrained=False)
                if description.trunk
                else None
            )
            encoder = encoders.build(description, trunk)
        wanted = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
        if wanted != {name: array.shape for name, array in arrays.items()}:
            raise FileFormatError("its arrays are not those of the encoder it describes")
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        encoder.load_state_dict(tensors, assign=True)
        self.encoder_ = encoder.requires_grad_(False).eval()
        self.input_shape_ = tuple(facts["input_shape"])
        self.report_, self.history_ = facts["report"], facts["history"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = bool(self._takes) and "distances" not in self._takes
        return tags


def _images(X: np.ndarray) -> np.ndarray:
    if X.dtype.kind not in "biuf" or 0 in X.shape:
        raise InputError(f"X must be numbers, at least one row, got {_check.describe(X)}")
    return X


def _block_size(description: Description) -> int:
    if description.trunk:
        return trunks.BLOCK
    return _CNN_BLOCK if description.kind == "cnn" else 4096
