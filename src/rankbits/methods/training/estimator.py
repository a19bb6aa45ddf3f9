"""The estimator around the training: what every method trained by gradients shares.

A method declares the parameters of its loss, builds the loss in `_build_loss` and, if validation
shall not maximize AP, computes the value of each query in `_query_values`.
"""

import copy
import math
import time
from abc import abstractmethod
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor, nn

from rankbits import _check, objectives
from rankbits._memory import all_memory_kept
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.base import BaseHasher
from rankbits.methods.parameters.fields import check_parameters
from rankbits.methods.registry import known_name
from rankbits.methods.stored_arrays import MOST_FEATURES
from rankbits.methods.supervision import Supervision
from rankbits.methods.training import growing
from rankbits.methods.training.config import read_parameters
from rankbits.methods.training.devices import limit_threads, own_generators
from rankbits.methods.training.encoders import Encoder, encode_rows, rebuild_encoder
from rankbits.methods.training.examples import Examples, build_reader
from rankbits.methods.training.fitting import assemble, train
from rankbits.methods.training.kinds import KINDS, Architecture, check_architecture
from rankbits.methods.training.logged_queries import LoggedQueries
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.preparation import MethodDefinition, prepare
from rankbits.methods.training.recipes import Recipes

_FACTS = {
    "encoder": dict,
    "input_shape": list,
    "report": dict,
    "history": list,
    "has_query_encoder": bool,
}
_N_COLORS = 3  # channels of the images that a backbone reads
_QUERY_PREFIX = "queries."  # of the weights of an encoder of queries, in a file


