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

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rankbits.methods.parameters.common import RANDOM_STATE, VERBOSE, Seed
from rankbits.methods.parameters.fields import choice, fact, learned, number, parameter
from rankbits.methods.shallow.machash.steps import Codes, Machines, fit_machines
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.pair_losses import LOSSES
from rankbits.methods.shallow.shared.pair_sampling import draw_pairs, supervise_pairs
from rankbits.methods.shallow.shared.parameters import (
    GAMMA,
    KERNEL,
    N_ANCHORS,
    N_DISSIMILAR,
    N_SIMILAR,
)
from rankbits.methods.shallow.shared.principal import require_variation, root_mean_square
from rankbits.methods.shallow.shared.progress import show_progress

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
    penalty : float, default=0.01
        The first μ; each turn doubles it.
    regularization : float, default=1e-3
        λ of the machines, which minimize λ/2 |w|² + the mean of max(0, 1 - z (w'x + c))².

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

    loss: str = parameter("ksh", choice(*LOSSES))
    n_similar: int = N_SIMILAR
    n_dissimilar: int = N_DISSIMILAR
    penalty: float = parameter(0.01, number(closed=False))
    regularization: float = parameter(1e-3, number(closed=False))
    kernel: str | None = KERNEL
    n_anchors: int = N_ANCHORS
    gamma: float | None = GAMMA
    verbose: bool | str = VERBOSE
    random_state: Seed = RANDOM_STATE

    offsets_: np.ndarray = learned("b")
    history_: list[dict[str, Any]] = fact(list)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hyperplanes.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : class labels (n,), multi-hot (n, L), an affinity over (X, X), or None
            Rows are similar if the level of either for the other is above 0. None takes the ten
            rows nearest to each as similar.
        """
        rows = self._training_rows(X, y)
        supervision = supervise_pairs(rows, y)
        require_variation(rows)
        random_state = check_random_state(self.random_state)
        rows = self._draw_anchors(rows, random_state)
        self.mean_ = rows.mean(axis=0)
        rows = rows - self.mean_
        scale = root_mean_square(rows)
        rng = np.random.default_rng(random_state.randint(1 << 31))
        pairs = draw_pairs(supervision, self.n_similar, self.n_dissimilar, rng)
        codes = Codes(pairs, self.loss, self.n_bits)
        codes.start(rng)
        machines, self.history_ = self._take_turns(rows / scale, codes)
        self.planes_, self.offsets_ = machines.planes / scale, machines.offsets
        return self

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
        from rankbits.methods.onnx_modules import Shifted

        return Shifted(super()._torch_module(), self.offsets_)
