"""MACHash: codes and hash functions learned in turns, drawn together by a growing penalty [1]_.

The loss of the codes h(X) of the rows is piecewise constant in the functions h. The method of
auxiliary coordinates gives every row a code Z of its own and pays for the difference:

    E(Z, h; μ) = mean over pairs of L(Z) + μ (mean over rows and bits of (Z - h(X))²)

    Z step    bit by bit, at a minimum over blocks of similar rows: `block_cuts`, with a_ij of the
              loss (`pair_losses`) and the linear term of the penalty
    h step    one linear support vector machine for each bit, fitted to Z

μ doubles until Z = h(X). E never rises within a turn: a cut is exact, and a machine that errs on
more rows than the one before it is not taken. L is divided by the largest value that it can have,
so that μ = 1 means about the same for each loss and length: no row can gain more by leaving h(x).

What we changed: pairs are a sample; the first Z are learned greedily, bit by bit, as those of
`fasthash` are; and the functions of the turn with the least loss are the result, not the last.

.. [1] R. Raziperchikolaei and M. Á. Carreira-Perpiñán, "Optimizing affinity-based binary hashing
   using auxiliary coordinates", NIPS 2016.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits import _check
from rankbits.methods.shallow.kernel_hasher import KernelHasher
from rankbits.methods.shallow.learned import Shapes
from rankbits.methods.shallow.machash_steps import Codes, Machines, fit_machines
from rankbits.methods.shallow.pair_losses import LOSSES
from rankbits.methods.shallow.pair_sampling import draw_pairs, supervise_pairs
from rankbits.methods.shallow.principal import require_variation
from rankbits.methods.shallow.progress import check_verbose, show_progress

_MOST_TURNS = 20  # μ has then grown a million times


class MACHash(KernelHasher):
    """Codes and linear hash functions in turns, by auxiliary coordinates (MACHash) [1]_.

    Rows are centered, and scaled to a mean square of 1.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length b.
    loss : {"hinge", "ksh", "exponential"}, default="ksh"
        Loss of a pair at distance d. Hinge: d² if it is similar, else max(0, b/2 - d)². With
        s = b - 2d and y = 1 or -1, ksh: (s - b y)², exponential: exp(-s y / b).
    n_similar : int, default=100
        Similar rows that each row is paired with, drawn at random; all if it has no more.
    n_dissimilar : int, default=100
        The same of dissimilar rows.
    penalty : float, default=0.01
        The first μ; each turn doubles it.
    regularization : float, default=1e-3
        λ of the machines, which minimize λ/2 |w|² + the mean of max(0, 1 - z (w'x + c))².
    kernel : {"rbf"} or None, default=None
        Learn hyperplanes in the span of RBF anchors instead of the space of the rows.
    n_anchors : int, default=300
        Number of anchors, drawn among the training rows; with fewer rows, all of them.
    gamma : float or None, default=None
        Factor in the kernel exp(-gamma |x - a|²); None takes 1 / median |x - a|².
    verbose : bool or "auto", default=False
        Whether a progress bar is shown on standard error; "auto" shows it on a terminal.
    random_state : int, RandomState or None, default=None
        Seed of the anchors, the pairs and the first codes.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training rows, or of their coordinates under the kernel.
    planes_ : ndarray of shape (n_features, n_bits)
        Weights of the machines, for rows that are not scaled.
    offsets_ : ndarray of shape (n_bits,)
        Their offsets c.
    anchors_ : RbfAnchors or None
        The kernel's map from rows to coordinates.
    history_ : list of dict
        For each turn: `penalty`, μ; `before`, `after_codes` and `after_functions`, E before the
        turn, after its Z step and after its h step; `apart`, the share of bits in which Z and h(X)
        differ at its end; `loss`, the mean loss of h(X).

    References
    ----------
    .. [1] R. Raziperchikolaei and M. Á. Carreira-Perpiñán, "Optimizing affinity-based binary
       hashing using auxiliary coordinates", NIPS 2016.

    Examples
    --------
    >>> from rankbits.datasets import digits
    >>> data = digits()
    >>> x, y = data.database_x[:200], data.database_y[:200]
    >>> MACHash(n_bits=8, random_state=0).fit(x, y).encode(data.query_x[:3])
    BinaryCodes(n=3, n_bits=8)
    """

    _arrays: ClassVar[Shapes] = {"mean": ("d",), "planes": ("d", "b"), "offsets": ("b",)}
    _facts: ClassVar[dict[str, type]] = {"history": list}

    offsets_: np.ndarray
    history_: list[dict[str, Any]]

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "ksh",
        n_similar: int = 100,
        n_dissimilar: int = 100,
        penalty: float = 0.01,
        regularization: float = 1e-3,
        kernel: str | None = None,
        n_anchors: int = 300,
        gamma: float | None = None,
        verbose: bool | str = False,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.loss = loss
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.penalty = penalty
        self.regularization = regularization
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.gamma = gamma
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Rows are similar if the level of either for the other is above 0. None takes the ten
            rows nearest to each as similar.
        """
        self._check_parameters()
        n_bits, rows = self._code_length(), self._training_rows(X, y)
        supervision = supervise_pairs(rows, y)
        require_variation(rows)
        random_state = check_random_state(self.random_state)
        rows = self._draw_anchors(rows, random_state)
        self.mean_ = rows.mean(axis=0)
        rows = rows - self.mean_
        scale = float(np.linalg.norm(rows) / np.sqrt(len(rows)))
        rng = np.random.default_rng(random_state.randint(1 << 31))
        pairs = draw_pairs(supervision, self.n_similar, self.n_dissimilar, rng)
        codes = Codes(pairs, self.loss, n_bits)
        codes.start(rng)
        machines, self.history_ = self._take_turns(rows / scale, codes)
        self.planes_, self.offsets_ = machines.planes / scale, machines.offsets
        return self

    def _check_parameters(self) -> None:
        """Refuse values that the parameters cannot have."""
        self._check_kernel()
        check_verbose(self.verbose)
        _check.choice("loss", self.loss, LOSSES)
        for name in ("n_similar", "n_dissimilar"):
            _check.whole(name, getattr(self, name), 1)
        for name in ("penalty", "regularization"):
            _check.number(name, getattr(self, name), closed=False)

    def _take_turns(self, rows: np.ndarray, codes: Codes) -> tuple[Machines, list[dict[str, Any]]]:
        """The machines of the turn whose h(X) has the least loss, and the record of all turns."""
        machines = fit_machines(rows, codes.bits, self.regularization)
        predicted, history = machines.predict(rows), list[dict[str, Any]]()
        best, least = machines, codes.mean_loss(predicted)
        with show_progress(self.verbose, "turn", _MOST_TURNS) as advance:
            for penalty in self.penalty * 2.0 ** np.arange(_MOST_TURNS):
                turn = {"penalty": penalty, "before": codes.objective(predicted, penalty)}
                codes.step(predicted, penalty)
                turn["after_codes"] = codes.objective(predicted, penalty)
                machines = machines.refit(rows, codes.bits, self.regularization)
                predicted = machines.predict(rows)
                turn["after_functions"] = codes.objective(predicted, penalty)
                turn["apart"] = float(np.mean(codes.bits != predicted))
                turn["loss"] = codes.mean_loss(predicted)
                history.append(turn)
                advance(f"loss {turn['loss']:.4g}, apart {turn['apart']:.4g}")
                if turn["loss"] < least:
                    best, least = machines, turn["loss"]
                if turn["apart"] == 0:
                    break
        return best, history

    def _logits(self, rows: np.ndarray) -> np.ndarray:
        logits: np.ndarray = super()._logits(rows) + self.offsets_
        return logits

    def _torch_module(self) -> Any:
        from torch import nn

        from rankbits.methods.onnx_modules import Offsets

        return nn.Sequential(super()._torch_module(), Offsets(self.offsets_))
