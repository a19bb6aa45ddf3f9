"""The client: errors with their problem, patience with a busy server, texts as queries."""

import numpy as np
import pytest

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
