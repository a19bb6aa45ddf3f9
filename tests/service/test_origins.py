"""Pages of other sites, in a real browser, read nothing and change nothing, whatever --host is."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx
import pytest

from service.browser import chromium
from service.conftest import TOKEN, Process
from service.problems import assert_problem

EVIL = "evil.example"
READS = """async (url) => {
    const seen = {};
    const attempt = async (name, action) => {
        try { seen[name] = await action(); } catch (error) { seen[name] = null; }
    };
    const loads = (name, place) => attempt(name, () => new Promise((resolve) => {
        const node = document.createElement(name);
        node.onload = () => resolve(name === "iframe" ? textOf(node) : "loaded");
        node.onerror = () => resolve(null);
        node.src = url + place;
        document.body.append(node);
        setTimeout(() => resolve(null), 3000);
    }));
    const textOf = (frame) => {
        try { return frame.contentDocument.body.innerText; } catch { return null; }
    };
    const read = async (place, options) => (await fetch(url + place, options)).text();
    const headers = { "Content-Type": "application/json" };
    await attempt("fetch", () => read("/stats"));
    await attempt("credentials", () => read("/stats", { credentials: "include" }));
    await attempt("no-cors", () => read("/stats", { mode: "no-cors" }));
    await attempt("post", () => read("/search", { method: "POST", body: '{"ids": [3]}', headers }));
    await attempt("socket", () => new Promise((resolve) => {
        const socket = new WebSocket(url.replace("http", "ws") + "/stats");
        socket.onopen = () => resolve("open");
        socket.onmessage = (event) => resolve(event.data);
        socket.onerror = () => resolve(null);
    }));
    await loads("img", "/items/3/image");
    await loads("img", "/page/icon.svg");
    await loads("script", "/page/api.js");
    await loads("iframe", "/stats");
    return seen;
}"""
WRITES = """async ([url, token]) => {
    const attempt = async (action) => { try { await action(); } catch { /* refused */ } };
    const send = (method, path, body, headers, mode) =>
        attempt(() => fetch(url + path, { method, body, headers, mode }));
    const json = { "Content-Type": "application/json" };
    const bearer = { ...json, Authorization: `Bearer ${token}` };
    const body = '{"ids": [900001], "codes": ["00000000"]}';
    await send("POST", "/items", body, bearer, "cors");
    await send("POST", "/items", body, json, "cors");
    await send("POST", "/items", body, { "Content-Type": "text/plain" }, "no-cors");
    await send("PUT", "/items/900002", '{"code": "00000000"}', bearer, "cors");
    await send("DELETE", "/items/3", undefined, bearer, "cors");
    navigator.sendBeacon(url + "/items", body);
}"""
FORM = """(url) => {
    const form = document.createElement("form");
    form.method = "POST"; form.enctype = "text/plain"; form.action = url + "/items";
    const field = document.createElement("input");
    field.name = '{"ids": [900003], "codes": ["00000000"], "x": "'; field.value = '"}';
    form.append(field); document.body.append(form); form.submit();
}"""


@pytest.fixture(scope="module", params=["127.0.0.1", "0.0.0.0"])
def server(request, folder, tmp_path_factory):
    """A server that accepts changes, by the command."""
    place = folder.copy(tmp_path_factory.mktemp("origins") / "collection")
    files = [f"--{name}={path}" for name, path in folder.settings.items()]
    variables = {"RANKBITS_TOKEN": TOKEN}
    options = ["--host", request.param, "--allow-host", "chosen.example", "--writable"]
    with Process(place, *files, *options, environment=variables) as process:
        yield f"http://127.0.0.1:{urlsplit(process.url).port}"


@pytest.fixture(scope="module")
def evil_port():
    """The port of somebody else's site."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title><body></body>")

        def log_message(self, *arguments):
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    yield site.server_port
    site.shutdown()
    thread.join()
    site.server_close()


@pytest.fixture(scope="module")
def browser():
    with chromium(f"--host-resolver-rules=MAP {EVIL} 127.0.0.1") as launched:
        yield launched


@pytest.fixture
def page(browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


def statuses(server):
    """How often each status was answered by routes that change items."""
    text = httpx.get(server + "/metrics").text
    counts = re.findall(r"rankbits_requests_total\{(.*?)\} (\d+)", text)
    assert counts
    return {labels: int(n) for labels, n in counts if "/items" in labels}


@pytest.mark.parametrize("site", [EVIL, "127.0.0.1", "localhost"])
def test_a_page_of_another_origin_reads_nothing(server, evil_port, page, site):
    page.goto(f"http://{site}:{evil_port}/")
    seen = page.evaluate(READS, server)
    assert set(seen) == {
        "fetch",
        "credentials",
        "no-cors",
        "post",
        "socket",
        "img",
        "script",
        "iframe",
    }
    assert seen.pop("no-cors") in ("", None)  # an answer that a page can see nothing of
    assert {name for name, value in seen.items() if value} == set()


@pytest.mark.parametrize("site", [EVIL, "127.0.0.1", "localhost"])
def test_a_page_of_another_origin_changes_nothing(server, evil_port, page, site):
    before = httpx.get(server + "/stats").json()["items"]
    page.goto(f"http://{site}:{evil_port}/")
    page.evaluate(WRITES, [server, TOKEN])
    page.evaluate(FORM, server)
    page.wait_for_url(server + "/items")
    assert "not answered" in page.content()
    assert httpx.get(server + "/stats").json()["items"] == before
    assert httpx.get(server + "/items/3").status_code == 200
    assert not any('status="20' in labels and "GET" not in labels for labels in statuses(server))


def test_a_name_that_is_pointed_at_this_machine_reads_nothing(server, page):
    answer = page.goto(f"http://{EVIL}:{urlsplit(server).port}/")
    assert answer.status == 421
    seen = page.evaluate(
        "async () => { const r = await fetch('/stats'); return [r.status, await r.text()]; }"
    )
    assert seen[0] == 421
    assert '"items"' not in seen[1]


def test_the_page_of_the_server_works_as_before(server, page):
    page.goto(server + "/?by=item&item=3")
    page.wait_for_selector("a[data-item]")
    assert page.locator("a[data-item]").count() == 10


def test_a_link_from_elsewhere_leads_to_the_page(server, evil_port, page):
    page.goto(f"http://{EVIL}:{evil_port}/")
    page.evaluate("(url) => { location.href = url; }", server + "/?by=item&item=3")
    page.wait_for_selector("a[data-item]")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("192.0.2.17", 200),
        ("[2001:db8::1]:8000", 200),
        ("chosen.example", 200),
        ("CHOSEN.example:9", 200),
        (EVIL, 421),
        ("127.0.0.1.evil.example", 421),
        ("[evil.example]", 421),
        ("2001:db8::1", 421),
    ],
)
def test_addresses_and_chosen_names_are_answered_whatever_the_server_listens_on(
    server, host, status
):
    answer = httpx.get(server + "/stats", headers={"Host": host})
    assert answer.status_code == status
    if status != 200:
        assert_problem(answer, 421, "must be an address or")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_browsers_say_of_a_request_decides(server, site):
    foreign = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}
    assert_problem(httpx.get(server + "/items/3", headers=foreign), 403, "other sites")
    body = json.dumps({"ids": [3]})
    kind = {"Content-Type": "application/json"}
    answer = httpx.post(server + "/search", content=body, headers={**foreign, **kind})
    assert_problem(answer, 403, "other sites")
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", **kind}
    assert httpx.post(server + "/search", content=body, headers=own).status_code == 200
