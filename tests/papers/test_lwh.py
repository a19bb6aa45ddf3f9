"""What the LWH paper says of its method: few cuts, fast, and better than methods without labels.

Z. Yu et al., "Hashing with list-wise learning to rank", SIGIR 2014.
"""

import time

import numpy as np
import pytest

from rankbits import methods
from rankbits.benchmark import run
from realdata import real


def test_a_fit_of_the_papers_size_ends_within_50_cuts_and_10_seconds():
    """300 queries of 1,000 labelled points, 10 classes; 256 features, 32 bits."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1000)
    x = 0.35 * rng.standard_normal((10, 256))[y] + rng.standard_normal((1000, 256))
    hasher = methods.get("lwh", n_bits=32, n_queries=300, random_state=0)
    started = time.process_time()
    hasher.fit(x, y)
    assert time.process_time() - started < 10
    assert hasher.report_["queries"] == 300
    assert hasher.report_["converged"]
    assert hasher.report_["cuts"] <= 50


@pytest.mark.parametrize("n_bits", [8, 32])
def test_on_cifar_10_it_beats_the_methods_without_labels_in_map_and_ph2(n_bits):
    folder = real("cifar10_efflite0_160_pca256_f16.npz").parent
    rows = run("lwh-cifar10", folder, bits=n_bits)["summary"]
    scores = {row["method"]: row["metrics"] for row in rows}
    assert set(scores) == {"lsh", "pcah", "itq", "sign", "lwh"}
    ours = scores.pop("lwh")
    for metric in ("AP", "P@r2", "P@100", "R@10000"):
        assert ours[metric]["mean"] > max(other[metric]["mean"] for other in scores.values())
