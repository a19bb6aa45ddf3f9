"""Where and how training computes: the device, torch's threads and generators, mixed precision.

In mixed precision a network multiplies in bfloat16, everything else stays in float32: weights,
their gradients and moments, losses and statistics. It is used only where the processor has
instructions for products of bfloat16; elsewhere they are emulated and slow.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache

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


def use_mixed_precision(precision: str) -> bool:
    """Whether a training with this `precision` multiplies in bfloat16 on this processor."""
    return precision == "mixed" and multiplies_bfloat16()


@cache
def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    has_instructions = any(getattr(torch.cpu, name, lambda: False)() for name in names)
    return has_instructions and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def mixed_precision(is_mixed: bool) -> AbstractContextManager[object]:
    """A block in which networks on the processor multiply in bfloat16, if so."""
    return torch.autocast("cpu", torch.bfloat16) if is_mixed else nullcontext()
