"""Every hyper-parameter of training an encoder, declared once: name, type, default, check.

The estimators inherit these fields as arguments of their constructors, and `TrainingConfig`
inherits them as the values that a fit works with. A new hyper-parameter is one line and one entry
in the docstring below and, if it is `auto`, its value in `recipes.COMMON`.
"""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods.parameters.common import RANDOM_STATE, VERBOSE, CodeLength, Seed
from rankbits.methods.parameters.fields import (
    anything,
    auto,
    choice,
    flag,
    integer,
    number,
    optional,
    parameter,
    sizes,
)
from rankbits.methods.training.posterior_cache import PosteriorCache

if TYPE_CHECKING:
    from torch import nn  # the parameters are known without torch

ACTIVATIONS = ("relu", "gelu", "silu", "tanh")
NORMALIZATIONS = ("none", "batch", "layer")
SCALINGS = ("each", "common")
INITIALIZATIONS = ("random", "pca", "itq")
PRECISIONS = ("single", "mixed")
BATCHES = ("plain", "balanced", "anchors")
SCHEDULES = ("constant", "cosine", "step", "one-cycle")
DEVICES = ("auto", "cpu", "cuda", "mps")
QUERIES = ("same", "own", "real")
CLASSES = ("fixed", "grow")
MOST_LAYERS = 256  # hidden ones
MOST_PIXELS = 1024  # of a side of an image that a backbone reads
MOST_NETWORKS = 64  # or classifiers, whose posterior the bits read
_LAST = "last:"


