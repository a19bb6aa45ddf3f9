"""Paths, headers and bodies of people who look for a way in."""

import json
import logging
import os
import socket
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from rankbits import _wire
from rankbits.index import Collection
from rankbits.service import create_app
from rankbits.service._origins import host_name
from service.conftest import running
from service.problems import PROBLEM, assert_problem, post

CODE = {"codes": ["00000000"]}


@pytest.fixture(scope="module")
def url(folder):
    with running(create_app(folder.path / "collection", **folder.settings)) as address:
        yield address


def raw(url, *lines, body=b""):
    """The status line and all of the answer to bytes as they are."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as connection:
        connection.sendall(
            "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body
        )
        content = b""
        while part := connection.recv(65536):
            content += part
    return content.split(b"\r\n", 1)[0].decode(), content


@pytest.mark.parametrize(
    "path",
    [
        "/page/../_app.py",
        "/page/..%2f_app.py",
        "/page/%2e%2e/%2e%2e/_app.py",
        "/page//etc/passwd",
        "/page/..\\_app.py",
        "/page/index.html%00.js",
        "/../../etc/passwd",
        "//etc/passwd",
        "/page/",
        "/items/../stats/../../etc",
        "/items/3/image/../../../../etc/passwd",
        "/items/",
        "/Search",
        "/page/_page.py",
        "/items/%33%2e%2e",
        "/items/3%00",
        "/docs/../../x",
        "/.git/config",
        "/page/%252e%252e%252f_app.py",
    ],
)
def test_no_path_leads_out_of_what_is_served(url, path):
    status, content = raw(url, f"GET {path} HTTP/1.1", "Host: localhost")
    assert status.split()[1] in ("404", "422", "405"), content
    assert PROBLEM.encode() in content
    assert b"root:" not in content
    assert b"import" not in content


@pytest.mark.parametrize(
    "item", ["-1", "1.5", "abc", "9223372036854775807", "9" * 400, "0x1", "", "1e3", "٣"]
)
def test_an_id_that_is_none_is_refused(url, item):
    for path in (f"/items/{item}", f"/items/{item}/image"):
        answer = httpx.get(url + path)
        assert_problem(answer, 404 if item in ("", "٣") and answer.status_code == 404 else 422)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", "200"),
        ("LOCALHOST:99", "200"),
        ("127.0.0.1:8000", "200"),
        ("[::1]:8000", "200"),
        ("evil.example", "421"),
        ("localhost.evil.example", "421"),
        ("localhost@evil.example", "421"),
        ("", "421"),
        ("127.0.0.1.nip.io", "421"),
        ("localhost:80:80", "421"),
    ],
)
def test_only_names_of_this_machine_are_answered(url, host, status):
    answer, content = raw(url, "GET /stats HTTP/1.1", f"Host: {host}")
    assert answer.split()[1] in (status, "400"), content
    assert (b'"items"' in content) == (status == "200")


def test_two_hosts_are_none(url):
    answer, content = raw(url, "GET /stats HTTP/1.1", "Host: localhost", "Host: evil.example")
    assert answer.split()[1] in ("400", "421")
    assert b'"items"' not in content


def test_forwarding_headers_change_nothing(url):
    headers = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-For": "1.2.3.4",
        "X-Original-URL": "/x",
        "X-HTTP-Method-Override": "DELETE",
    }
    answer = httpx.get(url + "/items/3", headers=headers)
    assert answer.json()["id"] == 3


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415),
        ("", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/json; charset=utf-8", 200),
        ("APPLICATION/JSON", 200),
        ("application/jsonx", 415),
    ],
)
def test_a_form_of_another_site_cannot_be_sent(url, kind, status):
    headers = {"Content-Type": kind} if kind else {}
    answer = httpx.post(url + "/search", content=b'{"ids": [1]}', headers=headers)
    assert answer.status_code == status
    if status != 200:
        assert_problem(answer, status)


def test_compressed_bodies_are_not_unpacked(url):
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert_problem(httpx.post(url + "/search", content=b"\x1f\x8b", headers=headers), 415)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("*/*", 200),
        ("application/octet-stream", 200),
        ("text/html", 406),
        ("text/html, */*;q=0.1", 200),
        ("application/xml", 406),
        (",", 200),
    ],
)
def test_an_answer_comes_in_a_form_that_is_accepted(url, accept, status):
    answer = post(url, "/search", {"ids": [1]}, Accept=accept)
    assert answer.status_code == status
    if accept == "application/octet-stream":
        assert _wire.load(answer.content)[0]["ids"].shape == (1, 10)


BAD_JSON = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"\xff\xfe",
    b'{"ids": [1], "ids": "x"}',
    b"[" * 100000,
    b'{"a":' * 50000,
    b'{"ids": [1e999]}',
    b'{"vectors": [[NaN]]}',
    b'{"vectors": [[Infinity]]}',
    b'{"ids": [1], "k": 1e400}',
    b'{"ids": [1], "k": true}',
    b'{"ids": [1], "k": "5"}',
    b'{"ids": [true]}',
    b'{"codes": ["\\ud800"]}',
    b'{"ids": [99999999999999999999999]}',
    b'{"ids": [-1]}',
    b'{"ids": []}',
    b"{}",
    b'{"ids": null}',
    b'{"ids": [1], "codes": ["00000000"]}',
    b'{"codes": ["0"]}',
    b'{"codes": ["000000"]}',
    b'{"codes": ["0000000g"]}',
    b'{"vectors": [[1, 2]]}',
    b'{"vectors": [[]]}',
    b'{"vectors": [[1],[1,2]]}',
    b'{"vectors": []}',
    b'{"ids": [1], "radius": -1}',
    b'{"ids": [1], "ties": "random"}',
    b'{"ids": [1], "labels": ["nope"]}',
    b'{"ids": [1], "allowed": [-4]}',
    b'{"ids": [1], "weights": [1.0]}',
    b'{"ids": [1], "rerank": "weighted_bits"}',
    b'{"ids": [1], "rerank": "weighted_bits", "weights": [1.0]}',
    b'{"ids": [1], "pool": 5}',
    b'{"codes": ["00000000"], "by": "weights"}',
    b'{"codes": ["00000000"], "rerank": "weights"}',
    b'{"texts": ["x"]}',
    b'{"pictures": ["x"]}',
    b'{"ids": [1], "radius": 1, "by": "weights"}',
    b'{"ids": [1], "include": ["secrets"]}',
    b'{"ids": [1], "__proto__": {}}',
    b'{"ids": [1]}garbage',
    b'{"ids": [1], "rerank": "weighted_bits", "weights": [' + b"-1.0," * 31 + b"-1.0]}",
    b'{"ids": [1], "rerank": "vectors", "k": 9, "pool": 5}',
    b'{"ids": [1], "radius": 3, "ties": "complete"}',
]


@pytest.mark.parametrize("body", BAD_JSON, ids=lambda body: body[:40].decode("latin-1"))
def test_a_body_that_means_nothing_is_a_client_error(url, body):
    answer = httpx.post(url + "/search", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert_problem(answer, answer.status_code)


def test_what_a_caller_sends_is_not_sent_back_at_length(url):
    answer = post(url, "/search", {"ids": [1], "labels": ["<script>" * 5000]})
    assert len(answer.content) < 1000


ARRAYS = {
    "no array": _wire.dump({}),
    "unknown array": _wire.dump({"ids": np.array([1]), "other": np.array([1])}),
    "floats as ids": _wire.dump({"ids": np.array([1.0])}),
    "negative ids": _wire.dump({"ids": np.array([-1])}),
    "two dimensions": _wire.dump({"ids": np.array([[1]])}),
    "codes too wide": _wire.dump({"codes": np.zeros((1, 5), np.uint8)}),
    "empty codes": _wire.dump({"codes": np.zeros((0, 4), np.uint8)}),
    "nan": _wire.dump({"vectors": np.full((1, 64), np.nan)}),
    "k is no number": _wire.dump({"ids": np.array([1])}, {"k": "ten"}),
    "an array as text": _wire.dump({}, {"ids": "[1]", "vectors": "3"}),
    "unknown text": _wire.dump({"ids": np.array([1])}, {"zeal": "1"}),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_mean_nothing_are_a_client_error(url, name):
    headers = {"Content-Type": _wire.MEDIA_TYPE}
    answer = httpx.post(url + "/search", content=ARRAYS[name], headers=headers)
    assert answer.status_code in (400, 422)
    assert_problem(answer, answer.status_code)


def test_unknown_methods_and_large_headers_are_client_errors(url):
    for method in ("PATCH", "TRACE", "OPTIONS"):
        assert_problem(httpx.request(method, url + "/search"), 405)
        answer = httpx.request(method, url + "/items/3")
        assert answer.headers["allow"] == "GET, PUT, DELETE"
    status, _ = raw(url, "GET /stats HTTP/1.1", "Host: localhost", "X: " + "a" * 200_000)
    assert status.split()[1] in ("200", "400", "431")
    assert httpx.get(url + "/healthz").status_code == 200


def test_every_answer_has_headers_that_keep_a_browser_safe(url):
    for path in ("/", "/docs", "/page/main.js", "/stats", "/nothing", "/items/3/image"):
        headers = httpx.get(url + path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_an_error_nobody_thought_of_is_a_problem_without_details(folder, monkeypatch):
    app = create_app(folder.path / "collection")
    monkeypatch.setattr(app.state.parts.batcher, "_search", lambda *_: 1 / 0)
    with running(app) as address:
        answer = post(address, "/search", {"ids": [1]})
        problem = assert_problem(answer, 500)
        assert "Zero" not in json.dumps(problem)
        assert httpx.get(address + "/healthz").status_code == 200


def segments(place):
    return list((place / "segments").iterdir())


def everything(place):
    return [file for file in place.rglob("*") if file.is_file()]


def overwrite(file):
    file.write_bytes(b"damage")


def cut(file):
    os.truncate(file, file.stat().st_size - 404)


@pytest.mark.parametrize(("files", "damage"), [(everything, overwrite), (segments, cut)])
def test_a_damaged_collection_is_503_and_not_ready(folder, tmp_path, files, damage, caplog):
    place = folder.copy(tmp_path / "c")
    with Collection.open(place, writable=True) as writer:
        writer.seal()
    with running(create_app(place)) as address:
        assert httpx.get(address + "/readyz").status_code == 200
        assert files(place)
        for file in files(place):
            damage(file)
        for limit in logging.getLogger("rankbits.service").filters:
            limit._kinds.clear()  # of earlier tests
        answers = [httpx.get(address + "/readyz") for _ in range(3)]
        answers += [post(address, "/search", {"ids": [1]}), post(address, "/search", CODE)]
        for answer in answers:
            problem = assert_problem(answer, 503, "the server's log says more")
            assert str(tmp_path) not in json.dumps(problem)
        assert httpx.get(address + "/healthz").status_code == 200
    lines = [record.getMessage() for record in caplog.records]
    assert any(str(place) in line for line in lines)
    assert len(lines) <= 2  # one of each kind of problem, not one of each request


@pytest.mark.parametrize("host", ["localhost", "a.b:1", "x:", "[::1]", "[::1]:9"])
def test_a_host_without_its_port(host):
    assert host_name(host) in ("localhost", "a.b", "x", "[::1]")
