"""The client: errors with their problem, patience with a busy server, texts as queries."""

import contextlib
import itertools
import re
import socket
import threading
import time
import zlib

import numpy as np
import pytest

from rankbits import _wire
from rankbits.client import Client, ServiceError
from rankbits.errors import InputError, RankbitsError
from rankbits.service import create_app
from service.conftest import running

httpx = pytest.importorskip("httpx")


def answering(*answers):
    """A transport that gives these answers one after the other, and the requests it saw."""
    rest, requests = list(answers), []

    def handle(request):
        requests.append(request)
        return rest.pop(0)

    return httpx.MockTransport(handle), requests


def busy(status, seconds="0"):
    problem = {"title": "Too many", "detail": "try again", "status": status}
    return httpx.Response(status, json=problem, headers={"Retry-After": seconds})


def test_a_busy_server_is_asked_again():
    transport, requests = answering(busy(429), busy(503), httpx.Response(200, json={"items": 3}))
    with Client(transport=transport) as client:
        assert client.stats() == {"items": 3}
    assert len(requests) == 3


def test_after_the_last_attempt_the_problem_is_raised():
    transport, requests = answering(busy(503, "7"))
    with Client(transport=transport, retries=0) as client, pytest.raises(ServiceError) as caught:
        client.stats()
    assert (caught.value.status, caught.value.retry_after) == (503, 7.0)
    assert caught.value.problem["detail"] == "try again"
    assert str(caught.value) == "503 Too many: try again"
    assert len(requests) == 1


def test_what_is_no_problem_details_is_told_as_it_is():
    transport, _ = answering(httpx.Response(502, text="<html>bad gateway"))
    with Client(transport=transport) as client, pytest.raises(ServiceError, match="bad gateway"):
        client.stats()


def test_a_server_that_is_not_there_is_one_sentence():
    unreached = pytest.raises(RankbitsError, match="cannot be reached")
    with Client("http://127.0.0.1:9", retries=0) as client, unreached:
        client.stats()


def test_a_token_is_sent_and_types_are_checked_before_anything_is_sent():
    transport, requests = answering(httpx.Response(204))
    with Client(transport=transport, token="secret-secret-secret") as client:
        client.remove(3)
        assert requests[0].headers["authorization"] == "Bearer secret-secret-secret"
        assert (requests[0].method, requests[0].url.path) == ("DELETE", "/items/3")
        with pytest.raises(InputError, match="ids must be of type int64"):
            client.search(ids=[1.5])
        with pytest.raises(InputError, match="codes must be of type uint8"):
            client.search(codes=np.zeros((1, 4)))
    assert len(requests) == 1


def test_texts_are_queries(folder):
    rows = folder.data.query_x
    encode = lambda texts: rows[[int(text) for text in texts]]  # noqa: E731
    settings = {**folder.settings, "text_encoder": encode}
    with (
        running(create_app(folder.path / "collection", **settings)) as url,
        Client(url) as client,
    ):
        answer = client.search(texts=["4", "9"], k=3)
        assert np.array_equal(answer.ids, client.search(vectors=rows[[4, 9]], k=3).ids)
        assert client.encode(texts=["4"]) == client.encode(rows[4:5])
        with pytest.raises(ServiceError, match="exactly one of"):
            client.search(k=3)


def test_single_precision_goes_through_as_it_is(folder):
    rows = folder.data.query_x[:3].astype(np.float32) / 3
    with (
        running(create_app(folder.path / "collection", **folder.settings)) as url,
        Client(url) as client,
    ):
        assert np.array_equal(
            client.encode(rows, side="weights"), folder.hasher.project_queries(rows)
        )


def test_the_extra_is_named(hide_package):
    hide_package("httpx")
    with pytest.raises(RankbitsError, match=r"rankbits\[client\]"):
        Client()


class Strange:
    """A server that answers every request with the same bytes, and remembers what it was sent."""

    def __init__(self, *parts, pause=0.0):
        self.parts, self.pause, self.requests = parts, pause, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(timeout=10)

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                self.requests.append(self._request(connection))
                for part in itertools.chain(*self.parts):
                    connection.sendall(part)
                    time.sleep(self.pause)

    def _request(self, connection):
        """The bytes of a request; to answer before all are there could reset the connection."""
        data = b""
        while (part := connection.recv(1 << 16)) and b"\r\n\r\n" not in data + part:
            data += part
        data += part
        length = re.search(rb"(?i)content-length: (\d+)", data)
        while length and len(data.partition(b"\r\n\r\n")[2]) < int(length[1]):
            data += connection.recv(1 << 16)
        return data


def head(status="200 OK", **headers):
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return [("\r\n".join([f"HTTP/1.1 {status}", "Connection: close", *lines, "", ""])).encode()]


def arrays(**values):
    return [_wire.dump(values, {"milliseconds": "1"})]


