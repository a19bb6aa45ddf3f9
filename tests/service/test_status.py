"""What a server says about itself: metrics that Prometheus reads, and a description of the API."""

import re
import socket

import httpx
import pytest

from rankbits.service import create_app
from service.conftest import running
from service.problems import post


@pytest.fixture(scope="module")
def url(folder):
    with running(create_app(folder.path / "collection", **folder.settings)) as address:
        yield address


def samples(url):
    parser = pytest.importorskip("prometheus_client.parser")
    text = httpx.get(url + "/metrics").text
    families = list(parser.text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    assert all(family.documentation for family in families)
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_count_what_happened(url):
    before = samples(url)
    for _ in range(3):
        post(url, "/search", {"ids": [1, 2], "k": 1})
    httpx.get(url + "/items/3")
    httpx.get(url + "/items/4")
    httpx.get(url + "/none/at/all")
    after = samples(url)

    def more(name, **labels):
        key = (name, *sorted(labels.items()))
        return after.get(key, 0) - before.get(key, 0)

    requests = "rankbits_requests_total"
    assert more(requests, route="/search", method="POST", status="200") == 3
    assert more(requests, route="/items/{id}", method="GET", status="200") == 2
    assert more(requests, route="none", method="GET", status="404") == 1
    assert more("rankbits_queries_total", kind="bits") == 6
    assert more("rankbits_request_seconds_count", route="/search") == 3
    assert more("rankbits_scan_queries_sum") == 6
    assert after[("rankbits_items",)] == 1500
    assert after[("process_resident_memory_bytes",)] > 1e7
    assert not any("/items/3" in str(key) for key in after)


def test_buckets_of_a_histogram_add_up(url):
    post(url, "/search", {"ids": [1]})
    values = samples(url)
    buckets = [v for k, v in values.items() if k[0] == "rankbits_scan_queries_bucket"]
    assert buckets == sorted(buckets)
    assert buckets[-1] == values[("rankbits_scan_queries_count",)]


def test_small_packets_are_sent_at_once():
    """Else the second part of an answer waits until the first is acknowledged, 40 ms later."""
    from rankbits.service._server import listening

    with listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_stats_say_what_is_served(url, folder):
    stats = httpx.get(url + "/stats").json()
    assert (stats["items"], stats["bits"], stats["method"]) == (1500, 32, "itq")
    assert stats["model"] == folder.codes.model
    assert stats["accepts"] == ["codes", "ids", "vectors"]
    assert stats["limits"]["batch"] == 1024
    assert sum(label["items"] for label in stats["labels"]) == 1500
    assert not any(str(folder.path) in str(value) for value in stats.values())


def test_the_description_has_every_route_and_the_numbers_of_this_collection(url):
    description = httpx.get(url + "/openapi.json").json()
    assert set(description["paths"]) == {
        "/search",
        "/encode",
        "/items",
        "/items/{id}",
        "/items/{id}/image",
        "/stats",
        "/metrics",
        "/healthz",
        "/readyz",
    }
    assert set(description["paths"]["/items/{id}"]) == {"get", "put", "delete"}
    search = description["components"]["schemas"]["SearchRequest"]["properties"]
    rows = search["vectors"]["anyOf"][0]["items"]
    assert (rows["minItems"], rows["maxItems"]) == (64, 64)
    assert search["codes"]["anyOf"][0]["items"]["pattern"] == "^[0-9a-fA-F]{8}$"
    assert "texts" not in search


def test_no_file_of_the_pages_names_another_host(url):
    for path in ("/", "/docs"):
        text = httpx.get(url + path).text
        files = re.findall(r'(?:src|href)="([^"#]*)"', text)
        assert files
        for file in files:
            assert file.startswith("/")
            content = httpx.get(url + file)
            assert content.status_code == 200, file
            foreign = re.findall(r"https?://[\w.]+", content.text)
            assert set(foreign) <= {"http://www.w3.org"}, file
