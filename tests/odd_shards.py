"""Shards that behave badly, importable by the workers of a test cluster."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankbits import BinaryCodes
from rankbits.distributed import ShardFacts

N_BITS = 20


def codes_of(seed, n):
    """Codes and labels of a shard, always the same."""
    rng = np.random.default_rng(seed)
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (n, N_BITS)))
    return codes, rng.integers(0, 4, n)


@dataclass(frozen=True)
class SlowShard:
    """Takes its time for every read, and says in a folder that it has begun."""

    seed: int
    n: int
    seconds: float
    begun: str = ""

    @property
    def name(self):
        return f"slow shard {self.seed}"

    def describe(self):
        return ShardFacts(self.n, N_BITS, labels="classes as integers")

    def read(self, start, stop):
        if self.begun:
            Path(self.begun, f"{self.seed}-{start}-{os.getpid()}").touch()
        time.sleep(self.seconds)
        codes, labels = codes_of(self.seed, self.n)
        return codes[start:stop], labels[start:stop]


@dataclass(frozen=True)
class DeadlyShard(SlowShard):
    """Kills the worker that reads it."""

    def read(self, start, stop):
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class StuckShard(SlowShard):
    """Stops the first worker that reads it, for good; a second one gets through."""

    def read(self, start, stop):
        try:
            Path(self.begun, "stuck").touch(exist_ok=False)
        except FileExistsError:
            return super().read(start, stop)
        os.kill(os.getpid(), signal.SIGSTOP)
        return super().read(start, stop)
