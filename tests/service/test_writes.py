"""Changes: off unless switched on, by token only, on the disk when they are acknowledged."""

import random
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.client import Client, ServiceError
from rankbits.errors import InputError
from rankbits.index import Collection
from rankbits.service import _tokens, create_app, load_token
from service.conftest import TOKEN, Process, running
from service.problems import assert_problem, post

BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def place(folder, tmp_path):
    return folder.copy(tmp_path / "collection")


@pytest.fixture
def url(folder, place):
    with running(create_app(place, token=TOKEN, **folder.settings)) as address:
        yield address


def test_a_server_without_a_token_accepts_no_change_whatever_the_header_says(folder, tmp_path):
    place = folder.copy(tmp_path / "c")
    with running(create_app(place, **folder.settings)) as address:
        for headers in ({}, BEARER):
            for method, path in (("PUT", "/items/3"), ("DELETE", "/items/3"), ("POST", "/items")):
                answer = httpx.request(method, address + path, headers=headers)
                assert_problem(answer, 403, "--writable")
        assert httpx.get(address + "/stats").json()["writable"] is False
        with Collection.open(place, writable=True) as other:  # others may write meanwhile
            other.remove([3])
        assert_problem(httpx.get(address + "/items/3"), 404)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Bearer {TOKEN} {TOKEN}",
        "Bearer \xff\xfe",
    ],
)
def test_a_wrong_token_is_401(url, header):
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    answer = httpx.put(url + "/items/1", json={"code": "00" * 4}, headers=headers)
    assert_problem(answer, 401)
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_two_tokens_are_none(url):
    headers = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer other")]
    assert_problem(httpx.delete(url + "/items/1", headers=headers), 401)


def test_tokens_are_compared_in_constant_time(url, monkeypatch):
    compared = []
    compare = _tokens.hmac.compare_digest
    monkeypatch.setattr(
        _tokens.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or compare(a, b)
    )
    httpx.delete(url + "/items/1", headers={"Authorization": "Bearer short"})
    assert [len(digest) for digest in compared[0]] == [32, 32]


def test_an_item_is_added_replaced_and_removed(url, folder):
    x = folder.data.query_x
    first, second = (row.tobytes().hex() for row in folder.hasher.transform(x[:2]))
    put = httpx.put(url + "/items/7000", json={"vector": x[0].tolist()}, headers=BEARER)
    assert (put.status_code, put.json()) == (201, {"created": 1, "replaced": 0})
    assert httpx.get(url + "/items/7000").json()["code"] == first
    put = httpx.put(url + "/items/7000", json={"code": second}, headers=BEARER)
    assert (put.status_code, put.json()) == (200, {"created": 0, "replaced": 1})
    assert httpx.get(url + "/items/7000").json()["code"] == second
    found = post(url, "/search", {"codes": [second], "radius": 0}).json()["ids"][0]
    assert 7000 in found
    answer = httpx.delete(url + "/items/7000", headers=BEARER)
    assert (answer.status_code, answer.content) == (204, b"")
    assert_problem(httpx.delete(url + "/items/7000", headers=BEARER), 404, "7000")
    assert_problem(httpx.get(url + "/items/7000"), 404, "7000")


def test_many_items_are_one_change(url, folder):
    x = folder.data.query_x[:5]
    with Client(url, token=TOKEN) as client:
        before = client.stats()["change"]
        ids = [3, 9000, 4, 9001, 9002]
        assert client.upsert(ids, vectors=x) == {"created": 3, "replaced": 2}
        assert client.stats()["change"] == before + 1
        assert client.upsert([3], codes=folder.codes[:1]) == {"created": 0, "replaced": 1}
        client.remove(9000)
        with pytest.raises(ServiceError, match="404"):
            client.remove(9000)
        for ids, words in (([1, 1], "differ"), ([1], "as many")):
            with pytest.raises(ServiceError, match=words):
                client.upsert(ids, codes=folder.codes[:2])
        assert client.stats()["change"] == before + 3


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"code": "00" * 4, "vector": [0.0] * 64},
        {"code": "00"},
        {"code": "zz" * 4},
        {"vector": [1]},
        {"vector": [None] * 64},
        {"vector": ["1"] * 64},
        {"code": 5},
        [],
        "x",
        {"code": "00" * 4, "k": 1},
    ],
)
def test_a_body_that_is_no_item_is_422_and_changes_nothing(url, body):
    before = httpx.get(url + "/stats").json()["change"]
    assert_problem(httpx.put(url + "/items/1", json=body, headers=BEARER), 422)
    assert httpx.get(url + "/stats").json()["change"] == before


def test_a_second_writer_is_refused_while_the_server_writes(url, place):
    with pytest.raises(InputError, match="one writer"):
        Collection.open(place, writable=True)


