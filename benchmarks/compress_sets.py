"""The collections of `compress_peers.py` and `compress_honesty.py`, and the cells that both read.

    npl        93 queries and judgements, 11,426 documents
    cranfield  225 queries and graded judgements, 1,400 documents
    clinc      1,000 test requests against the other 21,500; relevant is the same intent

A cell is one way to make codes at one length with the values of every query; it stays in a folder,
so that a run may be stopped and taken up again, and both benchmarks use the same cells. A method
that is added costs its own cells only. The seconds that all cells of a collection took are printed.
A cell knows the version of rankbits, not its code: take another folder if a method has changed.
"""

import argparse
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
    os.environ[variable] = threads  # before NumPy reads them

import numpy as np

from rankbits.compress._candidates import POOLS, coders
from rankbits.compress._lists import pools_of
from rankbits.compress._plan import Plan
from rankbits.compress._results import Candidates, Cell, collect_candidates
from rankbits.compress._stages import Stages
from rankbits.compress._store import CellStore
from rankbits.compress._task import prepare_task
from rankbits.compress._truth import Truth, check_metrics

TRAINING_ROWS = 20_000


def npl(folder: Path) -> dict[str, Any]:
    data = np.load(folder / "npl_minilm.npz")
    return {"items": data["documents"], "queries": data["queries"], "judged": data["qrels"]}


def cranfield(folder: Path) -> dict[str, Any]:
    data = np.load(folder / "cranfield_minilm.npz")
    qrels = np.load(folder / "cranfield.npz")["qrels"]
    qrels = qrels[(qrels[:, 2] >= 1) & (qrels[:, 2] <= 4)]
    judged = np.stack([qrels[:, 0] - 1, qrels[:, 1] - 1, 5 - qrels[:, 2]], axis=1)
    return {"items": data["documents"], "queries": data["queries"], "judged": judged}


def clinc(folder: Path) -> dict[str, Any]:
    data = np.load(folder / "clinc150_minilm.npz")
    tests = np.flatnonzero(data["split"] == 2)
    asked = np.sort(np.random.default_rng(0).permutation(tests)[:1000])
    others = np.setdiff1d(np.arange(len(data["x"])), asked)
    return {
        "items": data["x"][others],
        "queries": data["x"][asked],
        "query_labels": data["y"][asked],
        "item_labels": data["y"][others],
    }


SETS = {"npl": npl, "cranfield": cranfield, "clinc": clinc}


def add_options(parser: argparse.ArgumentParser) -> None:
    """What says which cells are measured."""
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("compress_cells"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--bytes", nargs="+", type=int, default=[8, 16, 32])
    parser.add_argument("--methods", nargs="+", help="the usual ones if left out")
    parser.add_argument("--with-slow", action="store_true", help="the slow ways of ours, too")
    parser.add_argument("--threads", type=int, default=1)


def measure(
    name: str, seed: int, options: argparse.Namespace, *, has_peers: bool
) -> tuple[Candidates, Truth]:
    """Every way to make codes on every query of a collection."""
    print(f"{name}, seed {seed}", flush=True)
    data = SETS[name](options.data)
    sources = ("items", "queries", "judged", "query_labels", "item_labels")
    task = prepare_task(*(data.get(source) for source in sources), "cosine", None, seed, None)
    store = CellStore(options.out)
    stages = Stages(store, task, seed, options.threads, lambda line: print(f"  {line}", flush=True))
    tried = coders(options.methods, task.relevance.kind, with_slow=options.with_slow)
    pools = tuple(pools_of(POOLS, 10, len(task.items)))
    n_training = min(TRAINING_ROWS, len(task.items))
    plan = Plan(tried, tuple(options.bytes), pools, n_training, len(task.queries), seconds={})
    truth = stages.find_truth(check_metrics(None, task.relevance.kind))
    cells = stages.measure(plan, truth, None, has_peers=has_peers)
    _tell_seconds(cells)
    for sentence in stages.left_out:
        print(f"  left out: {sentence}", flush=True)
    return collect_candidates(cells, truth.metrics, len(task.items)), truth


def _tell_seconds(cells: list[Cell]) -> None:
    seconds: dict[str, float] = defaultdict(float)
    for cell in cells:
        seconds[cell.method] += sum(cell.content["seconds"].values())
    parts = ", ".join(f"{method} {own:.0f}" for method, own in seconds.items())
    print(f"  seconds of all cells: {sum(seconds.values()):.0f} ({parts})", flush=True)
