"""Distilled maps: one map gives items their bits, another gives queries their weights.

A query is one vector, seen once, so nothing forces it to be bits. An item x has the signs of
V'x + c, a query q the weights U'q + e, and the score <U'q + e, sign(V'x + c)> is what `search_real`
ranks by. Both maps are learned from rows alone: the scores are to rank as exact cosines do, of the
rows themselves or of rows that were smoothed over their nearest neighbors (`smoothing`).

Where there are bits enough, the signs are only where an item's code starts: its bits are then
chosen together, so that U b is near to the item (`descent`).

Notation:
    x, q  rows, scaled to length 1    V, c  map of the items    U, e  map of the queries
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.shallow.descent import ALONG, N_SWEEPS, descend, learn_decoder
from rankbits.methods.shallow.distilled_training import Maps, train_maps
from rankbits.methods.shallow.learned import ArrayHasher, Shapes
from rankbits.methods.shallow.principal import leading_directions
from rankbits.methods.shallow.rotation import learn_rotation, random_rotation
from rankbits.methods.shallow.smoothing import smooth_rows

_MOST_ROWS = 20_000  # that are learned from
_DESCENT_BITS = 128  # from which on bits are chosen together


class Distilled(ArrayHasher):
    """Codes for real-valued queries, learned without labels to rank as cosines do.

    `encode` gives items their bits and `project_queries` gives queries their weights, for
    `search_real`. The weights are a linear map of the query. The bits of an item are of one of two
    kinds, and both start from ITQ [1]_.

    Signs of planes are trained together with the weights: the softmax of a query's scores over a
    list of items is to equal that of its exact cosines, as in distillation [2]_ and listwise
    ranking [3]_. The signs lend their gradient from tanh. Bits by descent are chosen together, so
    that the row they stand for is near to the item, errors along the item counting most [5]_; what
    they stand for is learned in turns with them. With few bits trained planes rank better, with
    more of them descent does, above all for queries that do not resemble the items.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length.
    items : {"auto", "planes", "descent"}, default="auto"
        How the bits of an item are chosen. "auto" takes "descent" from 128 bits on, unless
        n_neighbors or n_steps is set, which are of planes.
    temperature : float, default=0.27
        Of planes: temperature of the softmax, in standard deviations of the cosines. The smaller,
        the more the top of the list counts: 0.27 is for lists of 10 to 100 items; for all that
        resembles a query, hundreds of items deep, take 0.6 or more. It must be positive.
    n_neighbors : int, default=0
        Of planes: how many nearest rows each row is averaged with before the cosines are taken
        that are learned [4]_. 0 learns the exact cosines, to find what float vectors find first.
        Take about 50, and temperature=0.6, for large groups of rows that belong together, such as
        classes: near rows correct each other there. Rows are smoothed in training only: queries
        and new items are encoded as they are.
    n_steps : int or None, default=None
        Of planes: steps of the training. None takes as many as make every row a query twelve
        times; 0 keeps ITQ's planes.
    random_state : int, RandomState or None, default=None
        Seed of the first rotation and of the rows that are drawn. Of more than 20,000 rows of X, so
        many are drawn to learn from.

    Attributes
    ----------
    items_ : {"planes", "descent"}
        How the bits of an item are chosen.
    planes_ : ndarray of shape (n_features, n_bits)
        V, the map of the items, or where their descent starts.
    offsets_ : ndarray of shape (n_bits,)
        c.
    mean_ : ndarray of shape (n_features,)
        What a code of no bits would stand for in a descent: the mean of the training rows at length
        1. Zeros for planes.
    query_planes_ : ndarray of shape (n_features, n_bits)
        U, the map of the queries, which decodes codes in a descent.
    query_offsets_ : ndarray of shape (n_bits,)
        e.

    References
    ----------
    .. [1] Y. Gong, S. Lazebnik, "Iterative quantization: a procrustean approach to learning binary
       codes", CVPR 2011.
    .. [2] G. Hinton, O. Vinyals, J. Dean, "Distilling the knowledge in a neural network",
       arXiv:1503.02531, 2015.
    .. [3] Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li, "Learning to rank: from pairwise approach
       to listwise approach", ICML 2007.
    .. [4] F. Radenović, G. Tolias, O. Chum, "Fine-tuning CNN image retrieval with no human
       annotation", IEEE TPAMI 2019, where queries are averaged with their neighbors.
    .. [5] R. Guo, P. Sun, E. Lindgren, Q. Geng, D. Simcha, F. Chern, S. Kumar, "Accelerating
       large-scale inference with anisotropic vector quantization", ICML 2020.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> hasher = Distilled(16, random_state=0).fit(data.database_x)
    >>> hasher.encode(data.database_x[:3])
    BinaryCodes(n=3, n_bits=16, side='items')
    >>> hasher.project_queries(data.query_x[:2]).shape
    (2, 16)
    """

    _arrays: ClassVar[Shapes] = {
        "planes": ("d", "b"),
        "offsets": ("b",),
        "query_planes": ("d", "b"),
        "query_offsets": ("b",),
        "mean": ("d",),
    }
    _facts: ClassVar[dict[str, type]] = {"items": str}

    planes_: np.ndarray
    offsets_: np.ndarray
    query_planes_: np.ndarray
    query_offsets_: np.ndarray
    mean_: np.ndarray
    items_: str

    def __init__(
        self,
        n_bits: int = 32,
        *,
        items: str = "auto",
        temperature: float = 0.27,
        n_neighbors: int = 0,
        n_steps: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.items = items
        self.temperature = temperature
        self.n_neighbors = n_neighbors
        self.n_steps = n_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn both maps from the rows of X.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        n_bits = self._code_length()
        kind, temperature = self._check_kind(n_bits), self._check_temperature()
        units = scale_to_units(self._training_rows(X, y))
        _require_directions(units)
        rng = check_random_state(self.random_state)
        if len(units) > _MOST_ROWS:
            units = units[rng.permutation(len(units))[:_MOST_ROWS]]
        if kind == "descent":
            self._fit_descent(units, n_bits, rng)
        else:
            self._fit_planes(units, n_bits, temperature, rng)
        self.items_ = kind
        return self

    def _fit_planes(
        self, units: np.ndarray, n_bits: int, temperature: float, rng: np.random.RandomState
    ) -> None:
        teacher = smooth_rows(units, self.n_neighbors)
        start = start_from_itq(teacher, n_bits, rng)
        maps = train_maps(units, teacher, start, temperature, self.n_steps, rng)
        self.planes_, self.offsets_ = maps.planes, maps.offsets
        self.query_planes_, self.query_offsets_ = maps.query_planes, maps.query_offsets
        self.mean_ = np.zeros(units.shape[1])

    def _fit_descent(self, units: np.ndarray, n_bits: int, rng: np.random.RandomState) -> None:
        start = start_from_itq(units, n_bits, rng)
        decoder = learn_decoder(units, signs_of(units @ start.planes + start.offsets))
        self.planes_, self.offsets_ = decoder.start_planes, decoder.start_offsets
        self.query_planes_, self.query_offsets_ = decoder.planes, np.zeros(n_bits)
        self.mean_ = decoder.mean

    def _check_kind(self, n_bits: int) -> str:
        """The kind of bits that "auto" stands for; refuses parameters that do not fit it."""
        kind = _check.choice("items", self.items, ("auto", "planes", "descent"))
        is_set = _check.whole("n_neighbors", self.n_neighbors, 0) > 0
        if self.n_steps is not None:
            is_set |= _check.whole("n_steps", self.n_steps, 0) >= 0
        if kind == "descent" and is_set:
            raise InputError(
                f"items must be 'planes' or 'auto' with n_neighbors = {self.n_neighbors} and "
                f"n_steps = {self.n_steps}, got 'descent', which has neither; leave them out"
            )
        if kind != "auto":
            return kind
        return "descent" if n_bits >= _DESCENT_BITS and not is_set else "planes"

    def _check_temperature(self) -> float:
        temperature = self.temperature
        is_number = isinstance(temperature, int | float | np.number)
        if not is_number or not 0 < temperature < np.inf:
            raise InputError(f"temperature must be a positive number, got {temperature!r}")
        return float(temperature)

    @property
    def n_bits_(self) -> int:
        """Length of the codes of the fitted method."""
        return int(self.planes_.shape[1])

    @property
    def _has_query_map(self) -> bool:
        return True

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        units = scale_to_units(rows)
        logits: np.ndarray = units @ self.planes_ + self.offsets_
        if self.items_ == "planes":
            return logits
        codes, margins = descend(units, self.mean_, self.query_planes_, signs_of(logits), N_SWEEPS)
        # A sweep may end before every bit agrees with its margin: the bit counts.
        decided: np.ndarray = codes * np.abs(margins)
        return decided

    def _query_logits(self, rows: np.ndarray) -> np.ndarray:
        weights: np.ndarray = scale_to_units(rows) @ self.query_planes_ + self.query_offsets_
        return weights

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import DescendingRows, UnitRows

        start = UnitRows(self.planes_, self.offsets_)
        if self.items_ == "planes":
            return start
        return DescendingRows(start, self.mean_, self.query_planes_, ALONG, N_SWEEPS)

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        if "items" not in facts:  # a model from before there were two kinds of bits
            arrays = arrays | {"mean": np.zeros(self._n_columns())}
            facts = facts | {"items": "planes"}
        super()._restore(arrays, facts)
        if self.items_ not in ("planes", "descent"):
            raise FileFormatError(
                f"the model's items must be 'planes' or 'descent', got {self.items_!r}"
            )

    def _query_torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import UnitRows

        return UnitRows(self.query_planes_, self.query_offsets_)


def signs_of(logits: np.ndarray) -> np.ndarray:
    """1 where a logit is above 0, else -1."""
    return np.where(logits > 0, 1.0, -1.0)


def scale_to_units(rows: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1; rows of zeros stay.

    A row is first divided by its largest number, whose square may be too large or too small.
    """
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    units: np.ndarray = scaled / np.where(lengths > 0, lengths, 1)
    return units


def start_from_itq(units: np.ndarray, n_bits: int, rng: np.random.RandomState) -> Maps:
    """ITQ's planes as both maps, scaled so that |V'x + c| is 1 in the mean.

    Where bits outnumber the directions in which the rows vary, ITQ's rotation is wide. Queries are
    not centered: what the mean adds to their scores is the same for every item.
    """
    mean = units.mean(axis=0)
    directions = leading_directions(units - mean, n_bits)
    parts = (units - mean) @ directions
    start = random_rotation(n_bits, rng)[: directions.shape[1]]
    rotation, _ = learn_rotation(parts, start)
    planes = directions @ rotation / np.abs(parts @ rotation).mean()
    return Maps(planes, -mean @ planes, planes.copy(), np.zeros(n_bits))


def _require_directions(units: np.ndarray) -> None:
    if np.abs(units - units[0]).max() < np.finfo(np.float32).eps:
        n, d = units.shape
        raise InputError(
            "X must have rows of different directions, but all its rows point the same way; "
            f"got n_samples = {n}, n_features = {d}"
        )
