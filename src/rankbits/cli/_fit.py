"""`rankbits fit`: rows and what is relevant to whom in, a model out."""

import os
import time
from typing import Annotated, Any

import numpy as np
import typer

from rankbits import affinity
from rankbits._json import as_json
from rankbits.cli._inputs import input_errors_exit_1, named_values
from rankbits.cli._options import (
    BITS,
    GRADED,
    JUDGEMENTS,
    METHOD,
    OUT,
    OVERWRITE,
    PARAM,
    QUERIES,
    SEED,
)
from rankbits.cli._output import is_quiet, print_json
from rankbits.datasets import load_array, load_judgements, load_labels
from rankbits.datasets.pictures import list_pictures
from rankbits.errors import InputError

RowsArgument = Annotated[
    str,
    typer.Argument(
        metavar="X", help="Features, or a folder of pictures, whose sub-folders are classes."
    ),
]
EncoderOption = Annotated[
    str | None, typer.Option("--encoder", help="linear, mlp, cnn, resnet, backbone, ...")
]
ImageSizeOption = Annotated[
    int | None,
    typer.Option("--image-size", min=1, help="Resize pictures of a folder to N x N pixels."),
]
LabelsOption = Annotated[
    str | None, typer.Option("--labels", help="Classes (1-D) or multi-hot tags (2-D) of X.")
]
NeighborsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--neighbors",
        metavar="SHARE=LEVEL",
        help="Instead: the nearest share of pairs has this level, as in 0.05=1.",
    ),
]
ReportOption = Annotated[
    bool, typer.Option("--report", help="Print the whole report of the training as well.")
]


def fit(
    rows: RowsArgument,
    method: Annotated[str, METHOD, "talr-ap, talr-ndcg, itq, lsh, ..."],
    out: Annotated[str, OUT, "Folder for the model."],
    bits: Annotated[int | None, BITS, "Code length; default: the method's."] = None,
    encoder: EncoderOption = None,
    image_size: ImageSizeOption = None,
    param: Annotated[list[str] | None, PARAM, "Parameter of the method; VALUE is JSON."] = None,
    labels: LabelsOption = None,
    neighbors: NeighborsOption = None,
    judgements: Annotated[
        str | None, JUDGEMENTS, "Instead: rows (query, item, level), by row numbers."
    ] = None,
    graded: Annotated[bool, GRADED] = False,
    queries: Annotated[
        str | None, QUERIES, "Features of queries that are not rows of X, judged or not."
    ] = None,
    report: ReportOption = False,
    seed: Annotated[int, SEED] = 0,
    overwrite: Annotated[bool, OVERWRITE] = False,
) -> None:
    """Learn codes of the rows of X and write the model to a folder."""
    if sum(map(bool, (labels, judgements, neighbors))) > 1:
        raise typer.BadParameter("give one of --labels, --judgements and --neighbors")
    if queries is not None and (labels or neighbors):
        raise typer.BadParameter("give --queries with --judgements, or alone")
    params, shares = named_values("--param", param), named_values("--neighbors", neighbors)
    if encoder is not None:
        params.setdefault("encoder", encoder)
    with input_errors_exit_1():
        from rankbits.methods import fingerprint

        hasher = _build_method(method, bits, seed, params)
        _require_place(out, overwrite)
        x, classes = _load_rows(rows, image_size, hasher)
        log = _load_log(hasher, queries, judgements, len(x))
        y = None if log else _supervision(x, labels, judgements, shares, graded)
        started = time.monotonic()
        _fit_with_bar(hasher, x, classes if y is None and not log else y, log)
        seconds = time.monotonic() - started
        hasher.save(out)
        model = fingerprint(hasher)
    training = as_json(getattr(hasher, "report_", None)) or {}
    print_json(
        {
            "method": method,
            **_describe_fit(hasher, x),
            "seconds": round(seconds, 3),
            "best_score": _best_score(training),
            "fingerprint": model,
            "out": out,
            **({"report": training} if report else {}),
        }
    )


def _describe_fit(hasher: Any, x: np.ndarray) -> dict[str, Any]:
    """Sizes and the seed, as the command prints them."""
    return {
        "bits": hasher.n_bits_,
        "items": len(x),
        "features": int(np.prod(x.shape[1:])),
        "seed": hasher.get_params(deep=False).get("random_state"),
    }


