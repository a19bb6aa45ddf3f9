"""What exceeds a limit is refused with the right status, and the server goes on."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from rankbits import _wire
from rankbits.service import Limits, create_app
from service.conftest import running
from service.problems import assert_problem, post

BOUNDS = {"body_bytes": 5000, "batch": 4, "k": 20, "results": 60, "requests": 3, "seconds": 1}


@pytest.fixture(scope="module")
def app(folder):
    limits = Limits(**BOUNDS)
    return create_app(folder.path / "collection", **folder.settings, limits=limits)


@pytest.fixture(scope="module")
def url(app):
    with running(app) as address:
        yield address


@pytest.fixture
def codes(folder):
    return [row.tobytes().hex() for row in folder.codes[:9].packed]


def test_a_body_is_limited_by_its_header_and_while_it_arrives(url, codes):
    long = {"codes": codes[:1], "allowed": list(range(2000))}
    assert_problem(post(url, "/search", long), 413, "5000 bytes")
    data = json.dumps(long).encode()
    headers = {"Content-Type": "application/json"}
    chunked = httpx.post(url + "/search", content=iter([data[:3000], data[3000:]]), headers=headers)
    assert_problem(chunked, 413, "5000 bytes")
    assert post(url, "/search", {"codes": codes[:1]}).status_code == 200


def test_a_huge_body_is_refused_before_it_is_sent(url):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(
            b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000000000000\r\n\r\n"
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"ids": [0, 1, 2, 3, 4]}, "ids must be at most 4"),
        ({"ids": [0], "k": 21}, "k must be at most 20"),
        ({"ids": [0, 1, 2, 3], "k": 20}, "would have 80"),
        ({"ids": [0], "radius": 32}, "would have 1500"),
        ({"ids": [0], "radius": 99}, "would have 1500"),
        ({"ids": [0, 1], "k": 1, "include": ["histogram"]}, "would have 66"),
        (
            {"ids": [0], "k": 5, "rerank": "weighted_bits", "weights": [1.0] * 32, "pool": 9999},
            "pool",
        ),
    ],
)
def test_a_request_that_asks_for_too_much_is_refused(url, body, words):
    include = {"include": ["histogram"]} if "radius" not in body and "pool" not in body else {}
    problem = assert_problem(post(url, "/search", {**include, **body}), 422, words)
    assert problem["type"].endswith(":limit")


def test_plain_searches_are_limited_in_their_results_too(url):
    assert_problem(post(url, "/search", {"ids": [0, 1, 2, 3], "k": 20}), 422, "would have 80")


def test_ties_count_among_the_results(url, folder):
    bits = folder.codes.bits()
    distances = np.array([(bits[item] != bits).sum(axis=1) for item in (0, 1, 2)])
    kth = np.sort(distances, axis=1)[:, 19]
    n = int((distances <= kth[:, None]).sum())
    assert n > 60
    body = {"ids": [0, 1, 2], "k": 20, "ties": "complete"}
    assert_problem(post(url, "/search", body), 422, f"would have {n}")
    content = post(url, "/search", {**body, "radius": 1}).json()
    assert [len(ids) for ids in content["ids"]] == (distances <= 1).sum(axis=1).tolist()


def test_arrays_are_limited_as_lists_are(url):
    body = _wire.dump({"ids": np.arange(5)}, {"k": "1"})
    headers = {"Content-Type": _wire.MEDIA_TYPE}
    assert_problem(httpx.post(url + "/search", content=body, headers=headers), 422, "at most 4")
    for path in ("/encode", "/items"):
        answer = post(
            url, path, {"vectors": [[0.0] * 64] * 5, **({"ids": [1]} if "i" in path else {})}
        )
        assert answer.status_code in (403, 422)


@pytest.fixture
def gate(app, monkeypatch):
    """Searches wait until this is set."""
    event, batcher = threading.Event(), app.state.parts.batcher
    search = batcher._search
    monkeypatch.setattr(batcher, "_search", lambda *query: (event.wait(20), search(*query))[1])
    yield event
    event.set()


def test_an_answer_that_takes_too_long_is_503_and_the_next_is_answered(url, gate, codes):
    assert_problem(post(url, "/search", {"codes": codes[:1]}), 503, "after 1 seconds")
    assert httpx.get(url + "/healthz").status_code == 200
    gate.set()
    assert post(url, "/search", {"codes": codes[:1]}).status_code == 200


def test_too_many_at_once_are_429_but_health_is_answered(url, gate, codes):
    answers = []
    ask = lambda: answers.append(post(url, "/search", {"codes": codes[:1]}))  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(7)]
    for thread in threads:
        thread.start()
    while len(answers) < 4:
        time.sleep(0.01)
    assert httpx.get(url + "/healthz").status_code == 200
    text = httpx.get(url + "/metrics").text
    assert "rankbits_requests_in_flight 4" in text
    gate.set()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 4
    assert_problem(next(a for a in answers if a.status_code == 429), 429, "3 requests at once")


def test_a_slow_body_is_408_and_keeps_nobody_waiting(url, codes):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(
            b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 30\r\n\r\n{"
        )
        assert post(url, "/search", {"codes": codes[:1]}).status_code == 200
        assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_leaves_is_noted_and_forgotten(url, gate, codes, caplog):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(
            b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 30\r\n\r\n{"
        )
    gate.set()
    assert post(url, "/search", {"codes": codes[:1]}).status_code == 200
    counted = 'rankbits_requests_total{method="POST",route="/search",status="499"} '
    for _ in range(100):
        if counted in (text := httpx.get(url + "/metrics").text):
            break
        time.sleep(0.02)
    assert counted in text
    assert 'status="500"' not in text
    assert not caplog.records


RESCORED = {"k": 5, "rerank": "weighted_bits", "weights": [1.0] * 32}
WORK = [
    ({"ids": [0, 1], **RESCORED, "pool": 60}, "candidates, queries times pool, may be 100"),
    ({"ids": [0, 1], **RESCORED}, "candidates"),
    ({"ids": [0], **RESCORED, "pool": 90, "ties": "complete"}, "candidates"),
    ({"ids": [0, 1, 2], "radius": 1}, "comparisons, queries times items, may be 4000"),
    ({"ids": [0, 1, 2], "k": 1, "ties": "complete"}, "comparisons"),
    ({"ids": [0, 1, 2], "k": 1, "include": ["histogram"]}, "comparisons"),
    ({"ids": [0], "k": 1, "allowed": list(range(51))}, "allowed must be at most 50"),
    ({"ids": [0, 1, 2, 3], "k": 200, "include": ["fields"]}, "may have 20000 bytes"),
]


@pytest.mark.parametrize(("body", "words"), WORK)
def test_the_work_of_a_request_is_limited_before_it_begins(folder, body, words):
    limits = Limits(candidates=100, comparisons=4000, allowed=50, body_bytes=20_000)
    app = create_app(folder.path / "collection", **folder.settings, limits=limits)
    with running(app) as address:
        problem = assert_problem(post(address, "/search", body), 422, words)
        assert problem["type"].endswith(":limit")
        inside = {"ids": [0], **RESCORED, "pool": 60, "allowed": list(range(50))}
        assert post(address, "/search", inside).status_code == 200


def test_a_search_in_pieces_is_that_in_one(folder, monkeypatch):
    """Pieces of a query each give what all queries together do."""
    bodies = [
        {"radius": 9, "include": ["histogram", "codes"]},
        {"k": 7, "ties": "complete"},
        {"k": 7, "radius": 9},
        {"k": 7, "by": "weights"},
        {"k": 7, "rerank": "weights", "pool": 30},
        {"k": 7, "rerank": "vectors", "pool": 30, "include": ["fields"]},
        {"k": 7, "allowed": list(range(0, 1500, 2))},
        {"k": 7},
    ]
    bodies = [{"ids": list(range(5, 25)), **body} for body in bodies]
    with running(create_app(folder.path / "collection", **folder.settings)) as address:
        together = [post(address, "/search", body).json() for body in bodies]
        monkeypatch.setattr("rankbits.service._alone.queries_at_once", lambda *_: 1)
        monkeypatch.setattr("rankbits.service._parts.queries_at_once", lambda *_: 3)
        monkeypatch.setattr("rankbits.service._alone._FEW_ALLOWED", 10)
        apart = [post(address, "/search", body).json() for body in bodies]
    for one, other in zip(together, apart, strict=True):
        assert one | {"milliseconds": 0} == other | {"milliseconds": 0}


def test_a_search_that_is_given_up_ends_with_its_piece(folder, monkeypatch):
    app = create_app(folder.path / "collection", limits=Limits(seconds=1))
    n_looks, is_running = [0], threading.Event()

    def slow(*_, **__):
        n_looks[0] += 1
        is_running.set()
        time.sleep(0.3)
        return np.zeros((1, 33), np.int64)

    monkeypatch.setattr("rankbits.index.HammingIndex.tie_counts", slow)
    monkeypatch.setattr("rankbits.service._alone.queries_at_once", lambda *_: 1)
    with running(app) as address:
        body = {"ids": list(range(40)), "radius": 2}
        assert_problem(post(address, "/search", body), 503, "after 1 seconds")
        time.sleep(0.7)
        n_after = n_looks[0]
        assert n_after < 10
        is_running.clear()
        with pytest.raises(httpx.TimeoutException):
            httpx.post(address + "/search", json=body, timeout=0.4)
        assert is_running.wait(5)
        time.sleep(1)
        assert n_looks[0] - n_after < 4


def test_health_is_told_while_all_else_is_busy(folder):
    app = create_app(folder.path / "collection", limits=Limits(requests=1))
    batcher, gate = app.state.parts.batcher, threading.Event()
    with running(app) as address:
        pools = [pool for pool in vars(batcher).values() if isinstance(pool, ThreadPoolExecutor)]
        busy = [pool for pool in pools if pool._thread_name_prefix != "rankbits-status"]
        assert len(busy) > 2
        waiting = [pool.submit(gate.wait, 20) for pool in busy for _ in range(3)]
        try:
            for path in ("/healthz", "/readyz", "/metrics"):
                assert httpx.get(address + path, timeout=5).status_code == 200
        finally:
            gate.set()
        assert all(one.result() for one in waiting)


def test_large_requests_share_the_memory_that_they_may_take(folder):
    limits = Limits(memory=1, seconds=1)  # one at a time
    app = create_app(folder.path / "collection", limits=limits)
    memory, allowed = app.state.parts.memory, list(range(5000))
    assert len(json.dumps(allowed)) > 1 << 14
    with running(app) as address:
        body = {"ids": [3], "allowed": allowed}
        assert post(address, "/search", body).status_code == 200
        memory._free -= 1  # somebody has it
        assert_problem(post(address, "/search", body), 503, "after 1 seconds")
        assert post(address, "/search", {"ids": [3]}).status_code == 200
        memory._free += 1
        assert post(address, "/search", body).status_code == 200
        assert memory._free == 1


@pytest.mark.parametrize("name", ["body_bytes", "k", "seconds"])
def test_limits_are_whole_numbers_above_zero(name):
    for value in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=name):
            Limits(**{name: value})
