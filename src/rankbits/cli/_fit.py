"""`rankbits fit`: rows and what is relevant to whom in, a model out."""

import os
import time
from typing import Annotated, Any

import numpy as np
import typer

from rankbits import affinity
from rankbits._check import describe
from rankbits._json import as_json
from rankbits.cli._inputs import GradedOption, input_errors_exit_1, named_values
from rankbits.cli._output import print_json
from rankbits.datasets import load_array, load_judgements, load_labels
from rankbits.errors import InputError


def fit(
    rows: Annotated[
        str, typer.Argument(metavar="X", help="Features: .npy, .npz, .parquet, .safetensors.")
    ],
    method: Annotated[str, typer.Option("--method", help="talr-ap, talr-ndcg, itq, lsh, ...")],
    out: Annotated[str, typer.Option("--out", help="Folder for the model.")],
    bits: Annotated[
        int | None, typer.Option("--bits", help="Code length; default: the method's.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", help="Classes (1-D) or multi-hot tags (2-D).")
    ] = None,
    tags: Annotated[str | None, typer.Option("--tags", help="Multi-hot tags (2-D).")] = None,
    judgements: Annotated[
        str | None, typer.Option("--judgements", help="(query, item, level): rows of X, from 0.")
    ] = None,
    neighbours: Annotated[
        list[str] | None,
        typer.Option(
            "--neighbours",
            metavar="SHARE=LEVEL",
            help="Instead of labels: the nearest share of pairs has this level, as 0.05=1.",
        ),
    ] = None,
    graded: GradedOption = False,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="Of the method; VALUE in JSON."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of all that is drawn.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model in --out.")
    ] = False,
) -> None:
    """Learn codes of the rows of X and write the model to a folder."""
    _require_one(labels, tags, judgements, neighbours)
    params, shares = named_values("--param", param), named_values("--neighbours", neighbours)
    with input_errors_exit_1():
        hasher = _made(method, bits, seed, params)
        _require_place(out, overwrite)
        x = load_array(rows)
        y = _supervision(x, labels or tags, judgements, shares, graded)
        if tags is not None and getattr(y, "ndim", 2) != 2:
            raise InputError(f"--tags must be multi-hot (2-D), {tags} holds {describe(y)}")
        started = time.monotonic()
        _fit_with_bar(hasher, x, y)
        seconds = time.monotonic() - started
        hasher.save(out)
    found = {
        "method": method,
        "bits": hasher.n_bits_,
        "items": len(x),
        "features": int(np.prod(x.shape[1:])),
        "seed": hasher.get_params(deep=False).get("random_state"),
        "seconds": round(seconds, 3),
        "out": out,
    }
    report = getattr(hasher, "report_", None)
    print_json(found if report is None else {**found, "report": as_json(report)})


def _require_one(*given: Any) -> None:
    if sum(bool(source) for source in given) > 1:
        raise typer.BadParameter("give one of --labels, --tags, --judgements and --neighbours")


def _made(method: str, bits: int | None, seed: int, params: dict[str, Any]) -> Any:
    """The method with its parameters, those of --param first."""
    from rankbits import methods

    hasher = methods.get(method, **params)
    known = hasher.get_params(deep=False)
    if bits is not None and "n_bits" not in params:
        hasher.set_params(n_bits=bits)
    if "random_state" in known and "random_state" not in params:
        hasher.set_params(random_state=seed)
    return hasher


def _fit_with_bar(hasher: Any, x: np.ndarray, y: Any) -> None:
    """Fit; a method that can shows its progress on a terminal, and its model does not know."""
    before = hasher.get_params(deep=False).get("verbose")
    if before is False:
        hasher.set_params(verbose="auto")
    hasher.fit(x, y)
    if before is False:
        hasher.set_params(verbose=False)


def _require_place(out: str, overwrite: bool) -> None:
    """Refuse a folder that could not be written, before the work that would fill it."""
    from rankbits._folders import require_replaceable
    from rankbits.methods.persistence import is_model

    require_replaceable(out, is_model)
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
        return _near(x, shares)
    if labels is None:
        if graded:
            raise InputError("--graded needs multi-hot labels (2-D), got no labels")
        return None
    y = load_labels(labels)
    if len(y) != len(x):
        raise InputError(f"{labels} has {len(y)} labels and X has {len(x)} rows; both go in step")
    if graded and y.ndim != 2:
        raise InputError("--graded needs multi-hot labels (2-D), got classes (1-D)")
    return affinity.tags(y, y, graded=True) if graded else np.asarray(y)


def _near(x: np.ndarray, shares: dict[str, Any]) -> affinity.Affinity:
    """Levels by distance: the nearest shares of the pairs of X."""
    try:
        cuts = affinity.distance_quantiles(x, [float(share) for share in shares])
        return affinity.neighbours(x, x, cuts, list(shares.values()))
    except ValueError as error:
        raise InputError(f"--neighbours must be SHARE=LEVEL as in 0.05=1: {error}") from None