def test_factors_come_from_the_model(folder, tmp_path):
    from rankbits.methods import RaBitQ

    x = folder.data.database_x
    hasher = RaBitQ(n_bits=16, random_state=0).fit(x)
    Collection.create(tmp_path / "c", 16, factors=True).close()
    with running(create_app(tmp_path / "c", hasher, token=TOKEN)) as address:
        put = httpx.put(address + "/items/5", json={"vector": x[5].tolist()}, headers=BEARER)
        assert put.status_code == 201, put.text
        code = {"code": hasher.transform(x[:1]).tobytes().hex()}
        answer = httpx.put(address + "/items/6", json=code, headers=BEARER)
        assert_problem(answer, 422, "factors")
    with Collection.open(tmp_path / "c") as collection:
        assert np.array_equal(collection.factors([5]), hasher.factors(x[5:6]))


@pytest.mark.parametrize("text", ["short", "", "with a space in it", "ümlaut-ümlaut-ümlaut"])
def test_a_weak_token_is_refused_before_anything_is_opened(tmp_path, monkeypatch, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(InputError, match="at least 16 ASCII"):
        load_token(tmp_path / "token")
    monkeypatch.setenv("RANKBITS_TOKEN", text)
    with pytest.raises(InputError, match="RANKBITS_TOKEN must hold"):
        load_token(None)
    monkeypatch.setenv("RANKBITS_TOKEN", TOKEN)
    assert load_token(None) == TOKEN


def serve(place):
    return Process(place, "--writable", environment={"RANKBITS_TOKEN": TOKEN})


@pytest.mark.slow
def test_acknowledged_changes_survive_a_kill_of_the_server(tmp_path):
    """Each round starts the server, changes items until it is killed, and looks at what is left."""
    rng, dice = np.random.default_rng(3), random.Random(3)
    Collection.create(tmp_path / "c", 16).close()
    acknowledged, n_changes = {}, 0
    for _ in range(4):
        server = serve(tmp_path / "c")
        killer = threading.Timer(
            dice.uniform(0.2, 0.8), server.process.send_signal, [signal.SIGKILL]
        )
        killer.start()
        unsure = None
        with httpx.Client(base_url=server.url, headers=BEARER, timeout=10) as http:
            try:
                while True:
                    item, code = int(rng.integers(0, 50)), rng.integers(0, 256, 2, np.uint8)
                    is_removal = item in acknowledged and dice.random() < 0.3
                    unsure = item, None if is_removal else code.tobytes()
                    if is_removal:
                        assert http.delete(f"/items/{item}").status_code == 204
                        del acknowledged[item]
                    else:
                        body = {"code": code.tobytes().hex()}
                        assert http.put(f"/items/{item}", json=body).is_success
                        acknowledged[item] = code.tobytes()
                    n_changes += 1
            except httpx.TransportError:
                pass  # the server was killed: what it had not acknowledged may be lost
        killer.join()
        assert server.end()[0] == -signal.SIGKILL
        with Collection.open(tmp_path / "c") as collection:
            collection.check()
            left = {int(i): collection.codes([i]).packed.tobytes() for i in collection.ids}
        last = dict(acknowledged)
        if unsure[1] is None:
            last.pop(unsure[0], None)
        else:
            last[unsure[0]] = unsure[1]
        assert left in (acknowledged, last)
        acknowledged = left
    assert n_changes > 20


def test_requests_that_are_being_answered_are_finished_at_the_end(tmp_path):
    """SIGTERM comes while a body is half there; the rest is still read and written."""
    Collection.create(tmp_path / "c", 16).close()
    server = serve(tmp_path / "c")
    parts = urlsplit(server.url)
    body = b'{"code": "00ff"}'
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        head = (
            f"PUT /items/5 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body[:5])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url + "/healthz")
        connection.sendall(body[5:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 201 ")
    code, errors = server.end("wait")
    assert code == 0, errors
    with Collection.open(tmp_path / "c") as collection:
        assert collection.codes([5]) == BinaryCodes(np.array([[0, 255]], np.uint8), 16)


@pytest.mark.parametrize(
    "token", ["", " " * 20, "x", "fifteen-letters", "of two words 0123456", 7, "ä" * 20]
)
def test_an_application_takes_no_token_that_the_command_refuses(tmp_path, token):
    with pytest.raises(InputError, match=r"token must hold a token of at least 16"):
        create_app(tmp_path / "nothing", token=token)
    assert list(tmp_path.iterdir()) == []


STUCK = """
import sys, time
from rankbits.service import create_app, serve

app = create_app(sys.argv[1], token="a-token-of-a-test-2f9c")
store = app.state.parts.store
upsert = store.upsert
store.upsert = lambda *change: (upsert(*change), print("stuck", flush=True), time.sleep(100))
serve(app, port=0, on_ready=lambda url: print(url, flush=True), grace_seconds=3)
"""


def test_a_thread_that_never_ends_does_not_hold_the_process(tmp_path):
    Collection.create(tmp_path / "c", 16).close()
    command = [sys.executable, "-c", STUCK, str(tmp_path / "c")]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **streams) as process:
        url = process.stdout.readline().strip()
        with pytest.raises(httpx.TimeoutException):
            httpx.put(url + "/items/5", json={"code": "00ff"}, headers=BEARER, timeout=1)
        assert process.stdout.readline() == "stuck\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "is given up" in errors
    assert "Traceback" not in errors
    with Collection.open(tmp_path / "c") as collection:
        collection.check()
        assert len(collection) == 1
