"""`rankbits demo`: learn codes of scikit-learn's digits, and show how they rank.

`talr-ap` learns from half of the database, with its default settings but for a fifth of that half
held out to choose the epoch; `sign` and `lsh` are the yardsticks. No method sees a query before it
is scored.
"""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankbits import affinity
from rankbits._check import extra
from rankbits._inventory import require_own, write_own
from rankbits.cli._demo_served import require_served, serve_folder, write_served
from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import FORMAT, OUT, SEED, AddressOptions, OutputFormat
from rankbits.cli._output import note, number, print_json, print_table
from rankbits.codes import BinaryCodes
from rankbits.datasets import Split, digits
from rankbits.errors import InputError
from rankbits.evaluation import Audit, Evaluation, audit, evaluate

_RESULTS, _PAGE = "results.json", "index.html"
METRICS = ("AP", "AP.worst", "AP.best", "nDCG", "P@100", "P@r2")
N_BITS = 32
N_TRAIN = 750
HELD_OUT = 0.2
_COMPRESSED_BYTES, _COMPRESSED_METHODS = (2, 4, 8), ("distilled", "itq", "sign")
_LEARNED, _SHOWN = "talr-ap", ("talr-ap", "lsh")
_INTRO = (
    "Handwritten digits from scikit-learn, 8 × 8 pixels in ten classes: {queries:,} queries search "
    "{items:,} images by codes of {bits} bits, and an image of the same digit is relevant. "
    "“talr-ap” learned to rank from the labels of {train} of these images, {held_out} of them held "
    "out to choose the epoch; “sign” takes the signs of the {bits} centred pixels that vary most, "
    "“lsh” the sides of {bits} random hyperplanes. No method saw a query before it was scored. "
    "Every score is exact under ties; AP.worst and AP.best are the least and the most that any "
    "order of the tied items would print. P@r2 looks up all items within Hamming distance 2."
)
Codes = dict[str, tuple[BinaryCodes, BinaryCodes]]  # queries and database by method


def demo(
    address: AddressOptions,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then serve the digits, with a page to search them.")
    ] = False,
    seed: Annotated[int, SEED] = 0,
    out: Annotated[str, OUT, "Folder for the page and the results."] = "out/demo",
    output: Annotated[OutputFormat, FORMAT] = OutputFormat.json,
) -> None:
    """Learn codes of scikit-learn's digits, evaluate and audit them, and write one page."""
    with input_errors_exit_1():
        from rankbits.report import require_extra

        require_extra()
        extra("torch", "the demo", "train")
        if serve:
            extra("fastapi", "rankbits demo --serve", "serve")
        folder = _folder(out)
        require_served(folder / "served")
        split = digits(random_state=seed)
        codes, history, hasher = _encoded(split, seed)
        scores, audits = _scored(split, codes, seed)
        results = _results(split, seed, scores, audits, history)
        page = _page(split, codes, scores, audits, history)
        write_own(
            folder,
            {
                _RESULTS: json.dumps(results, indent=2, allow_nan=False).encode(),
                _PAGE: page.encode(),
            },
        )
        note(f"wrote {folder / _PAGE}")
        compressed = _compressed(split, folder, seed)
        command = write_served(folder / "served", split, hasher, codes[_LEARNED][1])
    _print(results, str(folder / _PAGE), compressed, command, output)
    if serve:
        serve_folder(folder / "served", address)


def training_rows(n_items: int, seed: int) -> np.ndarray:
    """The rows of the database whose labels are learned from."""
    return np.sort(np.random.default_rng((seed, 1)).permutation(n_items)[:N_TRAIN])


def _encoded(split: Split, seed: int) -> tuple[Codes, list[dict[str, Any]], Any]:
    """Codes by method, the epochs of the one that was trained, and that method.

    One thread of the processor: the same sums however many cores there are, and it is fast enough.
    """
    from rankbits import methods

    learned: dict[str, Any] = {"validation_fraction": HELD_OUT, "device": "cpu", "n_threads": 1}
    hashers: dict[str, Any] = {
        "talr-ap": methods.get("talr-ap", n_bits=N_BITS, random_state=seed, **learned),
        "sign": methods.get("sign", n_bits=N_BITS),
        "lsh": methods.get("lsh", n_bits=N_BITS, random_state=seed),
    }
    rows = training_rows(len(split.database_y), seed)
    x, y = split.database_x[rows], split.database_y[rows]
    codes: Codes = {}
    for name, hasher in hashers.items():
        started = time.monotonic()
        hasher.fit(x, y)
        note(f"fitted {name} in {time.monotonic() - started:.1f} s")
        codes[name] = hasher.encode_queries(split.query_x), hasher.encode(split.database_x)
    keys = ("epoch", "loss", "score")  # times would differ from run to run
    history = [{key: epoch[key] for key in keys} for epoch in hashers[_LEARNED].history_]
    return codes, history, hashers[_LEARNED]


