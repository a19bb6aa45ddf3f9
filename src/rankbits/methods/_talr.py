"""TALR: codes learned by optimising tie-aware AP or NDCG themselves [1]_.

    logits f -> φ = tanh(α f) -> soft tie histogram -> AP_r or NDCG_r -> 1 - mean over queries

Every row of a batch is a query against the others. At ±1 codes the objective is the metric.

.. [1] K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as tie-aware learning to rank",
   CVPR 2018; arXiv:1705.08562.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rankbits import _check, objectives
from rankbits.codes import MAX_BITS
from rankbits.methods._deep.batches import Batch
from rankbits.methods._deep.recipes import is_auto
from rankbits.methods._gradient import GradientHasher

_HALF_FROM = 24  # bits


class TalrLoss(nn.Module):
    """1 - mean of the relaxed objective over the queries of a batch that have a positive."""

    def __init__(
        self,
        objective: Callable[..., Tensor],
        relaxation: str,
        n_bins: int | None,
        delta: float,
    ) -> None:
        super().__init__()
        if n_bins is not None:
            _check.whole("n_bins", n_bins, 1, MAX_BITS)
        self.objective, self.relaxation = objective, relaxation
        self.n_bins, self.delta = n_bins, delta

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        phi = torch.tanh(batch.alpha * logits)
        gallery = None if batch.gallery is None else torch.tanh(batch.alpha * batch.gallery)
        values = self.objective(
            phi,
            batch.levels,
            self.relaxation,
            self.n_bins,
            self.delta,
            gallery=gallery,
            own=batch.own,
        )
        loss: Tensor = 1 - objectives.mean_over_queries(values)
        return loss


class _Talr(GradientHasher):
    """What TalrAP and TalrNDCG share: all but the objective."""

    _relaxed: ClassVar[Callable[..., Tensor]]
    _relaxations: ClassVar[tuple[str, ...]] = objectives.RELAXATIONS

    def __init__(
        self,
        n_bits: int = 32,
        *,
        encoder: Any = "mlp",
        scaling: str = "auto",
        init: str = "auto",
        hidden: Any = "auto",
        activation: str = "auto",
        normalisation: str = "auto",
        dropout: Any = "auto",
        input_dropout: Any = "auto",
        skip: Any = "auto",
        kernel: str | None = None,
        n_anchors: int = 300,
        posterior: Any = "auto",
        backbone: Any = "efficientnet-lite0",
        image_size: int = 160,
        fine_tune: bool = False,
        backbone_rate: float = 0.1,
        relaxation: str = "exact",
        n_bins: Any = "auto",
        delta: float = 1.0,
        graded: Any = "auto",
        alpha: Any = "auto",
        alpha_end: Any = "auto",
        optimizer: str = "auto",
        learning_rate: Any = "auto",
        weight_decay: Any = "auto",
        nesterov: bool = False,
        schedule: str = "auto",
        warm_up: Any = "auto",
        clip: float = 0.0,
        batch_size: Any = "auto",
        batches: str = "auto",
        gallery: str = "batch",
        epochs: Any = "auto",
        noise: Any = "auto",
        mixup: Any = "auto",
        flip: Any = "auto",
        shift: Any = "auto",
        ema: Any = "auto",
        validation_fraction: Any = "auto",
        scoring: Any = None,
        score_every: int = 1,
        patience: int | None = None,
        n_restarts: int = 1,
        checkpoint: Any = None,
        checkpoint_epochs: int | None = None,
        checkpoint_seconds: float = 10.0,
        resume: bool = True,
        log: Any = None,
        verbose: Any = False,
        device: str = "auto",
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_bits, random_state=random_state)
        self.encoder = encoder
        self.scaling = scaling
        self.init = init
        self.hidden = hidden
        self.activation = activation
        self.normalisation = normalisation
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.skip = skip
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.posterior = posterior
        self.backbone = backbone
        self.image_size = image_size
        self.fine_tune = fine_tune
        self.backbone_rate = backbone_rate
        self.relaxation = relaxation
        self.n_bins = n_bins
        self.delta = delta
        self.graded = graded
        self.alpha = alpha
        self.alpha_end = alpha_end
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.schedule = schedule
        self.warm_up = warm_up
        self.clip = clip
        self.batch_size = batch_size
        self.batches = batches
        self.gallery = gallery
        self.epochs = epochs
        self.noise = noise
        self.mixup = mixup
        self.flip = flip
        self.shift = shift
        self.ema = ema
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.score_every = score_every
        self.patience = patience
        self.n_restarts = n_restarts
        self.checkpoint = checkpoint
        self.checkpoint_epochs = checkpoint_epochs
        self.checkpoint_seconds = checkpoint_seconds
        self.resume = resume
        self.log = log
        self.verbose = verbose
        self.device = device
        self.n_threads = n_threads

    def _loss(self) -> nn.Module:
        _check.choice("relaxation", self.relaxation, self._relaxations)
        return TalrLoss(type(self)._relaxed, self.relaxation, self._bins(), self.delta)

    def _bins(self) -> int | None:
        """Bins of the soft histogram: from 24 bits on, one for two bits, as in the paper's runs."""
        if not is_auto(self.n_bins):
            return self.n_bins  # type: ignore[no-any-return]
        n_bits = self._asked_bits()
        return n_bits // 2 if n_bits >= _HALF_FROM else None

    def _loss_settings(self) -> dict[str, Any]:
        return {"relaxation": self.relaxation, "n_bins": self._bins(), "delta": self.delta}

    def _objective(self, phi: Tensor, levels: Tensor, **gallery: Tensor) -> Tensor:
        return type(self)._relaxed(phi, levels, **gallery)


