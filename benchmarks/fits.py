"""Seconds that each method takes to fit under a protocol: wall and processor time, nothing shared.

Every fit learns its own class posterior: none is given a cache.

    python benchmarks/fits.py DATA [--protocol cifar10-s1] [--bits 32] [--method talr-ap ...]
"""

import argparse
import time
from pathlib import Path

from rankbits import datasets, methods
from rankbits.benchmark import protocol


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the files of features")
    parser.add_argument("--protocol", default="cifar10-s1")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--method", nargs="+", help="else all that the protocol has")
    chosen = parser.parse_args()
    rules = protocol(chosen.protocol)
    (file,) = [f for f in chosen.data.glob(f"{rules.data}_*.npz") if "webp" not in f.name]
    data = datasets.load_features(file)
    task = rules.relevance.task(data, rules.split.draw(data, 0))
    rows, features = task.training_x.shape
    print(f"{rules.name}, {rows:,} rows of {features} features, {chosen.bits} bits\n")
    print("| method | seconds | processor seconds |\n|---|---|---|")
    for name in chosen.method or rules.methods:
        hasher = methods.get(name, n_bits=chosen.bits, **rules.defaults.get(name, {}))
        if "random_state" in hasher.get_params():
            hasher.set_params(random_state=0)
        wall, processor = time.perf_counter(), time.process_time()
        hasher.fit(task.training_x, task.training_y)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print(f"| `{name}` | {wall:.2f} | {processor:.2f} |", flush=True)


if __name__ == "__main__":
    main()
