"""Sign: each bit is the sign of one feature, as embeddings are often binarized."""

from dataclasses import field
from typing import Any, Self

import numpy as np

from rankbits.codes import MAX_BITS
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.parameters.fields import (
    choice,
    fact,
    flag,
    integer,
    learned,
    optional,
    parameter,
)
from rankbits.methods.shallow.shared.learned import ArrayHasher


class Sign(ArrayHasher):
    """The signs of the features themselves, centered or raw.

    With center=False and all features this is what sentence-transformers calls binary
    quantization [1]_. Bits stand in the order of their features.

    Parameters
    ----------
    n_bits : int or None, default=None
        Code length, at most the number of features; None takes one bit for each feature.
    center : bool, default=True
        Whether a bit says that a feature exceeds its training mean; otherwise that it exceeds 0.
    choose : {"variance", "first"}, default="variance"
        Which features become bits where there are more features than bits: those of largest
        variance in training (of equal ones the first), or the first ones, which suits Matryoshka
        embeddings.

    Attributes
    ----------
    mean_ : ndarray of shape (n_bits,)
        What each chosen feature is compared with.
    features_ : ndarray of int64, shape (n_bits,)
        Columns of the chosen features, ascending.

    References
    ----------
    .. [1] A. Shakir, T. Aarsen, S. Lee, "Binary and scalar embedding quantization for significantly
       faster & cheaper retrieval", Hugging Face, 2024.

    Examples
    --------
    >>> Sign(center=False).fit_transform([[0.5, -1.0, 2.0], [-0.5, 1.0, 0.0]]).tolist()
    [[160], [64]]
    """

    n_bits: int | None = field(  # type: ignore[assignment]  # None for one of each feature
        default=None, kw_only=False, metadata={"check": optional(integer(1, MAX_BITS))}
    )
    center: bool = parameter(True, flag)
    choose: str = parameter("variance", choice("variance", "first"))

    mean_: np.ndarray = learned("b")
    features_: np.ndarray = fact(list)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which features become bits, and their means.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        rows = self._training_rows(X, y)
        n_bits = self._count_bits(rows.shape[1])
        order = np.arange(rows.shape[1])
        if self.choose == "variance":
            order = np.argsort(-rows.var(axis=0), kind="stable")
        self.features_ = np.sort(order[:n_bits])
        mean: np.ndarray = rows.mean(axis=0)[self.features_]
        self.mean_ = mean if self.center else np.zeros(n_bits)
        return self

    def _count_bits(self, n_features: int) -> int:
        """The code length for rows with this number of features."""
        n_bits = n_features if self.n_bits is None else self.n_bits
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

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = rows[:, self.features_] - self.mean_
        return logits

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"mean": self.mean_}, {"features": self.features_.tolist()}

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        super()._restore(arrays, facts)
        columns = facts["features"]
        n_features = self._n_columns()
        if not all(type(column) is int and 0 <= column < n_features for column in columns):
            raise FileFormatError(
                f"the model's features must be columns from 0 to {n_features - 1}, "
                f"got {columns!r:.60}"
            )
        if columns != sorted(set(columns)) or len(columns) != len(self.mean_):
            raise FileFormatError(
                "the model's features must be different, ascending and one for each mean, "
                f"got {len(columns)} for {len(self.mean_)}"
            )
        self.features_ = np.array(columns, np.int64)

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import ChosenFeatures

        return ChosenFeatures(self.features_, self.mean_)
