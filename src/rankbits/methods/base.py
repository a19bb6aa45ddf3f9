"""The contract of every method: rows become logits, the signs of logits are the bits of a code.

Rows are checked and projected in blocks, so that a memory-mapped file of any size needs the memory
of one block beside its result.

Notation:
    n  rows of X        d  features of a row        b  bits in a code
"""

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from rankbits._mapped import reads_unchanged, unchanged
from rankbits.affinity import Affinity
from rankbits.codes import BinaryCodes, Queries
from rankbits.codes.sides import ITEMS, QUERIES
from rankbits.errors import InputError
from rankbits.methods.estimator import Estimator
from rankbits.methods.fingerprints import fingerprint
from rankbits.methods.labels import check_length
from rankbits.methods.parameters.common import CodeLength

_BLOCK_CELLS = 1 << 20
_Logits = Callable[[np.ndarray], np.ndarray]


class BaseHasher(CodeLength, Estimator):
    """An encoder of rows into binary codes, following scikit-learn's contract.

    A method implements `fit`, `_logits`, and for saving and export `_state`, `_restore` and
    `_torch_module`. A method that takes rows other than (n, d) numbers overrides `_check_X` and
    `_rows`; one that encodes queries by a map of their own overrides `_has_query_map`,
    `_query_logits` and `_query_torch_module`.
    """

    # How queries may be compared with items: as bits by Hamming distance, as real numbers by score.
    query_kinds: ClassVar[tuple[str, ...]] = ("bits", "real")
    _requires_y: ClassVar[bool] = False  # for scikit-learn: whether fit refuses y=None
    # Parameters of a machine or a session, which a saved model neither has nor may set.
    _unsaved_params: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in cls.__dict__:
            cls.fit = reads_unchanged(cls.fit)  # type: ignore[method-assign]

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the encoder from the rows of X, and from y if the method is supervised.

        A method passes both through `_training_rows`, or y through `supervise`, so that y of the
        wrong length is an error for every method.
        """

    def project(self, X: Any) -> np.ndarray:
        """Logits of shape (n, b); bit k of a code is 1 where logit k is > 0."""
        return np.concatenate(list(self._blocks(X, self._logits)))

    def project_queries(self, X: Any) -> np.ndarray:
        """Real-valued queries of shape (n, b), such as `search_real` takes: a weight for each bit.

        Their signs are the bits of `encode_queries`. A model that encodes queries as it encodes
        items returns the logits of `project`. Where bits have no meaning of their own, there are 16
        numbers for every four bits instead, and queries have no bits (`query_kinds`).
        """
        return np.concatenate(list(self._blocks(X, self._query_logits)))

    def transform(self, X: Any) -> np.ndarray:
        """Packed codes, uint8 of shape (n, ceil(b / 8)), most significant bit first."""
        return self._packed(X, self._logits)

    def encode(self, X: Any) -> BinaryCodes:
        """The codes that `transform` packs, with their length and the fingerprint of this model."""
        side = ITEMS if self._has_query_map else None
        return BinaryCodes(self._packed(X, self._logits), self.n_bits_, fingerprint(self), side)

    def encode_queries(self, X: Any) -> BinaryCodes:
        """Codes of queries, which are compared with codes of items; equal to `encode` for most.

        A model that encodes queries by a map of their own refuses to compare them with each other.
        One whose codes mean nothing by Hamming distance refuses to encode queries.
        """
        self.require_query_bits()
        side = QUERIES if self._has_query_map else None
        packed = self._packed(X, self._query_logits)
        return BinaryCodes(packed, self.n_bits_, fingerprint(self), side)

    def as_queries(self, X: Any) -> Queries:
        """Queries in all forms that the model gives, from one pass: bits, weights and rows of X.

        `index.search(hasher.as_queries(X), k)` takes them, with `by="bits"` or `by="weights"`.
        """
        weights = self.project_queries(X)
        rows = np.asarray(X)
        return Queries(
            bits=self._query_bits(weights) if "bits" in self.query_kinds else None,
            weights=weights,
            vectors=rows if rows.ndim == 2 else None,
            correction=self.correction(),
        )

    def _query_bits(self, weights: np.ndarray) -> BinaryCodes:
        side = QUERIES if self._has_query_map else None
        return BinaryCodes(np.packbits(weights > 0, axis=1), self.n_bits_, fingerprint(self), side)

    def correction(self) -> np.ndarray | None:
        """How the factors of items correct scores by weights; None for methods without factors."""
        return None

    def require_query_bits(self) -> None:
        """Refuse to go on if queries of this method have no bits."""
        if "bits" not in self.query_kinds:
            raise InputError(
                f"queries of {type(self).__name__} have no bits: its codes are ranked by "
                "real-valued queries only; call index.search(hasher.as_queries(X), k)"
            )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted method to a folder, replacing a model there; `load` reads it."""
        from rankbits.methods.persistence import save

        save(self, folder)

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return int(self.n_bits)

    @property
    def _n_features_out(self) -> int:
        """Columns of `transform`, which `get_feature_names_out` names: bytes, not bits."""
        return -(-self.n_bits_ // 8)

    def _blocks(self, X: Any, logits: _Logits) -> Iterator[np.ndarray]:
        """Logits of the rows of X, block by block, as items or as queries."""
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        step = self._block_rows(rows.shape[1:])
        with unchanged(rows):
            for start in range(0, len(rows), step):
                block = self._rows(rows[start : start + step], start)
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    values = logits(block)
                _require_numbers(values, start)
                yield values

    def _block_rows(self, row_shape: tuple[int, ...]) -> int:
        """Rows of a block: neither they nor their logits have more than a million numbers."""
        return max(1, _BLOCK_CELLS // max(math.prod(row_shape), self.n_bits_))

    def _packed(self, X: Any, logits: _Logits) -> np.ndarray:
        blocks = self._blocks(X, logits)
        return np.concatenate([np.packbits(block > 0, axis=1) for block in blocks])

    def _check_X(self, X: Any, *, reset: bool) -> np.ndarray:  # noqa: N802 - X is its name
        """X as an array of the right shape; an array of that shape is neither copied nor read."""
        if isinstance(X, Affinity | BinaryCodes):
            raise InputError(f"X must be rows of numbers of shape (n, d), got {_advice(X)}")
        if issparse(X):
            raise InputError(
                f"X must be dense, got a sparse {type(X).__name__}; call X.toarray(), in parts "
                "if it is large"
            )
        try:
            return np.asarray(
                validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
            )
        except ValueError as error:
            raise InputError(str(error)) from None

    def _rows(self, rows: np.ndarray, first: int) -> np.ndarray:
        """A block of X as `_logits` takes it: double and finite; `first` is its first row in X."""
        numbers = np.asarray(rows, np.float64)
        if not np.isfinite(numbers).all():
            row, column = np.argwhere(~np.isfinite(numbers))[0]
            value = "NaN" if np.isnan(numbers[row, column]) else "infinity"
            raise InputError(
                f"X must be finite, got {value} in row {first + row}, column {column}; drop or "
                "fill such rows"
            )
        return numbers

    def _training_rows(self, X: Any, y: Any = None) -> np.ndarray:
        """All of X, checked, for `fit`; y must have as many rows. Sets n_features_in_."""
        rows = self._check_X(X, reset=True)
        check_length(y, len(rows))
        return self._rows(rows, 0)

    @abstractmethod
    def _logits(self, rows: np.ndarray) -> np.ndarray:
        """Logits of a block of checked rows, shape (rows, b)."""

    @property
    def _has_query_map(self) -> bool:
        """Whether the fitted method encodes queries by a map of their own."""
        return False

    def _query_logits(self, rows: np.ndarray) -> np.ndarray:
        """Weights of a block of checked rows as queries, shape (rows, b)."""
        return self._logits(rows)

    @abstractmethod
    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What `fit` learned, for a file: arrays by name, and facts that JSON can hold."""

    @abstractmethod
    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        """Set what `_state` returned; whatever does not fit is a FileFormatError.

        Parameters, and n_features_in_ where the method has it, are set before the call.
        """

    @abstractmethod
    def _torch_module(self) -> Any:
        """A torch module that maps raw float32 rows to the logits, for export."""

    def _query_torch_module(self) -> Any:
        """The same for queries, which are encoded as items unless a method says otherwise."""
        return self._torch_module()

    def _row_shape(self) -> tuple[int, ...]:
        """Shape of one raw row, for export."""
        return (self.n_features_in_,)

    def _saved_params(self) -> dict[str, Any]:
        """The parameters that `save` writes; those left out have their defaults after `load`."""
        params = self.get_params(deep=False)
        return {name: value for name, value in params.items() if name not in self._unsaved_params}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are uint8 whatever X is
        tags.target_tags.required = self._requires_y
        return tags


def _require_numbers(logits: np.ndarray, first: int) -> None:
    """Refuse logits that are no numbers, which have no sign; `first` is their first row in X."""
    is_finite = np.isfinite(logits).all(axis=1)
    if not is_finite.all():
        raise InputError(
            f"X must have logits that are finite numbers, those of row {first + is_finite.argmin()}"
            " are not: its values are too large for this model, or the weights of the model are"
        )


def _advice(X: Affinity | BinaryCodes) -> str:
    """What came instead of rows, and where it belongs."""
    if isinstance(X, Affinity):
        return f"an affinity ({type(X).__name__}); pass the rows as X and the affinity as y"
    return "BinaryCodes, which are encoded already; pass codes.bits() to use their bits as features"