def _build_method(method: str, bits: int | None, seed: int, params: dict[str, Any]) -> Any:
    """The method with its parameters, those of --param first."""
    from rankbits import methods

    hasher = methods.get(method, **params)
    known = hasher.get_params(deep=False)
    if bits is not None and "n_bits" not in params:
        hasher.set_params(n_bits=bits)
    if "random_state" in known and "random_state" not in params:
        hasher.set_params(random_state=seed)
    return hasher


def _load_rows(
    path: str, image_size: int | None, hasher: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows of a file, or the pictures of a folder; and the classes that a folder tells of."""
    if not os.path.isdir(path):
        if image_size is not None:
            raise InputError(f"--image-size needs a folder of pictures, {path} is not a folder")
        return load_array(path), None
    params = hasher.get_params(deep=False)
    if "encoder" not in params:
        raise InputError(
            f"X must hold feature vectors for {type(hasher).__name__}, {path} is a folder; "
            "pictures need a method with an encoder, as in --method talr-ap --encoder backbone"
        )
    if image_size is None and params.get("encoder") == "backbone":
        image_size = params.get("image_size")
    pictures = list_pictures(path)
    return pictures.read(None if image_size is None else (image_size, image_size)), pictures.y


def _load_log(
    hasher: Any, queries: str | None, judgements: str | None, n_items: int
) -> dict[str, Any]:
    """Arguments of `fit` for queries that are rows of their own; none if there are no such rows."""
    if queries is None:
        return {}
    if "queries" not in hasher.get_params(deep=False):
        raise InputError(
            f"--queries needs a method trained by gradients, such as talr-ap; "
            f"{type(hasher).__name__} learns from X alone"
        )
    rows = load_array(queries)
    if judgements is None:
        return {"query_X": rows}
    relation = affinity.judgements(load_judgements(judgements), len(rows), n_items)
    return {"query_X": rows, "judgements": relation}


def _fit_with_bar(hasher: Any, x: np.ndarray, y: Any, log: dict[str, Any]) -> None:
    """Fit; a method that can show its progress does so on a terminal, which its model forgets."""
    before = hasher.get_params(deep=False).get("verbose")
    if before is False and not is_quiet():
        hasher.set_params(verbose="auto")
    hasher.fit(x, y, **log)
    if before is False:
        hasher.set_params(verbose=False)


def _best_score(training: dict[str, Any]) -> float | None:
    """The best score on held-out rows that a report tells of; None if none were held out."""
    best = training.get("best")
    return best["score"] if isinstance(best, dict) and training.get("is_validated") else None


def _require_place(out: str, overwrite: bool) -> None:
    """Refuse a folder that could not be written, before the work that would fill it."""
    from rankbits._folders import require_replaceable
    from rankbits.methods.persistence import find_foreign

    require_replaceable(out, find_foreign)
    if os.path.isdir(out) and os.listdir(out) and not overwrite:
        raise InputError(f"--out must be a new folder, {out} holds a model; give --overwrite")


def _supervision(
    x: np.ndarray,
    labels: str | None,
    judgements: str | None,
    shares: dict[str, Any],
    graded: bool,
) -> Any:
    """The y of `fit`: labels, tags, an affinity over (X, X), or None."""
    if judgements is not None:
        return affinity.judgements(load_judgements(judgements), len(x), len(x))
    if shares:
        return _neighbors(x, shares)
    if labels is None:
        if graded:
            raise InputError("--graded needs multi-hot labels (2-D), got no labels")
        return None
    y = _load_labels(labels, len(x))
    if graded and y.ndim != 2:
        raise InputError("--graded needs multi-hot labels (2-D), got classes (1-D)")
    return affinity.tags(y, y, graded=True) if graded else y


def _load_labels(path: str, n_rows: int) -> np.ndarray:
    y = np.asarray(load_labels(path))
    if len(y) != n_rows:
        raise InputError(
            f"{path} has {len(y)} labels and X has {n_rows} rows; there must be one label per row"
        )
    return y


def _neighbors(x: np.ndarray, shares: dict[str, Any]) -> affinity.Affinity:
    """Levels by distance: the nearest shares of the pairs of X."""
    if x.ndim != 2:
        raise InputError(
            "--neighbors needs feature vectors, X holds pictures; leave --neighbors out and give "
            "--encoder backbone, whose features are compared, or give --labels"
        )
    try:
        cuts = affinity.distance_quantiles(x, [float(share) for share in shares])
        return affinity.neighbours(x, x, cuts, list(shares.values()))
    except ValueError as error:
        raise InputError(f"--neighbors must be SHARE=LEVEL as in 0.05=1: {error}") from None
