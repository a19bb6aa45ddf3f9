"""RSH: hyperplanes that keep the order of ranking lists.

What differs from the paper:
- B is summed from sorted lists, not from triplets (`rsh_lists`).
- Only the symmetric part of B counts, and the eigenvectors of its largest eigenvalues are the
  global maximum, so they are the default. ALM, the paper's way (`rsh_alm`), comes close to them.
- The objective is the same for any rotation of A, the signs are not, and the paper does not say
  which it takes. ITQ's rotation is the default; it was the best on held-out rows at every length.
- The kernel and several tables are the paper's future work. Coordinates in feature space are
  orthonormal (Nyström), so that A'A = I means what it means without a kernel.
- A code length beyond the directions in which the rows vary is refused.

Notation:
    q, x  a query and an item, centered     b  bits        D  coordinates of a row
    A     (D, b), orthonormal columns       S  the symmetric part of B, see `lists`
"""

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankbits.codes import BinaryCodes
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import attribute, choice, fact, integer, optional, parameter
from rankbits.methods.shallow.rsh.alm import maximize_by_alm
from rankbits.methods.shallow.rsh.lists import mean_margins
from rankbits.methods.shallow.shared.eigenproblems import leading_eigenvectors
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.learned import Shapes
from rankbits.methods.shallow.shared.parameters import GAMMA, KERNEL
from rankbits.methods.shallow.shared.principal import (
    require_directions,
    require_variation,
    span_rows,
)
from rankbits.methods.shallow.shared.rotation import learn_rotation, random_rotation
from rankbits.methods.supervision import Supervision, supervise

_MORE = "several tables with n_tables, or kernel='rbf', which has as many directions as anchors"
_ROUND = ("table", "round", "objective", "violation", "steps", "rho")  # what a round records


class RSH(KernelHasher):
    """Ranking-based supervised hashing: planes that keep the order of ranking lists [1]_.

    The projection A' is to bring item i nearer to a query q than item j wherever q's list ranks i
    above j. Summed over all such triplets, q'A A'(x_i - x_j) is tr(A'SA). Under A'A = I its maximum
    are the eigenvectors of the b largest eigenvalues of S. The objective is the same for any
    rotation of A but the bits are not, so the rotation is chosen afterwards.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length of a table, at most the directions in which the rows vary.
    n_queries : int or None, default=100
        Rows drawn as queries; each ranks all other rows. None takes all rows.
    solver : {"eigh", "alm"}, default="eigh"
        The eigenvectors, or the paper's augmented Lagrangian, which is slower and comes close.
    rotation : {"itq", "random"} or None, default="itq"
        ITQ's rotation, which brings the training rows nearest to their signs; a random one; or None
        for what the solver gives, as in the paper.
    kernel : {"rbf"} or None, default=None
        Rank in the feature space of the RBF kernel, in the span of some training rows.
    n_anchors : int, default=500
        Number of those rows; with fewer rows in training, all of them.
    n_tables : int, default=1
        Tables of n_bits each, see `encode_tables`. Each draws its own queries. In later tables a
        triplet of i above j weighs 1 + exp(2 (d_i - d_j) / b), where d is the distance in the
        nearest of the tables so far: a table learns most where looking up the earlier ones fails.

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
        triplets; `violation`, |A'A - I|; `steps` and `rho` of "alm". One round for "eigh".

    References
    ----------
    .. [1] J. Wang, W. Liu, A. X. Sun, Y.-G. Jiang, "Learning hash codes with listwise supervision",
       ICCV 2013.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((60, 5))
    >>> RSH(n_bits=3, random_state=0).fit_transform(rows, rows[:, 0] > 0).shape
    (60, 1)
    """

    n_queries: int | None = parameter(100, optional(integer(1)))
    solver: str = parameter("eigh", choice("eigh", "alm"))
    rotation: str | None = parameter("itq", optional(choice("itq", "random")))
    kernel: str | None = KERNEL
    n_anchors: int = parameter(500, integer(1))
    gamma: float | None = GAMMA
    n_tables: int = parameter(1, integer(1))
    random_state: Seed = RANDOM_STATE

    _arrays: ClassVar[Shapes] = {"mean": ("d",), "tables": ("tables", "d", "b")}

    tables_: np.ndarray = attribute()
    history_: list[dict[str, Any]] = fact(list)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the planes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            For multi-hot rows the shared tags are counted. An affinity may hold ranks: the higher
            the level, the further up. None takes each row's own ranking of the others by distance:
            its first 10, 50, 200 and 1,000 have the levels 10, 5, 2 and 1.
        """
        rng = check_random_state(self.random_state)
        rows = self._training_rows(X, y)
        if len(rows) < 2:
            raise InputError("X must have at least two rows to rank, got n_samples = 1")
        require_variation(rows)
        supervision = supervise(rows, y, graded=True)
        coordinates = self._draw_anchors(rows, rng)
        self.mean_ = coordinates.mean(axis=0)
        parts, basis = span_rows(coordinates - self.mean_)
        require_directions(parts, self.n_bits, _MORE)
        self.history_, tables, codes = [], list[np.ndarray](), list[BinaryCodes]()
        for _ in range(self.n_tables):
            planes = self._learn_table(parts, supervision, codes, rng)
            codes.append(BinaryCodes.from_logits(parts @ planes))
            tables.append(basis @ planes)
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
            hasher_of_table = copy(self)
            hasher_of_table.planes_ = planes
            codes.append(hasher_of_table.encode(X))
        return codes

    def _learn_table(
        self,
        parts: np.ndarray,
        supervision: Supervision,
        earlier: list[BinaryCodes],
        rng: np.random.RandomState,
    ) -> np.ndarray:
        """Planes (r, b) of the next table for rows (n, r); `earlier` has the codes so far."""
        matrix = mean_margins(parts, supervision, self.n_queries, earlier, rng)
        solve = maximize_by_alm if self.solver == "alm" else _maximize_by_eigenvectors
        planes, rounds = solve(matrix, self.n_bits, rng)
        for number, values in enumerate(rounds):
            self.history_.append({"table": len(earlier), "round": number, **values})
        if self.rotation is None:
            return planes
        rotation = random_rotation(self.n_bits, rng)
        if self.rotation == "itq":
            rotation, _ = learn_rotation(parts @ planes, rotation)
        rotated: np.ndarray = planes @ rotation
        return rotated

    def _restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        super()._restore(arrays, facts)
        if not all(
            isinstance(entry, dict) and set(entry) == set(_ROUND) for entry in self.history_
        ):
            raise FileFormatError(
                f"the model's facts must be history, a list of rounds with {', '.join(_ROUND)}"
            )
        self.planes_ = self.tables_[0]


def _maximize_by_eigenvectors(
    matrix: np.ndarray, n_bits: int, rng: np.random.RandomState
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """The maximum of tr(A'SA) under A'A = I, and one round that records it."""
    planes, values = leading_eigenvectors(matrix, n_bits)
    violation = float(np.linalg.norm(planes.T @ planes - np.eye(n_bits)))
    return planes, [
        {"objective": float(values.sum()), "violation": violation, "steps": 0, "rho": 0.0}
    ]
