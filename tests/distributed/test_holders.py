"""Which replica is asked next, by a Ray whose replicas answer, fail and hang as a script says."""

import time
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from rankbits.distributed import _holders
from rankbits.distributed._holders import HolderCall, Holders


class LostError(Exception):
    """What a call to a replica that was lost ends with."""


@dataclass(eq=False)
class Reference:
    """A call: when it ends, and with what."""

    due: float
    outcome: object


class ScriptedRay:
    """Answers of replicas: (seconds until then, answer or error); None is a call that hangs."""

    exceptions = SimpleNamespace(
        RayActorError=LostError, ObjectLostError=LostError, WorkerCrashedError=LostError
    )

    def __init__(self, *scripts):
        self.scripts, self.n_calls = [list(script) for script in scripts], [0] * len(scripts)

    def actor(self, replica):
        def remote(*_):
            self.n_calls[replica] += 1
            script = self.scripts[replica]
            step = script.pop(0) if len(script) > 1 else script[0]
            seconds, outcome = step or (1e9, None)
            return Reference(time.monotonic() + seconds, outcome)

        return SimpleNamespace(
            call=SimpleNamespace(options=lambda **_: SimpleNamespace(remote=remote))
        )

    @staticmethod
    def wait(refs, timeout):
        end = time.monotonic() + timeout
        while True:
            ready = [ref for ref in refs if ref.due <= time.monotonic()][:1]
            if ready or time.monotonic() > end:
                return ready, []
            time.sleep(0.001)

    @staticmethod
    def get(ref):
        if isinstance(ref.outcome, Exception):
            raise ref.outcome
        return None, ref.outcome


def ask(monkeypatch, ray, turn):
    monkeypatch.setattr(_holders, "_LATE_SECONDS", 0.02)
    monkeypatch.setattr(_holders, "_PAUSE_SECONDS", 0.01)
    holders = Holders.__new__(Holders)
    holders._ray, holders._folders, holders._turn = ray, ["shard"], turn
    holders._actors = [[ray.actor(replica) for replica in range(len(ray.scripts))]]
    call = HolderCall(0, "search")
    ray.wait = limited(ray.wait)
    return holders.ask([call])[0]


def limited(wait, seconds=5.0):
    """A wait that fails where nobody could answer any more."""
    end = time.monotonic() + seconds

    def waiting(refs, timeout):
        assert time.monotonic() < end, "no replica that answers is asked"
        return wait(refs, timeout)

    return waiting


@pytest.mark.parametrize("turn", [0, 1])
def test_a_replica_that_was_lost_while_the_other_hangs_is_asked_again(monkeypatch, turn):
    ray = ScriptedRay([(0.05, LostError()), (0.05, LostError()), (0.0, "answer")], [None])
    assert ask(monkeypatch, ray, turn) == "answer"
    assert ray.n_calls == [3, 1]  # the one that hangs is not asked twice


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_every_replica_is_asked_before_a_call_hangs(monkeypatch, turn):
    ray = ScriptedRay([None], [None], [(0.0, "answer")])
    assert ask(monkeypatch, ray, turn) == "answer"


@pytest.mark.parametrize("turn", [0, 1])
def test_a_call_goes_to_the_other_replica_when_one_is_lost(monkeypatch, turn):
    ray = ScriptedRay([(0.0, LostError())], [(0.0, "answer")])
    assert ask(monkeypatch, ray, turn) == "answer"
    assert ray.n_calls[1] == 1
