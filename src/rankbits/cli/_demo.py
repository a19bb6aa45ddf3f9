"""`rankbits demo`: evaluate and audit simple codes of scikit-learn's digits, and show the result.

Two encoders stand in for trained ones: the sign of each centred feature, and the side of random
hyperplanes (M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002).
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankbits import affinity
from rankbits._files import write_atomically
from rankbits.cli._inputs import FormatOption, OutputFormat, input_errors_exit_1
from rankbits.cli._output import number, print_json, print_table
from rankbits.codes import BinaryCodes
from rankbits.datasets import Split, digits
from rankbits.errors import InputError
from rankbits.evaluate import evaluate
from rankbits.evaluate._audit import audit
from rankbits.evaluate._audit_result import Audit

METRICS = ("AP", "nDCG", "P@100", "P@r2", "AP@100", "LGAP@r2")
HYPERPLANES = (16, 32, 64)
_IN_DETAIL = "hyperplanes, 16 bits"
_INTRO = (
    "Handwritten digits from scikit-learn, 8 × 8 pixels in ten classes: {queries} queries search "
    "{items} images, and an image of the same digit is relevant. Sign codes have one bit for each "
    "pixel, the sign of its centred value; random hyperplanes have one bit for each hyperplane. "
    "Every score is exact under ties. AP@100 is divided by the relevant items among the 100; "
    "P@r2 and LGAP@r2 look up all items within Hamming distance 2."
)


def demo(
    out: Annotated[
        str, typer.Option("--out", help="Folder for the page and the results.")
    ] = "out/demo",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the split and the codes.")] = 0,
    output: FormatOption = OutputFormat.json,
) -> None:
    """Evaluate and audit simple codes of scikit-learn's digits, and write one page about them."""
    with input_errors_exit_1():
        from rankbits.report import comparison_page, require_extra

        require_extra()
        folder = _folder(out)
        split = digits(random_state=seed)
        scores, audits = _scored(split, seed)
        page = comparison_page(
            audits,
            list(scores.values()),
            title="Binary codes of handwritten digits",
            intro=_INTRO.format(queries=len(split.query_y), items=len(split.database_y)),
            detail=list(scores).index(_IN_DETAIL),
        )
        results = _results(split, seed, scores, audits)
        _write(folder / "results.json", json.dumps(results, indent=2, allow_nan=False))
        _write(folder / "index.html", page)
    _print(scores, audits, str(folder / "index.html"), output)


def encoded(x: np.ndarray, mean: np.ndarray, planes: np.ndarray | None) -> BinaryCodes:
    """Signs of the centred features, or of their products with the normals of hyperplanes."""
    centred = x - mean
    return BinaryCodes.from_logits(centred if planes is None else centred @ planes)


def _encoders(n_features: int, seed: int) -> dict[str, np.ndarray | None]:
    """Normals of the hyperplanes by the name of the codes; None for the signs of the features."""
    encoders: dict[str, np.ndarray | None] = {f"sign, {n_features} bits": None}
    for n_bits in HYPERPLANES:
        planes = np.random.default_rng((seed, n_bits)).standard_normal((n_features, n_bits))
        encoders[f"hyperplanes, {n_bits} bits"] = planes
    return encoders


def _scored(split: Split, seed: int) -> tuple[dict[str, dict[str, float]], list[Audit]]:
    """Metrics by name of the codes, and an audit of each."""
    relevant = affinity.classes(split.query_y, split.database_y)
    mean = split.database_x.mean(axis=0)
    scores: dict[str, dict[str, float]] = {}
    audits: list[Audit] = []
    for name, planes in _encoders(split.database_x.shape[1], seed).items():
        print(f"evaluating {name}", file=sys.stderr)
        queries, database = (encoded(x, mean, planes) for x in (split.query_x, split.database_x))
        scores[name] = evaluate(queries, database, relevant, METRICS).mean
        audits.append(audit(queries, database, relevant, name=name, random_state=seed))
    return scores, audits


def _results(
    split: Split, seed: int, scores: dict[str, dict[str, float]], audits: list[Audit]
) -> dict[str, Any]:
    return {
        "data": "scikit-learn digits",
        "queries": len(split.query_y),
        "database": len(split.database_y),
        "seed": seed,
        "codes": {
            found.name: {"metrics": scores[found.name], "audit": found.to_dict()}
            for found in audits
        },
    }


def _folder(out: str) -> Path:
    """The folder, made if need be."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out must name a folder, {out} is a file")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(path: Path, text: str) -> None:
    with write_atomically(path) as file:
        file.write(text.encode())
    print(f"wrote {path}", file=sys.stderr)


def _print(
    scores: dict[str, dict[str, float]], audits: list[Audit], page: str, output: str
) -> None:
    if output == "json":
        ranges = {found.name: [found.ap.worst, found.ap.best] for found in audits}
        codes = {name: {"metrics": row, "AP range": ranges[name]} for name, row in scores.items()}
        print_json({"codes": codes, "page": page})
        return
    rows = [
        (
            found.name,
            *(number(value) for value in scores[found.name].values()),
            f"{found.ap.worst:.4f} .. {found.ap.best:.4f}",
        )
        for found in audits
    ]
    print_table("Digits, exact under ties", ("codes", *METRICS, "AP with ties broken"), rows)
    print(f"page: {page}")
