"""The parameters that every method trained by gradients has, beside those of its loss.

A method names its own parameters and their defaults in `_own`; its constructor takes both kinds, by
keyword, as scikit-learn wants them: stored untouched, checked in `fit`.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from rankbits.methods._base import BaseHasher


class GradientParameters(BaseHasher):
    """Parameters of training an encoder, whatever the loss.

    What is left at "auto" comes from a recipe by kind of encoder and y; `report_` says what it was.

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
    backbone : "efficientnet-lite0" or torch.nn.Module; image_size : int; fine_tune,
        tune_statistics : bool; backbone_rate : float
        The pretrained network, what it resizes images to, whether it is trained too (the head goes
        first, alone), with or without the statistics of its batch normalisation, and its share of
        the learning rate. Frozen, its features are computed once.
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
    """

    _own: ClassVar[dict[str, Any]] = {}

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
        tune_statistics: bool = False,
        backbone_rate: float = 0.1,
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
        self.tune_statistics = tune_statistics
        self.backbone_rate = backbone_rate
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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls._own:
            cls.__init__ = _constructor(cls._own)  # type: ignore[method-assign]


def _constructor(own: dict[str, Any]) -> Callable[..., None]:
    """A constructor with parameters of its own behind the common ones."""

    def __init__(self: GradientParameters, n_bits: int = 32, **params: Any) -> None:  # noqa: N807
        mine = {name: params.pop(name, default) for name, default in own.items()}
        GradientParameters.__init__(self, n_bits, **params)
        for name, value in mine.items():
            setattr(self, name, value)

    common = inspect.signature(GradientParameters.__init__)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in own.items()
    ]
    parameters = [*common.parameters.values(), *added]
    __init__.__signature__ = common.replace(parameters=parameters)  # type: ignore[attr-defined]
    return __init__