class GradientHasher(TrainingParameters, BaseHasher):
    """Base of the methods that train an encoder by gradients.

    What is left at "auto" comes from a recipe by kind of encoder and of y; `report_` has the values
    that were used.

    A method says in `_accepted_labels` which kinds of y its loss can use ("classes", "tags",
    "distances", "judgements", "levels"; all of them if empty), and in `_recipes` where its defaults
    differ from the common ones, by the key of the recipe.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The trained encoder of items, from raw rows to logits, on the processor.
    query_encoder_ : torch.nn.Module
        That of queries: the same object, unless `queries` gives them a map of their own.
    report_ : dict
        The configuration, the split, the best score and its epoch, the seconds it took.
    history_ : list of dict
        One record for each epoch: loss, score, learning rate, alpha, seconds.
    n_features_in_ : int
        Number of features of a row.
    input_shape_ : tuple of int
        Shape of a row.
    """

    _unsaved_params: ClassVar[tuple[str, ...]] = ("checkpoint", "log", "scoring", "posterior_cache")
    _grades_tags: ClassVar[bool] = False
    _accepted_labels: ClassVar[tuple[str, ...]] = ()
    _recipes: ClassVar[Recipes] = {}

    def fit(
        self,
        X: Any,
        y: Any = None,
        query_X: Any = None,
        judgements: Any = None,
        *,
        unlabelled: Any = None,
    ) -> Self:
        """Train the encoder.

        Parameters
        ----------
        X : array of shape (n, features), or images of shape (n, height, width, channels)
            The training rows.
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            What is relevant to what. None takes each row's own ranking of the others by distance:
            its first 10, 50, 200 and 1,000 have the levels 10, 5, 2 and 1 for NDCG, and its first
            10 are relevant for other losses; images are compared by the features that the
            backbone makes of them before it is trained.
        query_X : array of shape (n_queries, features), or None
            Queries that are rows of their own, such as a log of searches. Without them every row
            of X is a query to the others.
        judgements : an affinity over (query_X, X), or None
            What is relevant to these queries, such as `rankbits.affinity.judgements` and
            `read_judgements` give. It takes the place of y. None takes each query's own ranking of
            X by distance, as y=None does.
        unlabelled : rows like those of X, or None
            Rows without labels, such as the other items of the collection, where y is class labels
            and a backbone is tuned to them: the tuned networks say how likely their classes are,
            one more network learns from all rows, and it alone encodes.
        """
        parameters = read_parameters(self)
        rows = self._training_rows(X, y)
        if parameters.classes == "grow":
            if unlabelled is not None:
                raise InputError("unlabelled must be None with classes='grow'")
            has_log = query_X is not None or judgements is not None
            return self._fit_growing(parameters, rows, y, has_log)
        reader = build_reader(parameters, rows)
        if unlabelled is not None:
            reader.add_unlabelled(self._read_more_rows("unlabelled", unlabelled))
        if query_X is None and judgements is None:
            return self._fit_examples(Examples(reader, y))
        queries = self._read_queries(query_X, y)
        return self._fit_examples(LoggedQueries(reader, queries, judgements))

    def _fit_examples(self, examples: Examples) -> Self:
        """Fit to rows that are checked, with the parameters of their reader."""
        started, parameters = time.perf_counter(), examples.reader.parameters
        with limit_threads(parameters.n_threads), own_generators(), all_memory_kept():
            preparation = prepare(self._define_method(), examples)
            trained = train(preparation)
            fitted = assemble(preparation, trained, time.perf_counter() - started)
        self.encoder_, self.query_encoder_ = fitted.encoder, fitted.query_encoder
        self.history_, self.report_ = fitted.history, fitted.report
        return self

    def _fit_growing(
        self, parameters: TrainingParameters, rows: np.ndarray, y: Any, has_log: bool
    ) -> Self:
        """Fit the geometry of the rows, and the same method with fewer bits beside it."""
        labels = growing.read_class_labels(parameters, rows, y, has_log)
        inputs = torch.from_numpy(rows)
        with limit_threads(parameters.n_threads):
            metric = growing.learn_metric(inputs, labels)
            units = encode_rows(metric, inputs)
            n_geometry = growing.count_geometry_bits(parameters.n_bits, units)
        changes: dict[str, Any] = {"classes": "fixed", "n_bits": parameters.n_bits - n_geometry}
        of_classes = clone(self).set_params(**changes)
        reader = build_reader(replace(parameters, **changes), rows)
        of_classes._fit_examples(Examples(reader, y))
        self.encoder_, self.query_encoder_ = of_classes.encoder_, of_classes.query_encoder_
        if n_geometry:
            with limit_threads(self.n_threads):
                probabilities = growing.compute_probabilities(self.encoder_, inputs)
                geometry = growing.learn_geometry(
                    metric, units, probabilities, n_geometry, self.random_state
                )
            self.encoder_, self.query_encoder_ = growing.add_geometry(of_classes, geometry)
        self.history_ = of_classes.history_
        self.report_ = {**of_classes.report_, "geometry_bits": n_geometry}
        return self

    def _read_queries(self, query_X: Any, y: Any) -> np.ndarray:
        """Logged queries, checked as rows are."""
        if query_X is None:
            raise InputError("query_X must be given with judgements; judgements over (X, X) are y")
        if y is not None:
            raise InputError(
                "y must be None with query_X; judgements say what is relevant to queries"
            )
        return self._read_more_rows("query_X", query_X)

    def _read_more_rows(self, name: str, rows: Any) -> np.ndarray:
        """Rows of an argument beside X, checked as those of X are."""
        try:
            return self._rows(self._check_X(rows, reset=False), 0)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None

    @abstractmethod
    def _build_loss(self, supervision: Supervision) -> nn.Module:
        """The loss: a module with forward(logits, batch) -> scalar; it may own parameters.

        It is built once for a fit, with torch's generator seeded; every restart gets a copy.
        """

    def _query_values(self, phi: Tensor, levels: Tensor, **lists: Any) -> Tensor:
        """Value of each query at codes phi of ±1, which validation maximizes: tie-aware AP."""
        values: Tensor = objectives.relaxed_ap(phi, levels, **lists)
        return values

    def _loss_settings(self) -> dict[str, Any]:
        """Parameters of the loss, for the fingerprint of a training and its report."""
        common = set(TrainingParameters.__dataclass_fields__)
        return {name: getattr(self, name) for name in self._get_param_names() if name not in common}

    def _define_method(self) -> MethodDefinition:
        """What the stages of a fit know of this method."""
        return MethodDefinition(
            name=known_name(self) or type(self).__name__,
            class_name=type(self).__name__,
            build_loss=self._build_loss,
            query_values=self._query_values,
            loss_settings=self._loss_settings,
            accepted_labels=self._accepted_labels,
            recipes=self._recipes,
            grades_tags=self._grades_tags,
        )

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return self.encoder_.architecture.n_bits

    def _check_X(self, X: Any, *, reset: bool) -> np.ndarray:  # noqa: N802 - X is its name
        is_image = isinstance(X, np.ndarray) and X.ndim > 2
        rows = _check_images(X) if is_image else super()._check_X(X, reset=reset)
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

    def _training_rows(self, X: Any, y: Any = None) -> np.ndarray:
        rows = super()._training_rows(X, y)
        if len(rows) < 2:
            raise InputError("X must have at least two rows to rank, got n_samples = 1")
        return rows

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        return self._encode_rows(self.encoder_, rows).numpy()

    def _query_logits(self, rows: np.ndarray) -> np.ndarray:
        if not self._has_query_map:
            return self._logits(rows)
        logits = self._encode_rows(self.query_encoder_, rows)
        return torch.tanh(logits).numpy()

    def _encode_rows(self, encoder: Encoder, rows: np.ndarray) -> Tensor:
        takes_megabytes = rows.ndim > 2 and len(rows) > 1
        with limit_threads(self.n_threads), all_memory_kept() if takes_megabytes else nullcontext():
            return encode_rows(encoder, torch.from_numpy(rows), encoder.block)

    @property
    def _has_query_map(self) -> bool:
        return self.query_encoder_ is not self.encoder_

    def _row_shape(self) -> tuple[int, ...]:
        return tuple(self.input_shape_)

    def _torch_module(self) -> nn.Module:
        return copy.deepcopy(self.encoder_).eval()

    def _query_torch_module(self) -> nn.Module:
        return nn.Sequential(copy.deepcopy(self.query_encoder_), nn.Tanh()).eval()

    def _saved_params(self) -> dict[str, Any]:
        params = super()._saved_params()
        if not isinstance(params["random_state"], int | np.integer | None):
            del params["random_state"]  # the report has the seed it gave
        return params

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        architecture = self.encoder_.architecture
        if architecture.backbone == "module":
            raise InputError(
                "encoder must be built of known parts to be saved, got a torch module of your own; "
                "save hasher.encoder_.state_dict() beside the code that builds the module"
            )
        arrays = {name: tensor.numpy() for name, tensor in self.encoder_.state_dict().items()}
        facts: dict[str, Any] = {
            "encoder": architecture.to_json(),
            "input_shape": list(self.input_shape_),
            "report": self.report_,
            "history": self.history_,
        }
        if self._has_query_map:
            facts["has_query_encoder"] = True
            arrays |= self._query_arrays(arrays)
        return arrays, facts

    def _query_arrays(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Weights of the encoder of queries where they differ from that of items."""
        weights = {name: w.numpy() for name, w in self.query_encoder_.state_dict().items()}
        return {
            _QUERY_PREFIX + name: weight
            for name, weight in weights.items()
            if not np.array_equal(weight, arrays[name])
        }

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        check_parameters(self)
        _check_facts(facts)
        architecture = Architecture.from_json(facts["encoder"])
        self.input_shape_ = self._restore_shape(architecture, facts["input_shape"])
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        of_queries = {n: tensors.pop(n) for n in list(tensors) if n.startswith(_QUERY_PREFIX)}
        self.encoder_ = self.query_encoder_ = _rebuild_encoder(architecture, tensors)
        if facts.get("has_query_encoder"):
            tensors |= {name.removeprefix(_QUERY_PREFIX): w for name, w in of_queries.items()}
            self.query_encoder_ = _rebuild_encoder(architecture, tensors)
        elif of_queries:
            raise FileFormatError("it has weights of an encoder of queries that it does not have")
        self.report_, self.history_ = facts["report"], facts["history"]

    def _restore_shape(self, architecture: Architecture, shape: list[int]) -> tuple[int, ...]:
        """The shape of a row, which must be that of what the encoder reads first."""
        sizes = tuple(_check.whole("input_shape", size, 1, MOST_FEATURES) for size in shape)
        if architecture.backbone:
            is_right = len(sizes) == 3 and sizes[2] == _N_COLORS
        else:
            is_right = sizes == architecture.input_shape
        if not is_right or math.prod(sizes) > MOST_FEATURES or sizes[0] != self.n_features_in_:
            raise FileFormatError(
                f"its rows are of shape {sizes!r:.60} with {self.n_features_in_} features, which "
                "is not what its encoder reads"
            )
        return sizes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        accepted = self._accepted_labels
        tags.target_tags.required = bool(accepted) and "distances" not in accepted
        return tags


def _check_facts(facts: dict[str, Any]) -> None:
    """Refuse facts that are not those of an encoder, each of its type."""
    optional = {"has_query_encoder"} & set(facts)
    if set(facts) != set(_FACTS) - {"has_query_encoder"} | optional or not all(
        type(fact) is _FACTS[name] for name, fact in facts.items()
    ):
        raise FileFormatError(
            f"its facts must be {', '.join(_FACTS)}, each of its type, got "
            f"{_check.describe_names(sorted(facts))}"
        )


def _rebuild_encoder(architecture: Architecture, tensors: dict[str, Tensor]) -> Encoder:
    """An encoder with these weights, which must be its own."""
    check_architecture(architecture)
    _require_weights(architecture, tensors)
    with torch.device("meta"):  # shapes only: a wrong architecture costs no memory
        encoder = rebuild_encoder(architecture, tensors)
    if _describe(encoder.state_dict()) != _describe(tensors):
        raise FileFormatError("its arrays are not those of the encoder it describes")
    encoder.load_state_dict(tensors, assign=True)
    return encoder.requires_grad_(False).eval()


def _require_weights(architecture: Architecture, tensors: dict[str, Tensor]) -> None:
    """Refuse weights that are no numbers, or far fewer than the parts of the encoder."""
    n_parts = len(architecture.hidden) + architecture.posterior
    if KINDS[architecture.kind].learns_classes:  # every network has hidden layers of its own
        n_parts = (len(architecture.hidden) + 1) * max(architecture.posterior, 1)
    if n_parts > len(tensors):
        raise FileFormatError(f"its {len(tensors)} arrays are too few for the encoder it describes")
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise FileFormatError(f"{_check.describe_names([name])} must be finite numbers")


def _describe(tensors: dict[str, Tensor]) -> dict[str, tuple[Any, ...]]:
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def _check_images(X: np.ndarray) -> np.ndarray:
    if X.dtype.kind not in "biuf" or 0 in X.shape:
        raise InputError(f"X must be numbers, at least one row, got {_check.describe(X)}")
    return X
