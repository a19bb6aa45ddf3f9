"""Sign: each bit is the sign of one feature, as embeddings are often binarised."""

from typing import Any, Self

import numpy as np

from rankbits import _check
from rankbits.codes import MAX_BITS
from rankbits.errors import FileFormatError, InputError
from rankbits.methods._base import BaseHasher
from rankbits.methods._linear import require_arrays

_WAYS = ("variance", "first")


class Sign(BaseHasher):
    """The signs of the features themselves, centred or raw.

    With center=False and all features this is what sentence-transformers calls binary
    quantisation. Bits stand in the order of their features.

    Parameters
    ----------
    n_bits : int or None, default=None
        Code length, at most the number of features; None takes one bit for each feature.
    center : bool, default=True
        Whether a bit says that a feature exceeds its training mean; otherwise that it exceeds 0.
    choose : {"variance", "first"}, default="variance"
        Which features make the bits where there are more of them: those of largest variance in
        training (of equal ones the first), or the first ones, as suits Matryoshka embeddings.

    Attributes
    ----------
    mean_ : ndarray of shape (n_bits,)
        What each chosen feature is compared with.
    features_ : ndarray of int64, shape (n_bits,)
        Columns of the chosen features, ascending.

    >>> Sign(center=False).fit_transform([[0.5, -1.0, 2.0], [-0.5, 1.0, 0.0]]).tolist()
    [[160], [64]]
    """

    mean_: np.ndarray
    features_: np.ndarray

    def __init__(
        self, n_bits: int | None = None, *, center: bool = True, choose: str = "variance"
    ) -> None:
        self.n_bits = n_bits
        self.center = center
        self.choose = choose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which features to take and their means; y is ignored."""
        _check.choice("choose", self.choose, _WAYS)
        if self.n_bits is not None:
            self._asked_bits()
        rows = self._training_rows(X)
        n_bits = self._fitting_bits(rows.shape[1])
        order = np.arange(rows.shape[1])
        if self.choose == "variance":
            order = np.argsort(-rows.var(axis=0), kind="stable")
        self.features_ = np.sort(order[:n_bits])
        mean: np.ndarray = rows.mean(axis=0)[self.features_]
        self.mean_ = mean if self.center else np.zeros(n_bits)
        return self

    def _fitting_bits(self, n_features: int) -> int:
        """The code length for X of so many features."""
        n_bits = n_features if self.n_bits is None else int(self.n_bits)
        if n_bits > n_features:
            raise InputError(
                f"n_bits must be at most {n_features}, one for each feature, got {n_bits}; take "
                "fewer bits, or a method without this limit such as lsh"
            )
        if n_bits > MAX_BITS:
            raise InputError(
                f"n_bits must be given for X of more than {MAX_BITS} features, got {n_features}"
            )
        return n_bits

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return len(self.mean_)

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = rows[:, self.features_] - self.mean_
        return logits

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"mean": self.mean_}, {"features": self.features_.tolist()}

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        require_arrays(arrays, {}, {"mean": ("b",)}, {})
        columns: Any = facts.get("features")
        known = set(range(self.n_features_in_))
        is_list = isinstance(columns, list) and all(type(column) is int for column in columns)
        if set(facts) != {"features"} or not is_list or not known.issuperset(columns):
            raise FileFormatError(
                f"the model's facts must be features, columns from 0 to {len(known) - 1}, "
                f"got {facts!r:.60}"
            )
        if columns != sorted(set(columns)) or len(columns) != len(arrays["mean"]):
            raise FileFormatError(
                "the model's features must be different, ascending and one for each mean, "
                f"got {len(columns)} for {len(arrays['mean'])}"
            )
        self.mean_, self.features_ = arrays["mean"], np.array(columns, np.int64)

    def _torch_module(self) -> Any:
        from rankbits.methods._onnx import Features

        return Features(self.features_, self.mean_)
