"""Result files whose numbers a generator drew: pages can be tested without training."""

import json

import numpy as np

from rankbits.benchmark import protocol
from rankbits.benchmark._store import settings_hash

USE = {"n_items": 100, "collision_rate": 0.5, "occupancy": [[1, 20], [4, 20]]}


def made_result(name, method, bits, seed=0, *, params=None, metrics=None, **changes):
    """The content of one result file, with metrics drawn from a seed of its settings."""
    chosen = protocol(name)
    settings = {
        "protocol": chosen.rules(),
        "data": "d" * 64,
        "method": method,
        "bits": bits,
        "split_seed": seed,
        "seed": seed,
        "params": dict(chosen.defaults.get(method, {})) | (params or {}),
        "metrics": list(chosen.metrics),
        "version": "0.1.0",
    } | changes
    settings = json.loads(json.dumps(settings))
    rng = np.random.default_rng(int(settings_hash(settings)[:8], 16))
    values = metrics or {metric: float(rng.uniform(0.2, 0.9)) for metric in chosen.metrics}
    if "AP.worst" in values:
        values["AP.worst"], values["AP.best"] = values["AP"] - 0.05, values["AP"] + 0.04
    conventions = {"ties": "expectation over all orders of tied items"}
    rows = {"queries": 10, "skipped": 0, "conventions": conventions}
    return {
        "rankbits_bench": 1,
        "settings": settings,
        "settings_hash": settings_hash(settings),
        "split": {"hash": f"{seed:064x}", "queries": 10, "database": 100, "training": 20},
        "metrics": {metric: {"mean": value, **rows} for metric, value in values.items()},
        "code_use": USE
        | {
            "n_distinct": 40,
            "share_of_space": 40 / 2**bits,
            "entropy_bits": float(rng.uniform(3, 5)),
        },
        "seconds": {"fit": 1.5, "encode": float(rng.uniform(0.1, 2)), "evaluate": 0.25},
        "method_report": None,
        "peak_memory_mb": 100.0,
        "environment": {"rankbits": "0.1.0", "numpy": "2.0", "torch": None, "processors": 2},
    }


def write_result(folder, result):
    """Write it under a name like that of a run; returns the file."""
    settings = result["settings"]
    words = (settings["protocol"]["name"], settings["method"], settings["bits"], settings["seed"])
    file = folder / ("-".join(map(str, words)) + f"-{result['settings_hash'][:12]}.json")
    file.write_text(json.dumps(result))
    return file


def write_part(folder, part, seeds=3):
    """All runs of a part of an exhibit."""
    for method in part.methods:
        for bits in part.bits:
            for seed in range(seeds):
                params = {name.partition(".")[2] or name: v for name, v in part.params.items()}
                result = made_result(part.protocol, method, bits, seed, params=params)
                write_result(folder, result)
