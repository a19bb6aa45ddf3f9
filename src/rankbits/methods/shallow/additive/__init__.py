"""Additive codes: every four bits of an item name one of 16 vectors, whose sum is near to the item.

The tables of `search_real` have an entry for each value of four bits anyway. So a query may give 16
numbers for every four bits, in place of four weights that add up, and be scanned at the same speed:
its products with the 16 vectors. Their sum is its product with what the code stands for.

Notation:
    x, q  rows, scaled to length 1        C  vectors (16 m, d) of m codebooks
"""

from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.affinity import Affinity
from rankbits.codes import MAX_BITS
from rankbits.codes.sums import SumSearch, bits_to_entries, count_books, entries_to_bits
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.labels import UNLABELLED, find_labelled, read_labels
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import attribute, choice, integer, learned, parameter
from rankbits.methods.shallow.additive.class_features import ClassFeatures, learn_class_features
from rankbits.methods.shallow.additive.codebooks import (
    N_RESTARTS,
    find_entries,
    learn_codebooks,
    measure_margins,
)
from rankbits.methods.shallow.shared.descent import ALONG
from rankbits.methods.shallow.shared.groups import draw_rows
from rankbits.methods.shallow.shared.learned import Shapes, check_arrays
from rankbits.methods.shallow.shared.rotation import itq_planes
from rankbits.methods.shallow.shared.unit_hasher import MOST_ROWS, UnitHasher

_CLASSES: Shapes = {  # the fields of ClassFeatures, in their order
    "center": ("d",),
    "metric": ("d", "d"),
    "hidden": ("k", "d", "h"),
    "hidden_offsets": ("k", "h"),
    "outputs": ("k", "h", "c"),
    "output_offsets": ("k", "c"),
}
_MOST_BITS = 1024
_ALONG_GROWING = 10.0  # η with classes="grow": sums must not be short for rows of new classes
_SMALLEST = np.finfo(np.float32).tiny  # size of a logit, so that its sign stays in float32


def _check_length(name: str, value: Any) -> int:
    n_bits = _check.whole(name, value, 1, MAX_BITS)
    if n_bits > _MOST_BITS:
        raise InputError(f"{name} must be at most {_MOST_BITS} for additive, got {n_bits}")
    return n_bits