def _scoring(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise InputError(
            f"{name} must be None or a function of the encoder that returns a number, got "
            f"{_check.describe(value)}"
        )
    return value


def _folder(name: str, value: Any) -> Any:
    if value is None:
        return None
    path = Path(value).absolute()
    nearest = next(place for place in (path, *path.parents) if place.exists())
    if not nearest.is_dir():
        raise InputError(f"{name} must be a folder, {value} cannot be created: {nearest} is a file")
    return value


def _file_in_folder(name: str, value: Any) -> Any:
    if value is not None and not Path(value).absolute().parent.is_dir():
        raise InputError(f"{name} must be a file in an existing folder, got {value}")
    return value


def count_last_blocks(fine_tune: bool | str) -> int | None:
    """N of "last:N"; None for all blocks, or for none."""
    is_cut = isinstance(fine_tune, str) and fine_tune.startswith(_LAST)
    return int(str(fine_tune).removeprefix(_LAST)) if is_cut else None


def check_fine_tune(name: str, value: Any) -> bool | str:
    """False, "all" (which True means too), or "last:N" for N blocks."""
    if isinstance(value, bool | np.bool_):
        return "all" if value else False
    if value == "all" or (isinstance(value, str) and _is_last_blocks(value)):
        return str(value)
    raise InputError(
        f"{name} must be False, 'all', or 'last:8' for the last eight blocks, got {value!r}"
    )


def _is_last_blocks(value: str) -> bool:
    number = value.removeprefix(_LAST)
    return value.startswith(_LAST) and number.isascii() and number.isdigit() and int(number) > 0


class TrainingParameters(CodeLength):
    """Hyper-parameters of training an encoder, whatever the loss.

    Parameters
    ----------
    queries : {"same", "own", "real"}, default="same"
        How queries are encoded: as items are, by a map of their own into bits, or by a map of their
        own into real weights, for `search_real`. The objective is trained for that kind.
    classes : {"fixed", "grow"}, default="fixed"
        Whether the classes of y are all there are, or others are to come. With "grow" only an
        eighth of the bits is trained, the others keep the geometry of the rows, and real-valued
        queries (`queries="real"`) weigh both by how sure a class is.
    encoder : {"linear", "mlp", "cnn", "resnet", "backbone"} or torch.nn.Module, default="auto"
        "auto" is "linear" where y is None, so that distances say what is relevant, and else "mlp".
        What turns rows into logits: one hyperplane for each bit, hidden layers, a small or a
        residual convolutional network for small images, or a pretrained network with a head. A
        module of your own takes the raw rows as float32 and returns features; a head follows it.
    scaling : {"each", "common"}, default="auto"
        Whether each feature is divided by its own standard deviation, or all by a common one.
    init : {"random", "pca", "itq"}, default="auto"
        First weights of a linear encoder, or of the linear map beside the hidden layers (see
        `skip`): random, the principal directions of the features, or these rotated as ITQ does.
    hidden : tuple of int, default="auto"
        Sizes of the hidden layers of the MLP, or of the head of a backbone, where `()` makes a
        linear head. For the networks of small images, the widths of their stages.
    activation : {"relu", "gelu", "silu", "tanh"}, default="auto"
        Activation function of the hidden layers.
    normalization : {"none", "batch", "layer"}, default="auto"
        Normalization after each hidden layer.
    dropout : float, default="auto"
        Share of the hidden values that are set to zero in training.
    input_dropout : float, default="auto"
        Share of the inputs of the MLP that are set to zero in training.
    skip : bool, default="auto"
        Whether a linear map lies beside the hidden layers and its logits are added to theirs.
    kernel : {"rbf"} or None, default=None
        With "rbf", the encoder reads RBF features of random training rows instead of the rows.
    n_anchors : int, default=300
        Number of training rows that the RBF features are computed from.
    posterior : int, default="auto"
        Number of classifiers that are trained first and whose class posterior the bits of an MLP
        read; 0 for bits that read the rows. The default is 3 for class labels with at least 500
        rows, at least 10 rows for each class and at most 200 classes, if `hidden` and `kernel` are
        left alone, and 0 otherwise. For a backbone that is tuned it is the number of networks that
        are tuned, whose mean belief counts. For "resnet" it is that of networks too, 1 by default;
        `epochs`, `learning_rate` and their like then say how these learn the classes, and the bits
        behind them are trained by the recipe of the MLP.
    posterior_cache : PosteriorCache or None, default=None
        Where the trained classifiers are kept, so that fits on the same data with the same seed,
        of other methods or code lengths, use them again. It is not saved with a model.
    backbone : {"efficientnet-lite0"} or torch.nn.Module, default="efficientnet-lite0"
        The pretrained network of `encoder="backbone"`.
    image_size : int, default=160
        Height and width to which the backbone resizes images, from 32 to 1024.
    fine_tune : bool, "all" or "last:N", default=False
        What of the backbone is trained too: nothing, so that its features are computed once; all of
        it; or its last N blocks, for which the others run once for each view. With class labels
        it learns the classes first, and the bits read what it believes; otherwise, or with
        `posterior=0`, it is trained with its head by the loss of the method, after the head alone.
    n_views : int or None, default=None
        Number of views of each image for which the first blocks run with `fine_tune="last:N"`: as
        it is, mirrored, and moved by some pixels; None for half as many as there are epochs, from 2
        to 8.
    tuning_epochs : int or None, default=None
        Number of passes over the labeled images in which a backbone learns the classes; None for
        12 with 5,000 images. With more images there are fewer, by the square root of their number,
        but at least 5, and so there are where images without labels are added.
    tune_statistics : bool, default=False
        Whether batch normalization in a backbone that is trained measures its statistics anew.
    backbone_rate : float, default=0.1
        Learning rate of the backbone, as a factor of `learning_rate`.
    graded : bool, default="auto"
        Whether the relevance of multi-hot rows is the number of tags they share, instead of 0 or 1.
        The default is True for methods that optimize NDCG.
    alpha : float, default="auto"
        Slope of tanh(alpha * logit), which relaxes a bit.
    alpha_end : float or None, default="auto"
        The slope to which `alpha` grows during training; None for a constant slope.
    optimizer : {"adamw", "sgd"}, default="auto"
        AdamW, or stochastic gradient descent with a momentum of 0.9.
    learning_rate : float, default="auto"
        Largest learning rate of the schedule.
    weight_decay : float, default="auto"
        Decay of the weight matrices.
    precision : {"single", "mixed"}, default="auto"
        With "mixed" the network multiplies in bfloat16 in training, if the processor has
        instructions for that; weights and losses stay in float32, and so does encoding.
    nesterov : bool, default="auto"
        Whether the momentum of "sgd" is Nesterov's.
    schedule : {"constant", "cosine", "step", "one-cycle"}, default="auto"
        How the learning rate changes during training.
    warm_up : float, default="auto"
        Share of the training in which the learning rate rises from zero.
    clip : float, default=0.0
        Largest norm of the gradient; 0 for no limit.
    batch_size : int, default="auto"
        Number of rows that rank each other in a step.
    batches : {"plain", "balanced", "anchors"}, default="auto"
        Random rows, equally many rows of each class, or queries together with some rows that are
        relevant to them. The default is "plain", or "anchors" if relevant pairs are rare.
    gallery : {"batch", "memory"}, default="batch"
        What a row of a batch ranks: the batch, or the whole training set as it was last encoded.
    epochs : int, default="auto"
        Number of passes over the training rows. The default makes at least 100 steps.
    noise : float, default="auto"
        Standard deviation of the Gaussian noise that is added to the rows in training.
    noise_scaling : {"each", "common"}, default="auto"
        The unit of the noise: the standard deviation of each feature, or a common one.
    mixup : float, default="auto"
        Parameter of the Beta distribution by which rows are mixed with rows of their own class; 0
        for no mixing.
    flip : bool, default="auto"
        Whether images are mirrored at random.
    shift : int, default="auto"
        Number of pixels by which images are moved at random, at most.
    ema : float, default="auto"
        Decay of the moving average of the weights that is returned; 0 for the last weights.
    validation_fraction : float, default="auto"
        Share of the rows that is held out; the epoch that ranks them best is returned.
    scoring : callable or None, default=None
        A function of the encoder that returns a number, larger being better. It replaces the score
        of the held-out rows. Where queries have a map of their own, it gets the encoder of items
        and the encoder of queries.
    score_every : int, default=1
        Number of epochs from one score to the next.
    patience : int or None, default=None
        Number of scores without improvement after which training stops.
    n_restarts : int, default=1
        Number of trainings from different first weights. The best score is returned or, without
        scores, the smallest loss.
    checkpoint : path or None, default=None
        Folder in which the state of the training is saved. A fit that finds the checkpoint of the
        same training continues it and ends as if it had never stopped.
    checkpoint_epochs : int or None, default=None
        Number of epochs from one checkpoint to the next, beside `checkpoint_seconds`.
    checkpoint_seconds : float, default=10.0
        Number of seconds from one checkpoint to the next.
    resume : bool, default=True
        Whether a checkpoint is continued; with False it is replaced.
    log : path or None, default=None
        File of JSON lines, one for each epoch.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where the encoder is trained.
    n_threads : int or None, default=None
        Number of threads that torch may use; None leaves torch as it is.
    """

    queries: str = parameter("same", choice(*QUERIES))
    classes: str = parameter("fixed", choice(*CLASSES))
    encoder: "str | nn.Module" = auto(anything, reported=False)
    scaling: str = auto(choice(*SCALINGS))
    init: str = auto(choice(*INITIALIZATIONS))
    hidden: tuple[int, ...] = auto(sizes)
    activation: str = auto(choice(*ACTIVATIONS))
    normalization: str = auto(choice(*NORMALIZATIONS))
    dropout: float = auto(number(0.0, 1.0))
    input_dropout: float = auto(number(0.0, 1.0))
    skip: bool = auto(flag)
    kernel: str | None = parameter(None, optional(choice("rbf")))
    n_anchors: int = parameter(300, integer(1))
    posterior: int = auto(integer(0, MOST_NETWORKS))
    posterior_cache: PosteriorCache | None = parameter(None, anything, reported=False)
    backbone: "str | nn.Module" = parameter("efficientnet-lite0", anything, reported=False)
    image_size: int = parameter(160, integer(32, MOST_PIXELS))
    fine_tune: bool | str = parameter(False, check_fine_tune)
    n_views: int | None = parameter(None, optional(integer(1, 64)))
    tuning_epochs: int | None = parameter(None, optional(integer(1)))
    tune_statistics: bool = parameter(False, flag)
    backbone_rate: float = parameter(0.1, number())
    graded: bool = auto(flag)
    alpha: float = auto(number(closed=False))
    alpha_end: float | None = auto(optional(number(closed=False)))
    optimizer: str = auto(choice("adamw", "sgd"))
    learning_rate: float = auto(number(closed=False))
    weight_decay: float = auto(number())
    precision: str = auto(choice(*PRECISIONS))
    nesterov: bool = auto(flag)
    schedule: str = auto(choice(*SCHEDULES))
    warm_up: float = auto(number(0.0, 1.0))
    clip: float = parameter(0.0, number())
    batch_size: int = auto(integer(2))
    batches: str = auto(choice(*BATCHES))
    gallery: str = parameter("batch", choice("batch", "memory"))
    epochs: int = auto(integer(1))
    noise: float = auto(number())
    noise_scaling: str = auto(choice(*SCALINGS))
    mixup: float = auto(number())
    flip: bool = auto(flag)
    shift: int = auto(integer(0))
    ema: float = auto(number(0.0, 1.0))
    validation_fraction: float = auto(number(0.0, 1.0))
    scoring: Callable[[Any], float] | None = parameter(None, _scoring, reported=False)
    score_every: int = parameter(1, integer(1))
    patience: int | None = parameter(None, optional(integer(1)))
    n_restarts: int = parameter(1, integer(1))
    checkpoint: str | PathLike[str] | None = parameter(None, _folder, reported=False)
    checkpoint_epochs: int | None = parameter(None, optional(integer(1)), reported=False)
    checkpoint_seconds: float = parameter(10.0, number(), reported=False)
    resume: bool = parameter(True, flag, reported=False)
    log: str | PathLike[str] | None = parameter(None, _file_in_folder, reported=False)
    verbose: bool | str = VERBOSE
    device: str = parameter("auto", choice(*DEVICES), reported=False)
    n_threads: int | None = parameter(None, optional(integer(1, 4096)), reported=False)
    random_state: Seed = RANDOM_STATE