def bomb():
    """Half a megabyte that would become 512."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(512)]
    return [b"".join([*parts, packer.flush()])]


IDS = np.zeros((1, 3), np.int64)
STRANGE = {
    "no HTTP": ([b"220 smtp.example ESMTP\r\n"],),
    "nothing": ([],),
    "half": ([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"],),
    "text": (head(), [b"<html>hello"]),
    "empty": (head(),),
    "a list": (head(), [b"[1, 2, 3]"]),
    "deep": (head(), [b"[" * 100_000]),
    "a long header": ([b"HTTP/1.1 200 OK\r\nX: "], itertools.repeat(b"x" * 9999)),
    "compressed": (head(Content_Encoding="gzip"), bomb()),
    "endless": (head(), itertools.repeat(bytes(1 << 16))),
    "endless chunks": (
        head(Transfer_Encoding="chunked"),
        itertools.repeat(b"10000\r\n" + bytes(1 << 16) + b"\r\n"),
    ),
    "no ids": (head(), arrays(distances=IDS)),
    "ids of floats": (head(), arrays(ids=IDS.astype(float))),
    "other shapes": (head(), arrays(ids=IDS, distances=IDS[:, :2])),
    "wrong offsets": (head(), arrays(ids=IDS[0], offsets=np.array([0, 9]))),
    "negative offsets": (head(), arrays(ids=IDS[0], offsets=np.array([0, 9, -2, 3]))),
    "no time": (head(), [_wire.dump({"ids": IDS})]),
    "a time of text": (head(), [_wire.dump({"ids": IDS}, {"milliseconds": '"x"'})]),
    "a header that is too long": (head(), [b"\xff" * 8 + b"x" * 99]),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_server_is_one_sentence(name):
    with (
        Strange(*STRANGE[name]) as server,
        Client(server.url, max_bytes=1 << 22, retries=0, timeout=20) as client,
    ):
        with pytest.raises(
            RankbitsError, match=r"^http://127.0.0.1:\d+ (cannot|does not)"
        ) as caught:
            client.search(ids=[3])
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("call", ["stats", "encode", "item", "upsert"])
@pytest.mark.parametrize("body", [b"[1]", b"7", b"<html>", b'"x"', b"\xff"])
def test_every_call_refuses_what_is_no_answer(call, body):
    calls = {
        "stats": lambda client: client.stats(),
        "encode": lambda client: client.encode([[0.5]]),
        "item": lambda client: client.item(3),
        "upsert": lambda client: client.upsert([3], codes=np.zeros((1, 4), np.uint8)),
    }
    refusal = pytest.raises(RankbitsError, match="does not answer as rankbits serve")
    with Strange(head(), [body]) as server, Client(server.url) as client, refusal:
        calls[call](client)


def test_an_answer_that_drips_ends_with_the_time_of_a_request():
    with Strange(head(), itertools.repeat(b" "), pause=0.05) as server:
        start = time.monotonic()
        with (
            Client(server.url, timeout=1) as client,
            pytest.raises(RankbitsError, match="after 1 seconds"),
        ):
            client.stats()
        assert time.monotonic() - start < 5


def test_an_error_without_an_end_is_read_in_part():
    refusal = pytest.raises(ServiceError, match="500 broken")
    endless = itertools.repeat(b"broken " * 1000)
    with Strange(head("500 Broken"), endless) as server, Client(server.url) as client:
        with refusal as caught:
            client.stats()
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "status", ["301 Moved", "307 Temporary Redirect", "308 Permanent Redirect"]
)
def test_a_token_goes_nowhere_else(status):
    with Strange(head(), [b"{}"]) as other:
        with Strange(head(status, Location=other.url + "/items")) as server:
            with (
                Client(server.url, token="secret-secret-secret") as client,
                pytest.raises(ServiceError) as caught,
            ):
                client.upsert([1], codes=np.zeros((1, 4), np.uint8))
            assert caught.value.status == int(status[:3])
            assert b"secret-secret-secret" in server.requests[0]
        assert other.requests == []


@pytest.mark.parametrize("token", ["", "with space", "line\r\nX: y", "ümlaut", 7])
def test_a_token_that_no_header_can_carry_is_refused_unseen(token):
    with pytest.raises(InputError, match="token must be") as caught:
        Client(token=token)
    assert not token or str(token) not in str(caught.value)


@pytest.mark.parametrize("url", ["http://[", "http://a:b:c", "", "ftp://127.0.0.1", "/x", 7])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(RankbitsError, match=r"url must be an address|cannot be reached"):
        Client(url).stats()


def test_no_compression_is_asked_for():
    with Strange(head(), [b"{}"]) as server, Client(server.url) as client:
        assert client.stats() == {}
        assert b"Accept-Encoding: identity" in server.requests[0]
