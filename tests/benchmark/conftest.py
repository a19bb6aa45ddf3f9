"""Tiny data in the layouts that the protocols read."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    """Features of "cifar10", sorted by class, and of "corel5k"; cifar100 is only in the way."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((10, 12)) * 1.5
    for name, n_train, n_test in (("cifar10_tiny", 560, 70), ("cifar100_tiny", 3, 2)):
        parts = {}
        for part, size in (("train", n_train), ("test", n_test)):
            y = np.repeat(np.arange(10), size)
            noise = rng.standard_normal((len(y), 12))
            parts[f"x_{part}"] = (centres[y] + noise).astype(np.float16)
            parts[f"y_{part}"] = y.astype(np.uint8)
        np.savez(folder / f"{name}.npz", **parts)
    tags = rng.integers(0, 4, (90, 11)) == 0
    np.savez(
        folder / "corel5k_tiny.npz",
        features=(tags @ rng.standard_normal((11, 12))).astype(np.float16),
        labels=np.packbits(tags, axis=1),
        n_labels=11,
        is_test=np.arange(90) % 6 == 0,
    )
    np.savez(folder / "cifar10_other.npz", something=np.zeros(3))
    return folder