class TalrAP(_Talr):
    """Codes that rank by tie-aware average precision (TALR-AP) [1]_.

    Whatever is left at "auto" comes from a recipe by kind of encoder; `report_` says what was used.

    Parameters
    ----------
    n_bits : int, 1 to 4096, default=32
        Code length b.
    encoder : "linear", "mlp", "cnn", "backbone" or torch.nn.Module, default="mlp"
        A module of one's own takes the raw rows as float32 and gives features; a head follows.
    scaling : "each", "common"; init : "random", "pca", "itq"
        Whether features are divided by their own scales or by one; first weights of a linear map,
        or of the one beside hidden layers, from the principal directions of the scaled features.
    hidden : tuple of int; activation : "relu", "gelu", "silu", "tanh"; normalisation : "batch",
        "layer", "none"; dropout, input_dropout : float; skip : bool
        Of the MLP, or of the head of a backbone (`hidden=()` makes it linear); `skip` adds a linear
        map beside the hidden layers. For the CNN, `hidden` are the widths of its stages.
    kernel : "rbf" or None; n_anchors : int
        RBF features of random training rows in front of linear or mlp.
    posterior : int
        Classifiers, trained first, whose class posterior the bits of an mlp read; 0 for bits that
        read the rows. By default three for class labels with 500 rows and more, 200 classes at
        most, and `hidden` left alone: the hidden layers then stand behind the posterior.
    backbone : "efficientnet-lite0" or torch.nn.Module; image_size : int; fine_tune : bool;
        backbone_rate : float
        The pretrained network, what it resizes images to, whether it is trained too, and its
        share of the learning rate. Frozen, its features are computed once.
    relaxation : "exact", "simplified", "cvpr", "arxiv"; n_bins : int; delta : float
        The form of the objective, and the bins of its soft histogram.
    graded : bool
        Whether multi-hot y counts shared tags; by default for NDCG only.
    alpha, alpha_end : float
        Slope of tanh(α f); with `alpha_end`, it grows to that.
    optimizer : "adamw", "sgd"; learning_rate, weight_decay : float; nesterov : bool;
        schedule : "constant", "cosine", "step", "one-cycle"; warm_up : float; clip : float
        `warm_up` is a share of the run, `clip` the largest norm of a gradient, 0 for no limit.
    batch_size : int; batches : "plain", "balanced", "anchors"; gallery : "batch", "memory"
        Rows that rank each other; classes in equal parts; or queries with their positives. With
        "memory" a batch ranks the whole training set as it was last encoded.
    epochs : int; noise, mixup : float; flip : bool; shift : int; ema : float
        Noise in units of each feature's scale; mixtures within a class, Beta(mixup, mixup); images
        mirrored and moved; decay of the average of weights that is handed out.
    validation_fraction : float; scoring : callable or None; score_every : int; patience : int
        Rows held out, the best epoch of which is kept; `scoring(encoder)`, higher is better,
        replaces the objective at ±1 codes of those rows.
    n_restarts : int, default=1
        Runs from different weights; the best score is kept, without scores the least loss.
    checkpoint : folder or None; checkpoint_epochs, checkpoint_seconds; resume : bool
        Where and how often the state is saved. A fit that finds the checkpoint of the same run
        continues it and ends as if it had never stopped; `resume=False` starts again.
    log : path or None
        JSON lines, one an epoch.
    verbose : bool or "auto", default=False
        A progress bar on standard error; "auto" on terminals only.
    device : "auto", "cpu", "cuda", "mps"; n_threads : int or None
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    encoder_ : torch.nn.Module
        Raw rows to logits, on the processor.
    report_ : dict
        Settings used, split, best score and epoch, seconds.
    history_ : list of dict
        One an epoch: loss, score, learning rate, alpha, seconds.

    .. [1] K. He, F. Cakir, S. A. Bargal and S. Sclaroff, "Hashing as tie-aware learning to rank",
       CVPR 2018; arXiv:1705.08562.
    """

    _relaxed = staticmethod(objectives.relaxed_ap)


class TalrNDCG(_Talr):
    """Codes that rank by tie-aware NDCG of graded relevance (TALR-NDCG); parameters of `TalrAP`.

    Gains are 2^level - 1. Multi-hot y counts shared tags unless `graded=False`.
    """

    _relaxed = staticmethod(objectives.relaxed_ndcg)
    _relaxations = tuple(name for name in objectives.RELAXATIONS if name != "cvpr")
    _grades_tags = True
