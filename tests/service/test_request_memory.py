"""Memory for large requests is handed out in the order in which they came."""

import asyncio

import pytest

from rankbits.service._problems import RequestProblem
from rankbits.service._request_memory import RequestMemory


async def holding(memory, n_bytes, log, name):
    async with memory.reserved(n_bytes):
        log.append(name)
        await asyncio.sleep(0.01)


def test_who_waits_gets_it_in_order_and_who_needs_none_does_not_wait():
    async def main():
        memory, log = RequestMemory(10), []
        sizes = {"first": 8, "large": 9, "small": 1, "none": 0, "too large": 1000}
        await asyncio.gather(*(holding(memory, n, log, name) for name, n in sizes.items()))
        assert memory._free == 10
        return log

    assert asyncio.run(main()) == ["first", "none", "large", "small", "too large"]


def test_who_leaves_while_waiting_takes_nothing():
    async def main():
        memory, log = RequestMemory(10), []
        first = asyncio.create_task(holding(memory, 8, log, "first"))
        await asyncio.sleep(0)
        leaves = asyncio.create_task(holding(memory, 9, log, "leaves"))
        behind = asyncio.create_task(holding(memory, 2, log, "behind"))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        assert log == ["first"]
        await asyncio.sleep(0)
        assert log == ["first", "behind"]  # it waited for nothing but its turn
        await asyncio.gather(first, behind)
        assert memory._free == 10

    asyncio.run(main())


def test_too_many_that_wait_are_refused():
    async def main():
        memory, log = RequestMemory(1), []
        tasks = [asyncio.create_task(holding(memory, 1, log, i)) for i in range(70)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    refused = [one for one in asyncio.run(main()) if isinstance(one, RequestProblem)]
    assert len(refused) == 5
    assert refused[0].status == 503
    assert refused[0].headers["Retry-After"] == "1"


@pytest.mark.parametrize("n_bytes", [0, 1, 5])
def test_an_error_gives_it_back(n_bytes):
    async def main():
        memory = RequestMemory(5)
        with pytest.raises(ZeroDivisionError):
            async with memory.reserved(n_bytes):
                _ = 1 / 0
        return memory._free

    assert asyncio.run(main()) == 5