def _scored(split: Split, codes: Codes, seed: int) -> tuple[dict[str, Evaluation], list[Audit]]:
    """Metrics by method, and an audit of each."""
    relevant = affinity.classes(split.query_y, split.database_y)
    scores = {name: evaluate(*pair, relevant, METRICS) for name, pair in codes.items()}
    audits = [audit(*pair, relevant, name=name, random_state=seed) for name, pair in codes.items()]
    return scores, audits


def _page(
    split: Split,
    codes: Codes,
    scores: dict[str, Evaluation],
    audits: list[Audit],
    history: list[dict[str, Any]],
) -> str:
    from rankbits.report import SamplePictures, comparison_page, samples

    shown = {name: codes[name] for name in _SHOWN}
    sides = (split.query_x, split.query_y), (split.database_x, split.database_y)
    queries, items = (SamplePictures(x.reshape(-1, 8, 8) / 16, y) for x, y in sides)
    hardest = np.argsort(scores[_LEARNED].per_query["AP"], kind="stable")[:3]
    groups = {
        "The first query of each digit": first_of_each(split.query_y),
        f"The three queries that {_LEARNED} ranks worst": hardest,
    }
    return comparison_page(
        audits,
        [row.mean for row in scores.values()],
        title="Binary codes of handwritten digits",
        intro=_INTRO.format(
            queries=len(split.query_y),
            items=len(split.database_y),
            bits=N_BITS,
            train=N_TRAIN,
            held_out=round(HELD_OUT * N_TRAIN),
        ),
        history=history,
        samples={title: samples(rows, shown, queries, items) for title, rows in groups.items()},
    )


def first_of_each(labels: np.ndarray) -> np.ndarray:
    """The first row of each label, in the order of the labels."""
    rows: np.ndarray = np.unique(labels, return_index=True)[1]
    return rows


def _compressed(split: Split, folder: Path, seed: int) -> str:
    """The recommendation of `rankbits compress` for the pixels as they are, in one sentence."""
    from rankbits.compress import compress

    done = compress(
        split.database_x.astype(np.float32),
        split.query_x.astype(np.float32),
        out=folder / "compressed",
        query_labels=split.query_y,
        item_labels=split.database_y,
        n_bytes=_COMPRESSED_BYTES,
        methods=_COMPRESSED_METHODS,
        onnx=False,
        random_state=seed,
        n_threads=1,
    )
    note(f"wrote {folder / 'compressed'}")
    return str(done.recommendation["sentence"])


def _results(
    split: Split,
    seed: int,
    scores: dict[str, Evaluation],
    audits: list[Audit],
    history: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "data": "scikit-learn digits",
        "queries": len(split.query_y),
        "database": len(split.database_y),
        "trained on": N_TRAIN,
        "bits": N_BITS,
        "seed": seed,
        "codes": {
            audited.name: {"metrics": scores[audited.name].mean, "audit": audited.to_dict()}
            for audited in audits
        },
        "history": history,
    }


def _folder(out: str) -> Path:
    """The folder, which is created if it does not exist; files that are not ours stay in it."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out must name a folder, {out} is a file")
    folder.mkdir(parents=True, exist_ok=True)
    require_own(folder, [_RESULTS, _PAGE])
    return folder


def _print(results: dict[str, Any], page: str, compressed: str, command: str, output: str) -> None:
    metrics = {name: row["metrics"] for name, row in results["codes"].items()}
    if output == "json":
        codes = {name: {"metrics": row} for name, row in metrics.items()}
        files = {"page": page, "compressed": compressed, "serve": command}
        print_json({"bits": results["bits"], "codes": codes, **files})
        return
    rows = [(name, *map(number, row.values())) for name, row in metrics.items()]
    print_table(f"Digits, {N_BITS} bits, exact under ties", ("codes", *METRICS), rows)
    print(f"page: {page}")
    print(f"compressed from 256 bytes: {compressed}")
    print(f"to search the digits in a browser: {command}")
