"""Seconds of one `rankbits fit` alone and of two at once, and their ratio.

Each round runs one fit alone, then two at the same time, each a process of its own; the best round
of either counts. Two fits at once should take at most 2.5 times as long as one.

    python benchmarks/two_fits.py [--rounds 3] [--epochs 10] [--method talr-ap] [--bits 32]

The command sets GOMP_SPINCOUNT unless it is set already: `GOMP_SPINCOUNT=300000 python
benchmarks/two_fits.py` shows what two fits cost without that.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def start_fit(folder: Path, number: int, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    program = "from rankbits.cli import main; main()"
    arguments = ["fit", str(folder / "x.npy"), "--labels", str(folder / "y.npy")]
    arguments += ["--method", options.method, "--bits", str(options.bits)]
    arguments += ["--param", f"epochs={options.epochs}", "--param", "posterior=0"]
    arguments += ["--out", str(folder / f"model{number}"), "--overwrite"]
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def slowest_fit(folder: Path, n_fits: int, options: argparse.Namespace) -> float:
    """Seconds of the slower of so many fits at once, as each reports them."""
    processes = [start_fit(folder, number, options) for number in range(n_fits)]
    outputs = [process.communicate()[0] for process in processes]
    return max(json.loads(output)["seconds"] for output in outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--method", default="talr-ap")
    parser.add_argument("--bits", type=int, default=32)
    options = parser.parse_args()
    digits = load_digits()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", digits.data.astype(np.float32))
        np.save(folder / "y.npy", digits.target)
        seconds = {1: float("inf"), 2: float("inf")}
        for _ in range(options.rounds):
            for n_fits in seconds:
                seconds[n_fits] = min(seconds[n_fits], slowest_fit(folder, n_fits, options))
    print(
        f"{options.method}, {options.bits} bits, {options.epochs} epochs on the digits: "
        f"one fit {seconds[1]:.2f} s, two at once {seconds[2]:.2f} s, "
        f"{seconds[2] / seconds[1]:.2f} times as long (target <= 2.5)"
    )


if __name__ == "__main__":
    main()
