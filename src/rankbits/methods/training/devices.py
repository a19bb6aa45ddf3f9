"""Where training runs: the device, torch's threads, torch's generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rankbits import _check
from rankbits.errors import InputError


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" takes CUDA, then MPS, then the processor."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next((device for device, is_there in available.items() if is_there), "cpu")
    if not available.get(name, True):
        raise InputError(
            f"device {name!r} is not available on this machine; use device='cpu' or 'auto'"
        )
    return torch.device(name)


@contextmanager
def limit_threads(n_threads: int | None) -> Iterator[None]:
    """Let torch use so many threads for the length of a block; None leaves it as it is."""
    if n_threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(_check.whole("n_threads", n_threads, 1, 4096))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def own_generators() -> Iterator[None]:
    """Let a block seed torch's generators, and leave them to the caller as they were."""
    cuda = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=cuda):
        yield
