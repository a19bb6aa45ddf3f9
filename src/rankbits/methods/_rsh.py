"""RSH: hyperplanes that keep the order of ranking lists.

Notation:
    q, x  a query and an item, centred      b  bits        D  coordinates of a row
    A     (D, b), orthonormal columns       S  the symmetric part of B, see `_rsh_lists`
"""

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.methods._anchors import RbfAnchors, draw_anchors
from rankbits.methods._geometry import spanned
from rankbits.methods._itq import least_loss_rotation, random_rotation
from rankbits.methods._linear import LinearHasher, require_arrays
from rankbits.methods._rsh_alm import augmented_lagrangian
from rankbits.methods._rsh_eigh import leading_eigenvectors, require_directions
from rankbits.methods._rsh_lists import mean_margins
from rankbits.methods._supervision import Supervision, supervise

_SOLVERS, _ROTATIONS = ("eigh", "alm"), ("itq", "random")
_TURNS = 50  # of ITQ
_RECORD = {"table", "round", "objective", "violation", "steps", "rho"}


class RSH(LinearHasher):
    """Ranking-based supervised hashing: planes that keep the order of ranking lists [1]_.

    Of a query q, the projection A' shall have item i nearer than item j wherever q's list ranks i
    above j. Summed over all such triplets, q'A A'(x_i - x_j) is tr(A'SA), whose maximum under
    A'A = I are the eigenvectors of the b largest eigenvalues of S. The objective is the same for
    any rotation of A; bits are not, so the rotation is chosen afterwards.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length of a table, at most the directions in which the rows vary.
    n_queries : int or None, default=100
        Rows drawn as queries; each ranks all other rows. None takes all of them.
    solver : {"eigh", "alm"}, default="eigh"
        The eigenvectors, or the paper's augmented Lagrangian, which comes close to them, slower.
    rotation : {"itq", "random"} or None, default="itq"
        ITQ's rotation, which brings the training rows nearest to their signs; a random one; or what
        the solver gives, which is the paper's way.
    kernel : "rbf" or None, default=None
        Rank in the feature space of the RBF kernel, in the span of some training rows.
    n_anchors : int, default=500
        How many rows; with fewer rows in training, all of them.
    gamma : float or None, default=None
        Of the kernel exp(-gamma |x - y|^2); None takes 1 / the median of |x - y|^2.
    n_tables : int, default=1
        Tables of n_bits each, see `encode_tables`. Each draws its own queries. In later ones a
        triplet of i above j weighs 1 + exp(2 (d_i - d_j) / b), d the distance in the nearest of the
        tables so far: a table learns most where looking up the earlier ones fails.
    random_state : int, RandomState or None, default=None
        Seed of queries, anchors, rotations and ALM's start.

    Attributes
    ----------
    mean_ : ndarray of shape (D,)
        Mean of the training rows, or of their coordinates in feature space.
    planes_ : ndarray of shape (D, n_bits)
        Orthonormal normals of the first table's hyperplanes.
    tables_ : ndarray of shape (n_tables, D, n_bits)
        Those of every table.
    anchors_ : RbfAnchors or None
        The map to D coordinates in feature space; without a kernel D is n_features.
    history_ : list of dict
        Rounds of the solver for each table: `objective`, the mean of q'A A'(x_i - x_j) over the
        triplets; `violation`, |A'A - I|; `steps` and `rho` of ALM. One round for "eigh".

    .. [1] J. Wang, W. Liu, A. X. Sun, Y.-G. Jiang, "Learning hash codes with listwise supervision",
       ICCV 2013.

    >>> rows = np.random.default_rng(0).standard_normal((60, 5))
    >>> RSH(n_bits=3, random_state=0).fit_transform(rows, rows[:, 0] > 0).shape
    (60, 1)
    """

    tables_: np.ndarray
    anchors_: RbfAnchors | None
    history_: list[dict[str, Any]]

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_queries: int | None = 100,
        solver: str = "eigh",
        rotation: str | None = "itq",
        kernel: str | None = None,
        n_anchors: int = 500,
        gamma: float | None = None,
        n_tables: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_queries = n_queries
        self.solver = solver
        self.rotation = rotation
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.gamma = gamma
        self.n_tables = n_tables
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the planes.

        Parameters
        ----------
        X : array of shape (n, features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Of multi-hot rows the shared tags are counted. An affinity may hold ranks: the higher
            the level, the further up. None takes the nearest 5, 1, 0.2 and 0.1 % of training pairs
            as levels 1, 2, 5, 10.
        """
        n_bits, rng = self._asked_bits(), check_random_state(self.random_state)
        n_tables = self._check_parameters()
        rows = self._training_rows(X)
        if len(rows) < 2:
            raise InputError("X must have at least two rows to rank, got n_samples = 1")
        if (rows == rows[0]).all():
            raise InputError("X must vary, all its rows are equal; no direction tells them apart")
        supervision = supervise(rows, y, graded=True)
        self.anchors_ = None
        if self.kernel is not None:
            self.anchors_ = draw_anchors(rows, self.n_anchors, self.gamma, rng)
        coordinates = self._coordinates(rows)
        self.mean_ = coordinates.mean(axis=0)
        parts, span = spanned(coordinates - self.mean_)
        require_directions(parts, n_bits)
        self.history_, tables, codes = [], list[np.ndarray](), list[BinaryCodes]()
        for _ in range(n_tables):
            planes = self._table(parts, supervision, codes, rng)
            codes.append(BinaryCodes.from_logits(parts @ planes))
            tables.append(span @ planes)
        self.tables_ = np.stack(tables)
        self.planes_ = self.tables_[0]
        return self

    def encode_tables(self, X: Any) -> list[BinaryCodes]:
        """Codes of every table, n_bits each; the first are those of `encode`.

        `rankbits.index.TablesIndex` searches them together.
        """
        check_is_fitted(self)
        codes = []
        for planes in self.tables_:
            of_table = copy(self)
            of_table.planes_ = planes
            codes.append(of_table.encode(X))
        return codes

    def _table(
        self,
        parts: np.ndarray,
        supervision: Supervision,
        earlier: list[BinaryCodes],
        rng: np.random.RandomState,
    ) -> np.ndarray:
        """Planes of the next table, (r, b), for rows in their span, (n, r)."""
        n_bits = self._asked_bits()
        matrix = mean_margins(parts, supervision, self.n_queries, earlier, rng)
        if self.solver == "alm":
            planes, rounds = augmented_lagrangian(matrix, n_bits, rng)
        else:
            planes, rounds = leading_eigenvectors(matrix, n_bits)
        for number, found in enumerate(rounds):
            self.history_.append({"table": len(earlier), "round": number, **found})
        if self.rotation is None:
            return planes
        turn = random_rotation(n_bits, rng)
        if self.rotation == "itq":
            turn, _ = least_loss_rotation(parts @ planes, turn, _TURNS)
        rotated: np.ndarray = planes @ turn
        return rotated

    def _check_parameters(self) -> int:
        """Refuse parameters that are none; the number of tables."""
        _check.choice("solver", self.solver, _SOLVERS)
        if self.rotation is not None:
            _check.choice("rotation", self.rotation, _ROTATIONS)
        if self.kernel is not None:
            _check.choice("kernel", self.kernel, ("rbf",))
        if self.n_queries is not None:
            _check.whole("n_queries", self.n_queries, 1)
        return _check.whole("n_tables", self.n_tables, 1)

    def _coordinates(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.anchors_ is None else self.anchors_(rows)

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        return super()._logits(self._coordinates(rows))

    def _block_rows(self, row_shape: tuple[int, ...]) -> int:
        n_anchors = 1 if self.anchors_ is None else len(self.anchors_.rows)
        return min(super()._block_rows(row_shape), super()._block_rows((n_anchors,)))

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, facts = {"mean": self.mean_, "tables": self.tables_}, {"history": self.history_}
        if self.anchors_ is not None:
            arrays |= {"anchors": self.anchors_.rows, "basis": self.anchors_.basis}
            arrays["gamma"] = np.array([self.anchors_.gamma])
        return arrays, facts

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        shapes: dict[str, tuple[str, ...]] = {"mean": ("D",), "tables": ("tables", "D", "b")}
        sizes = {"d": self.n_features_in_, "one": 1}
        if self.kernel is None:
            sizes["D"] = self.n_features_in_
        else:
            shapes |= {"anchors": ("m", "d"), "basis": ("m", "D"), "gamma": ("one",)}
        require_arrays(arrays, {}, shapes, sizes)
        if len(arrays["tables"]) == 0:
            raise FileFormatError("the model's tables must not be empty")
        if set(facts) != {"history"} or not _is_record(facts["history"]):
            raise FileFormatError("the model's facts must be history, rounds of the solver")
        self.mean_, self.tables_, self.history_ = arrays["mean"], arrays["tables"], facts["history"]
        self.planes_ = self.tables_[0]
        self.anchors_ = None
        if self.kernel is not None:
            gamma = float(arrays["gamma"][0])
            self.anchors_ = RbfAnchors(arrays["anchors"], arrays["basis"], gamma)

    def _torch_module(self) -> Any:
        planes = super()._torch_module()
        if self.anchors_ is None:
            return planes
        from torch import nn

        from rankbits.methods._anchors_onnx import AnchorCoordinates

        return nn.Sequential(AnchorCoordinates(self.anchors_), planes)


def _is_record(history: Any) -> bool:
    return isinstance(history, list) and all(
        isinstance(row, dict) and set(row) == _RECORD for row in history
    )
