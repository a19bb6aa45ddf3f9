"""Connections that speak slowly, too much or never are closed, and everybody else is answered."""

import http.client
import json
import logging
import resource
import select
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rankbits.service import Limits, create_app
from rankbits.service._connections import BACKLOG, most_connections
from rankbits.service._log_lines import OncePerMinute
from service.conftest import running
from service.problems import post

BOUNDS = {
    "connections": 30,
    "header_bytes": 8000,
    "header_seconds": 1,
    "idle_seconds": 1,
    "requests": 4,
    "seconds": 20,
}
HEAD = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
ASK = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def url(folder):
    limits = Limits(**BOUNDS)
    app = create_app(folder.path / "collection", **folder.settings, limits=limits)
    with running(app) as address:
        yield address


@contextmanager
def connected(url, data=b""):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(data)
        yield connection


def rest(connection):
    """Everything that comes until the connection is closed."""
    content = b""
    try:
        while part := connection.recv(65536):
            content += part
    except ConnectionResetError:
        pass
    return content


def ask_until(connection, ask, end):
    """Send and read nothing."""
    while time.monotonic() < end:
        connection.sendall(4 * ask)
        time.sleep(0.01)


def is_answered(url):
    return post(url, "/search", {"ids": [3]}).status_code == 200


@pytest.mark.parametrize(
    ("begin", "answer"),
    [
        (b"", b""),
        (b"GET /stats HTTP/1.1\r\nHost: loc", b"HTTP/1.1 408 "),
        (b"\r\n\r\n", b"HTTP/1.1 408 "),
        (ASK, b"HTTP/1.1 200 "),
    ],
)
def test_a_connection_that_says_nothing_more_is_closed(url, begin, answer):
    start = time.monotonic()
    with connected(url, begin) as connection:
        assert is_answered(url)
        content = rest(connection)
    assert time.monotonic() - start < 5
    assert content[: len(answer) or 1] == answer


def test_headers_that_come_byte_by_byte_are_408(url):
    with connected(url) as connection:
        for byte in b"GET /stats HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40:
            if select.select([connection], [], [], 0.05)[0]:
                break
            connection.sendall(bytes([byte]))
        assert rest(connection).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /stats HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET /stats HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 5000 + b"\r\n",
        b"GET /stats HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000,
    ],
    ids=["path", "header", "headers", "endless"],
)
def test_large_headers_are_431(url, data):
    with connected(url, data) as connection:
        content = rest(connection)
    assert content.startswith(b"HTTP/1.1 431 The headers are too large\r\n")
    assert b"application/problem+json" in content
    assert b"headers may have 8000 bytes" in content
    assert is_answered(url)


@pytest.mark.parametrize("tail", [b"X: a\r\n" * 5000, b"X: " + b"a" * 100_000])
def test_headers_after_a_body_are_limited_too(url, tail):
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"
    with connected(url, head + tail) as connection:
        start = time.monotonic()
        rest(connection)
        assert time.monotonic() - start < 5


def test_a_body_that_pauses_is_408_long_before_the_time_of_a_request(url):
    start = time.monotonic()
    with connected(url, HEAD + b'Content-Length: 30\r\n\r\n{"ids":') as connection:
        content = rest(connection)
    assert content.startswith(b"HTTP/1.1 408 ")
    assert b"pause for 1" in content
    assert time.monotonic() - start < 5


def test_a_slow_body_that_goes_on_is_read(url):
    body = b'{"ids": [3], "k": 4}'
    with connected(url, HEAD + b"Content-Length: 20\r\nConnection: close\r\n\r\n") as connection:
        for byte in body:
            time.sleep(0.08)
            connection.sendall(bytes([byte]))
        assert rest(connection).startswith(b"HTTP/1.1 200 ")


def test_slow_bodies_take_no_place_from_those_that_are_there(url):
    with ExitStack() as stack:
        slow = [
            stack.enter_context(connected(url, HEAD + b"Content-Length: 30\r\n\r\n{"))
            for _ in range(3 * BOUNDS["requests"])
        ]
        assert all(is_answered(url) for _ in range(20))
        first = rest(slow[0])  # the oldest made room for the newest
        assert first.startswith(b"HTTP/1.1 408 ")


@pytest.fixture
def small(folder):
    """A server that holds fewer connections than requests."""
    limits = Limits(connections=20, requests=100, idle_seconds=5, header_seconds=5)
    with running(create_app(folder.path / "collection", limits=limits)) as address:
        yield address


@pytest.mark.parametrize(
    "data",
    [
        b"GET /stats HT",
        HEAD + b"Content-Length: 30\r\n\r\n{",
        400 * b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["half", "bodies", "unread"],
)
def test_more_connections_than_the_limit_close_those_that_wait_longest(small, data):
    with ExitStack() as stack:
        waiting = [stack.enter_context(connected(small, data)) for _ in range(60)]
        start = time.monotonic()
        assert is_answered(small)
        rest(waiting[0])
        assert time.monotonic() - start < 4  # less than any of them would have by itself


def test_requests_in_a_row_are_answered_up_to_a_number(url):
    with connected(url, 10 * ASK) as connection:
        content = b""
        while content.count(b"HTTP/1.1 200 ") < 10:
            part = connection.recv(65536)
            assert part
            content += part
    with connected(url, 5000 * ASK) as connection:
        assert rest(connection).count(b"HTTP/1.1 200 ") < 20
    assert is_answered(url)


def test_an_answer_that_nobody_takes_is_dropped(url):
    parts, end = urlsplit(url), time.monotonic() + 30
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect((parts.hostname, parts.port))
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            ask_until(connection, ask, end)
    assert is_answered(url)


def test_an_idle_connection_can_be_used_again_until_its_time_is_over(url):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    sockets = set()
    for _ in range(5):
        connection.request("GET", "/stats")
        assert json.load(connection.getresponse())["bits"] == 32
        sockets.add(connection.sock)
        time.sleep(0.4)
    assert len(sockets) == 1
    assert rest(connection.sock) == b""
    connection.close()


def test_the_limit_of_files_leaves_some_for_everything_else(monkeypatch):
    soft = 400
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, soft))
    assert 8 <= most_connections(1000) <= soft - BACKLOG - 64
    assert most_connections(9) == 9
    soft = 20
    assert most_connections(1000) == 8


def test_a_failure_that_repeats_is_a_line_a_minute():
    lines = OncePerMinute(seconds=0.2)
    error = (ValueError, ValueError("x"), None)

    def is_printed(text, *arguments, error=None):
        record = logging.LogRecord("uvicorn.error", 30, "", 0, text, arguments, error)
        return lines.filter(record) and record.getMessage()

    assert is_printed("failed: %s", "/a") == "failed: /a"
    assert [is_printed("failed: %s", "/b") for _ in range(1000)] == [False] * 1000
    assert is_printed("other") == "other"
    assert is_printed("failed: %s", "/c", error=error)
    time.sleep(0.25)
    assert is_printed("failed: %s", "/d") == "failed: /d (1000 more like it were not printed)"


def test_a_server_with_few_files_answers_while_it_is_attacked(tmp_path):
    """A slice of what make soak does with the script beside this file."""
    script = Path(__file__).parent / "connections.py"
    options = ["--together", "--seconds", "1", "--sockets", "160", "--files", "220"]
    command = [sys.executable, str(script), *options, "--folder", str(tmp_path), "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["violations"] == 0, done.stderr
    assert counts["answers"] > 0
