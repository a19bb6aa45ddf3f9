"""Distilled maps: one map gives items their bits, another gives queries their weights.

A query is one vector, seen once, so nothing forces it to be bits. An item x has the signs of
V'x + c, a query q the weights U'q + e, and the score <U'q + e, sign(V'x + c)> is what `search_real`
ranks by. Both maps are learned from rows alone: the scores are to rank as exact cosines do, of the
rows themselves or of rows that were drawn to the groups that they resemble (`smoothing`).

Where there are bits enough, the signs are only where an item's code starts: its bits are then
chosen together, so that U b is near to the item (`descent`).

Notation:
    x, q  rows, scaled to length 1    V, c  map of the items    U, e  map of the queries
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.errors import FileFormatError, InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import (
    choice,
    fact,
    integer,
    learned,
    optional,
    parameter,
    positive,
)
from rankbits.methods.shallow.distilled.training import Maps, start_from_itq, train_maps
from rankbits.methods.shallow.shared.bitwise import signs_of
from rankbits.methods.shallow.shared.descent import ALONG, N_SWEEPS, descend, learn_decoder
from rankbits.methods.shallow.shared.unit_hasher import UnitHasher

_DESCENT_BITS = 128  # from which on bits are chosen together


class Distilled(UnitHasher):
    """Codes for real-valued queries, learned without labels to rank as cosines do.

    `encode` gives items their bits and `project_queries` gives queries their weights, for
    `search_real`. The weights are a linear map of the query. The bits of an item are of one of two
    kinds, and both start from ITQ [1]_.

    Signs of planes are trained together with the weights: the softmax of a query's scores over a
    list of items is to equal that of its exact cosines, as in distillation [2]_ and listwise
    ranking [3]_. The signs lend their gradient from tanh. Bits by descent are chosen together, so
    that the row they stand for is near to the item, errors along the item counting most [4]_; what
    they stand for is learned in turns with them. With few bits trained planes rank better, with
    more of them descent does, above all for queries that do not resemble the items. Of more than
    20,000 rows of X, so many are drawn to learn from.

    Parameters
    ----------
    items : {"auto", "planes", "descent"}, default="auto"
        How the bits of an item are chosen. "auto" takes "descent" from 128 bits on, unless n_groups
        is set, or n_steps, which is of planes.
    temperature : float, default=0.27
        Of planes: temperature of the softmax, in standard deviations of the cosines. The smaller,
        the more the top of the list counts: 0.27 is for lists of 10 to 100 items; for all that
        resembles a query, hundreds of items deep, take 0.6 or more. It must be positive.
    n_groups : int, default=0
        How many groups of rows there are to which rows, of items and of queries, are drawn before
        anything else. 0 keeps the exact cosines, to find what float vectors find first. Take about
        256 for large groups of rows that belong together, such as classes: rows of a group correct
        each other there.
    n_steps : int or None, default=None
        Of planes: steps of the training. None takes as many as make every row a query twelve
        times; 0 keeps ITQ's planes.

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
    smoothing_ : Smoothing or None
        Centers of the groups, and how rows are drawn to them.

    References
    ----------
    .. [1] Y. Gong, S. Lazebnik, "Iterative quantization: a procrustean approach to learning binary
       codes", CVPR 2011.
    .. [2] G. Hinton, O. Vinyals, J. Dean, "Distilling the knowledge in a neural network",
       arXiv:1503.02531, 2015.
    .. [3] Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li, "Learning to rank: from pairwise approach
       to listwise approach", ICML 2007.
    .. [4] R. Guo, P. Sun, E. Lindgren, Q. Geng, D. Simcha, F. Chern, S. Kumar, "Accelerating
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

    items: str = parameter("auto", choice("auto", "planes", "descent"))
    temperature: float = parameter(0.27, positive())
    n_groups: int = parameter(0, integer(0))
    n_steps: int | None = parameter(None, optional(integer(0)))
    random_state: Seed = RANDOM_STATE

    planes_: np.ndarray = learned("d", "b")
    offsets_: np.ndarray = learned("b")
    query_planes_: np.ndarray = learned("d", "b")
    query_offsets_: np.ndarray = learned("b")
    mean_: np.ndarray = learned("d")
    items_: str = fact(str)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn both maps from the rows of X.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : ignored
            Its length must be that of X.
        """
        kind, rng = self._choose_kind(), check_random_state(self.random_state)
        units, _ = self._learn_units(X, y, rng)
        start = start_from_itq(units, self.n_bits, rng)
        if kind == "descent":
            self._fit_descent(units, start)
        else:
            self._fit_planes(units, start, rng)
        self.items_ = kind
        return self

    def _fit_planes(self, units: np.ndarray, start: Maps, rng: np.random.RandomState) -> None:
        maps = train_maps(units, start, self.temperature, self.n_steps, rng)
        self.planes_, self.offsets_ = maps.planes, maps.offsets
        self.query_planes_, self.query_offsets_ = maps.query_planes, maps.query_offsets
        self.mean_ = np.zeros(units.shape[1])

    def _fit_descent(self, units: np.ndarray, start: Maps) -> None:
        decoder = learn_decoder(units, signs_of(units @ start.planes + start.offsets))
        self.planes_, self.offsets_ = decoder.start_planes, decoder.start_offsets
        self.query_planes_, self.query_offsets_ = decoder.planes, np.zeros(self.n_bits)
        self.mean_ = decoder.mean

    def _choose_kind(self) -> str:
        """The kind of bits that "auto" stands for; refuses steps for one that has none."""
        if self.n_steps is not None and self.items == "descent":
            raise InputError(
                f"items must be 'planes' or 'auto' with n_steps = {self.n_steps}, got "
                "'descent', which has no steps; leave n_steps out"
            )
        if self.items != "auto":
            return self.items
        is_long = self.n_bits >= _DESCENT_BITS and not self.n_groups and self.n_steps is None
        return "descent" if is_long else "planes"

    @property
    def _has_query_map(self) -> bool:
        return True

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        units = self._units(rows)
        logits: np.ndarray = units @ self.planes_ + self.offsets_
        if self.items_ == "planes":
            return logits
        codes, margins = descend(units, self.mean_, self.query_planes_, signs_of(logits), N_SWEEPS)
        # A sweep may end before every bit agrees with its margin: the bit counts.
        decided: np.ndarray = codes * np.abs(margins)
        return decided

    def _query_logits(self, rows: np.ndarray) -> np.ndarray:
        weights: np.ndarray = self._units(rows) @ self.query_planes_ + self.query_offsets_
        return weights

    def _torch_module(self) -> Any:
        from rankbits.methods.onnx_modules import DescendingRows, Planes

        start = Planes(self._unit_module(), self.planes_, self.offsets_)
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
        from rankbits.methods.onnx_modules import Planes

        return Planes(self._unit_module(), self.query_planes_, self.query_offsets_)