class Additive(UnitHasher):
    """Additive codes for real-valued queries, learned without labels to rank as cosines do.

    Every four bits of a code name one of 16 vectors, and the code stands for their sum [1]_, which
    a local search [2]_ brings near to the item, errors along the item counting most [3]_.
    `project_queries` gives a query 16 numbers for every four bits, for `search_real`: its products
    with the vectors. The codes keep more of the float ranking than bits that each have a weight,
    at the same bytes and the same speed of search, but bits mean nothing by themselves: by Hamming
    distance such codes rank badly, so queries cannot be encoded. Of more than 20,000 rows of X, so
    many are drawn to learn from.

    Parameters
    ----------
    n_bits : int, 1 to 1024, default=32
        Code length. Products of all vectors with each other take 128 n_bits² bytes.
    classes : {"ignore", "grow"}, default="ignore"
        Whether class labels y are ignored, or say what belongs together, for a collection that will
        have other classes too. With "grow" codes stand for how rows look, in a metric that the
        labels teach, together with their class posterior; a query weighs the two by how sure its
        class is. Rows of X without a label, which may be of new classes, have -1 in y: codes are
        learned for them too, and so is what tells them from the known classes. Give all rows of
        the collection that there are.
    n_groups : int, default=0
        How many groups of rows there are to which rows, of items and of queries, are drawn before
        anything else. 0 keeps the exact cosines, to find what float vectors find first. Take about
        256 for large groups of rows that belong together, such as classes. It must be 0 with
        classes="grow".

    Attributes
    ----------
    vectors_ : ndarray of shape (16 * ceil(n_bits / 4), n_features + known classes)
        C: 16 vectors for every four bits, those of the first bits first. If n_bits is no multiple
        of four, the vectors that spare bits would name are zeros.
    smoothing_ : Smoothing or None
        Centers of the groups, and how rows are drawn to them.
    class_features_ : ClassFeatures or None
        The metric and the class posterior of classes="grow".

    References
    ----------
    .. [1] A. Babenko, V. Lempitsky, "Additive quantization for extreme vector compression", CVPR
       2014.
    .. [2] J. Martinez, S. Zakhmi, H. Hoos, J. Little, "LSQ++: lower running time and higher recall
       in multi-codebook quantization", ECCV 2018.
    .. [3] R. Guo, P. Sun, E. Lindgren, Q. Geng, D. Simcha, F. Chern, S. Kumar, "Accelerating
       large-scale inference with anisotropic vector quantization", ICML 2020.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> hasher = Additive(16, random_state=0).fit(data.database_x)
    >>> hasher.encode(data.database_x[:3])
    BinaryCodes(n=3, n_bits=16, side='items')
    >>> hasher.project_queries(data.query_x[:2]).shape
    (2, 64)
    """

    n_bits: int = field(default=32, kw_only=False, metadata={"check": _check_length})
    classes: str = parameter("ignore", choice("ignore", "grow"))
    n_groups: int = parameter(0, integer(0))
    random_state: Seed = RANDOM_STATE

    query_kinds: ClassVar[tuple[str, ...]] = ("real",)

    vectors_: np.ndarray = learned("v", "d")
    class_features_: ClassFeatures | None = attribute()

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the codebooks from the rows of X.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored unless classes="grow"
            Class labels of shape (n,) for that, -1 for rows whose class is not known. Its length
            must be that of X.
        """
        n_bits, rng = self.n_bits, check_random_state(self.random_state)
        labels = self._read_classes(y)
        features, drawn = self._learn_units(X, y, rng)
        self.class_features_ = None
        if labels is not None:
            others = features[~find_labelled(labels)[drawn]]
            rows, classes = self._choose_labelled(X, labels, features, drawn, rng)
            self.class_features_ = learn_class_features(rows, classes, others, rng)
            features = self.class_features_.of_items(features)
        planes, offsets = itq_planes(features, n_bits, rng)
        first = bits_to_entries(features @ planes + offsets > 0)
        self.vectors_ = learn_codebooks(features, first, n_bits, along=self._along)
        return self

    @property
    def _along(self) -> float:
        return ALONG if self.class_features_ is None else _ALONG_GROWING

    def _choose_labelled(
        self,
        X: Any,
        labels: np.ndarray,
        units: np.ndarray,
        drawn: np.ndarray,
        rng: np.random.RandomState,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows at length 1 with a class label, and their labels.

        Codes are learned from drawn rows of all kinds. Labels are too rare to be drawn with them.
        """
        is_labelled = find_labelled(labels)
        if is_labelled.all():
            return units, labels[drawn]
        chosen = draw_rows(np.flatnonzero(is_labelled), MOST_ROWS, rng)
        return self._units(self._training_rows(X)[chosen]), labels[chosen]

    def _read_classes(self, y: Any) -> np.ndarray | None:
        """The class labels, if they are to be used."""
        if self.classes == "ignore":
            return None
        if self.n_groups:
            raise InputError(f"n_groups must be 0 with classes='grow', got {self.n_groups!r}")
        labels = None if y is None or isinstance(y, Affinity) else read_labels(y)
        if labels is None or labels.ndim != 1:
            raise InputError("classes='grow' needs class labels as y, one for each row")
        if len(np.unique(labels[find_labelled(labels)])) < 2:
            raise InputError(
                "y must have two classes or more with classes='grow', beside "
                f"{UNLABELLED} for rows without a label"
            )
        return labels

    @property
    def _has_query_map(self) -> bool:
        return True

    def _block_rows(self, row_shape: tuple[int, ...]) -> int:
        return max(1, super()._block_rows(row_shape) // 4)  # a row has four numbers for each bit

    def _search(self) -> SumSearch:
        return SumSearch.of_vectors(self.vectors_, self.n_bits_, self._along, N_RESTARTS)

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        units, search = self._units(rows), self._search()
        if self.class_features_ is not None:
            units = self.class_features_.of_items(units)
        start = np.zeros((len(rows), count_books(self.n_bits_)), np.uint8)
        entries = find_entries(units, self.vectors_, search, start)
        squares = (units**2).sum(axis=1)
        margins = measure_margins(search, units @ self.vectors_.T, squares, entries)
        sizes = np.maximum(np.abs(margins[:, : self.n_bits_]), _SMALLEST)
        # Sweeps may end before every bit agrees with its margin: the bit counts.
        logits: np.ndarray = np.where(entries_to_bits(entries, self.n_bits_) == 1, sizes, -sizes)
        return logits

    def _query_logits(self, rows: np.ndarray) -> np.ndarray:
        units = self._units(rows)
        if self.class_features_ is not None:
            units = self.class_features_.of_queries(units)
        tables: np.ndarray = units @ self.vectors_.T
        return tables

    def _n_columns(self) -> int:
        n_classes = 0 if self.class_features_ is None else self.class_features_.n_classes
        return int(self.n_features_in_) + n_classes

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, facts = super()._state()
        if self.class_features_ is not None:
            arrays |= {f"class_{name}": getattr(self.class_features_, name) for name in _CLASSES}
        return arrays, facts

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        shapes = {f"class_{name}": shape for name, shape in _CLASSES.items()}
        of_classes = {name: arrays[name] for name in shapes if name in arrays}
        self.class_features_ = None
        if of_classes:
            check_arrays(of_classes, shapes, {"d": int(self.n_features_in_)})
            n_known = arrays["vectors"].shape[1] - int(self.n_features_in_)
            has_others = of_classes["class_output_offsets"].shape[1] == n_known + 1
            parts = (of_classes[name] for name in shapes)
            self.class_features_ = ClassFeatures(*parts, has_others=has_others)
        others = {name: array for name, array in arrays.items() if name not in shapes}
        super()._restore(others, facts)
        if len(self.vectors_) != 16 * count_books(self.n_bits):
            raise FileFormatError(
                f"the model must have {16 * count_books(self.n_bits)} vectors for "
                f"{self.n_bits} bits, got {len(self.vectors_)}"
            )

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_additive import SearchedSums

        return SearchedSums(
            self._feature_module("of_items"), self.vectors_, self._search(), self.n_bits_
        )

    def _query_torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import Planes

        units = self._feature_module("of_queries")
        return Planes(units, self.vectors_.T, np.zeros(len(self.vectors_)))

    def _feature_module(self, side: str) -> Any:
        """A torch module of what the vectors are compared with, for items or for queries."""
        from rankbits.methods.onnx_additive import ClassRows

        units = self._unit_module()
        return (
            units if self.class_features_ is None else ClassRows(units, self.class_features_, side)
        )
