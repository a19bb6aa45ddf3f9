"""The worst requests that anybody can send, to a server that answers ordinary ones beside them.

    python tests/service/attacks.py --seconds 60
    python tests/service/attacks.py --items 1000000 --wrk

A server of made codes gets one kind of bad request after the other, without a token. Meanwhile a
client searches for single queries, one after the other, and another looks at its health. It must
never answer 500, always be alive, ready and measured within a second, stay below a bound of memory,
and end within 30 s of SIGTERM. How much longer searches take is printed, and judged by nobody.
"""

import argparse
import base64
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "durability")]

from violations import Report  # noqa: E402

from rankbits import _wire, methods  # noqa: E402
from rankbits.index import Collection  # noqa: E402
from service.conftest import Process  # noqa: E402

N_BITS, MB = 64, 1 << 20
MOST_MIB = 900  # resident memory: what a start takes, and what the server lets large requests have
MEMORY = 256 * MB  # --limit memory=N
ENOUGH = 30.0  # seconds from SIGTERM to the end
JSON = {"Content-Type": "application/json"}
BINARY = {"Content-Type": _wire.MEDIA_TYPE, "Accept": _wire.MEDIA_TYPE}


def build(folder, n_items, seed, has_pictures):
    """A collection, its model, its vectors, and a table of texts, with pictures if it shall."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_items, 16)).astype(np.float32)
    hasher = methods.get("lsh", n_bits=N_BITS, random_state=0).fit(x[:1000])
    hasher.save(folder / "model")
    with Collection.create(folder / "collection", N_BITS) as collection:
        collection.add(hasher.encode(x))
    np.save(folder / "vectors.npy", x)
    image = {}
    if has_pictures:
        data = base64.b64encode(png(13_000, 13_000)).decode()
        image = {"image": f"data:image/png;base64,{data}"}
    with (folder / "items.jsonl").open("w") as file:
        for item in range(min(n_items, 2000)):
            row = {"id": item, "label": str(item % 7), "text": "x" * 2000}
            file.write(json.dumps(row | (image if item < 20 else {})) + "\n")
    return ["--model", folder / "model", "--vectors", folder / "vectors.npy"]


def png(width, height):
    """A picture of one color: few bytes, many pixels."""

    def chunk(kind, data):
        crc = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + crc

    packer, data = zlib.compressobj(1), io.BytesIO()
    for _ in range(height):
        data.write(packer.compress(bytes(1 + 3 * width)))
    data.write(packer.flush())
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", data.getvalue()) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def search(**fields):
    return "POST", "/search", json.dumps(fields).encode(), JSON


def raw(body):
    return "POST", "/search", body, JSON


def requests(n_items, seed):
    """The bad requests by name: method, path, body and headers."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, n_items, 1024).tolist()
    weights = [1.0] * N_BITS
    rows = rng.standard_normal((1024, 16)).round(6).tolist()
    facts = {"k": "195", "include": '["codes"]'}
    many = {"ids": np.array(ids), "allowed": rng.permutation(n_items)}
    return {
        "empty strings, 16 MB": raw(b'{"ids":[' + b'"",' * (5 * MB) + b'""]}'),
        "empty strings, 1 MB": raw(b'{"ids":[' + b'"",' * (MB // 3) + b'""]}'),
        "zeros, 16 MB": raw(b'{"allowed":[' + b"0," * (8 * MB - 20) + b"0]}"),
        "numbers, 16 MB": raw(b'{"vectors":[[' + b"0," * (8 * MB - 20) + b"0]]}"),
        "rows, 16 MB": raw(b'{"vectors":[' + b"[0]," * (4 * MB - 20) + b"[0]]}"),
        "a huge number": raw(b'{"k":' + b"9" * (15 * MB) + b"}"),
        "a huge text": raw(b'{"texts":["' + b"a" * (15 * MB) + b'"]}'),
        "escapes": raw(b'{"texts":["' + b"\\u00e9" * (2 * MB) + b'"]}'),
        "brackets": raw(b'{"ids":' + b"[" * (15 * MB)),
        "objects": raw(b'{"a":' * (3 * MB)),
        "unknown names": raw(b"{" + b",".join(b'"a%d":1' % i for i in range(MB)) + b"}"),
        "one name again and again": raw(b"{" + b'"k":1,' * (2 * MB) + b'"k":1}'),
        "a header of lists": (
            "POST",
            "/search",
            MB.to_bytes(8, "little") + (b"[" + b"[]," * (MB // 3)).ljust(MB),
            BINARY,
        ),
        "allowed": search(ids=ids[:100], allowed=rng.permutation(n_items).tolist(), k=100),
        "allowed, arrays": ("POST", "/search", _wire.dump(many, facts), BINARY),
        "weighted_bits": search(ids=ids, rerank="weighted_bits", weights=weights, pool=100_000),
        "weighted_bits within limits": search(
            ids=ids, rerank="weighted_bits", weights=weights, pool=1900, k=195
        ),
        "asymmetric": search(ids=ids, rerank="weights", k=195),
        "rescored by vectors": search(ids=ids[:20], rerank="vectors", pool=100_000, k=1000),
        "radius of all": search(ids=ids, radius=N_BITS),
        "radius of some": search(ids=ids, radius=14),
        "histograms": search(ids=ids, include=["histogram", "codes"], k=1),
        "ties": search(ids=ids, k=100, ties="complete"),
        "includes": search(ids=ids, k=195, include=["codes", "fields"]),
        "labels": search(ids=ids, k=195, labels=[str(i) for i in range(7)], include=["fields"]),
        "the largest scan": search(ids=ids, k=195),
        "real queries": search(vectors=rows, by="weights", k=195),
        "encode": (
            "POST",
            "/encode",
            json.dumps({"vectors": rows, "as": "weights"}).encode(),
            JSON,
        ),
        "pictures": search(pictures=[base64.b64encode(png(4000, 4000)).decode()] * 20),
        "huge thumbnail": ("GET", "/items/3/image?size=64", None, {}),
        "list": ("GET", "/items?limit=100&label=3", None, {}),
        "stats": ("GET", "/stats", None, {}),
        "a client that leaves": ("leave", "/search", b'{"ids": [', JSON),
        "a client that leaves its search": (
            "leave",
            "/search",
            search(ids=ids, radius=14)[2],
            JSON,
        ),
    }


class Attack:
    """A server under attack, and what was seen of it."""

    def __init__(self, server, report, options):
        self.server, self.report, self.options = server, report, options
        self.url, self.place = server.url, urlsplit(server.url)
        self.is_over = threading.Event()
        self.most_mib, self.slowest, self.what = 0.0, 0.0, "nothing"
        self.statuses, self.violations = {}, []

    def violation(self, sentence, detail=""):
        """Note a violation, in whatever thread it is seen."""
        command = f"python tests/service/attacks.py --seed {self.options.seed}"
        repeat = f"{command} --only {self.what!r} --items {self.options.items}"
        self.violations.append((sentence, f"during {self.what!r}; {detail}", repeat))

    def tell(self):
        """Report what was noted; the first ends the run unless it is to go on."""
        while self.violations:
            self.report.violation(*self.violations.pop(0))

    def send(self, request):
        """Send a bad request and look at its answer."""
        method, path, body, headers = request
        try:
            if method == "leave":
                return self.leave(path, body)
            with httpx.Client(base_url=self.url, timeout=60) as http:
                answer = http.request(method, path, content=body, headers=headers)
        except (httpx.TransportError, OSError) as error:
            if not self.is_over.is_set() and not isinstance(error, httpx.WriteError):
                self.violation("a request was not answered", repr(error))
            return None
        self.judge(answer)
        self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
        return None

    def judge(self, answer):
        status = answer.status_code
        if status >= 500 and not (status == 503 and "retry-after" in answer.headers):
            self.violation(f"status {status}", answer.text[:300])

    def leave(self, path, body):
        with socket.create_connection((self.place.hostname, self.place.port), timeout=10) as client:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            length = len(body) if body.endswith(b"}") else 10_000
            client.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode() + body)
            time.sleep(0.02)

    def watch(self):
        """Look at health and memory until the end."""
        with httpx.Client(base_url=self.url, timeout=20) as http:
            while not self.is_over.is_set():
                for path in ("/healthz", "/readyz", "/metrics"):
                    self.look(http, path)
                self.most_mib = max(self.most_mib, resident_mib(self.server.process.pid))
                if self.most_mib > self.options.most_mib:
                    self.violation("too much memory", f"{self.most_mib:.0f} MiB")
                    self.options.most_mib = float("inf")  # said once
                time.sleep(0.05)

    def look(self, http, path):
        started = time.perf_counter()
        try:
            answer = http.get(path)
        except httpx.TransportError as error:
            if not self.is_over.is_set():
                self.violation(f"{path} did not answer", repr(error))
            return
        seconds = time.perf_counter() - started
        self.slowest = max(self.slowest, seconds)
        if answer.status_code != 200:
            self.violation(f"{path} answered {answer.status_code}", answer.text[:300])
        if seconds > self.options.patience:
            self.violation(f"{path} took too long", f"{seconds:.2f} s")

    def searches(self, seconds):
        """Milliseconds of ordinary searches, one after the other."""
        if self.options.wrk:
            return self.searches_by_wrk(seconds)
        times, rng, end = [], np.random.default_rng(0), time.perf_counter() + seconds
        with httpx.Client(base_url=self.url, timeout=60) as http:
            while time.perf_counter() < end:
                code = rng.integers(0, 256, N_BITS // 8, np.uint8).tobytes().hex()
                started = time.perf_counter()
                answer = http.post("/search", json={"codes": [code], "k": 10})
                times.append(1000 * (time.perf_counter() - started))
                self.judge(answer)
                if answer.status_code != 200:
                    self.report.count(f"searches_with_status_{answer.status_code}")
        return tuple(np.percentile(times, [50, 99]))

    def searches_by_wrk(self, seconds):
        with tempfile.TemporaryDirectory() as place:
            script = Path(place, "search.lua")
            script.write_text(
                'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
                'wrk.body = \'{"codes": ["00ff00ff00ff00ff"], "k": 10}\'\n'
            )
            url = f"{self.url}/search"
            duration = f"-d{max(1, round(seconds))}s"
            command = ["wrk", "-t1", "-c1", duration, "--latency", "-s", str(script), url]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        units = {"us": 1e-3, "ms": 1.0, "s": 1e3}
        values = dict(re.findall(r"(50|99)%\s+([\d.]+[mu]?s)", text))
        numbers = [re.fullmatch(r"([\d.]+)(\w+)", values[name]) for name in ("50", "99")]
        return tuple(float(match[1]) * units[match[2]] for match in numbers)

    def under(self, name, request, seconds):
        """What ordinary searches take while one client sends a bad request again and again."""
        self.what, is_done = name, threading.Event()

        def attack():
            while not is_done.is_set():
                self.send(request)
                self.report.count("bad_requests")

        thread = threading.Thread(target=attack)
        thread.start()
        try:
            return self.searches(seconds)
        finally:
            is_done.set()
            thread.join()

    def end(self, worst):
        """SIGTERM while bad requests of all kinds are being answered."""
        self.what, is_done = "the end", threading.Event()

        def attack(number):
            while not is_done.is_set():
                self.send(worst[number % len(worst)])

        threads = [threading.Thread(target=attack, args=[number]) for number in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(min(1.0, self.options.seconds))
        self.is_over.set()
        started = time.perf_counter()
        self.server.process.send_signal(signal.SIGTERM)
        try:
            self.server.process.communicate(timeout=ENOUGH + 15)
        except subprocess.TimeoutExpired:
            self.server.process.kill()
        seconds = time.perf_counter() - started
        is_done.set()
        for thread in threads:
            thread.join()
        self.report.counts["seconds_to_the_end"] = round(seconds, 1)
        if seconds > ENOUGH:
            self.violation("SIGTERM did not end the server in time", f"{seconds:.0f} s")


def resident_mib(pid):
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def run(folder, report, options):
    """Every attack in turn, then all of them and SIGTERM."""
    has_pictures = not options.only or "huge thumbnail" in options.only
    files = build(folder, options.items, options.seed, has_pictures)
    files += ["--items", folder / "items.jsonl", "--limit", f"memory={MEMORY}"]
    attacks = requests(options.items, options.seed)
    chosen = {name: attacks[name] for name in options.only or attacks}
    log = (folder / "log").open("w+")
    with Process(folder / "collection", *files, stderr=log) as server:
        attack = Attack(server, report, options)
        watcher = threading.Thread(target=attack.watch)
        watcher.start()
        before, ratios = attack.searches(max(2.0, options.seconds)), {}
        for name, request in chosen.items():
            p50, p99 = attack.under(name, request, options.seconds)
            ratios[name] = p99 / before[1]
            if attack.violations and not options.keep_going:
                break
            sys.stderr.write(f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms\n")
        attack.end(list(chosen.values()))
        watcher.join()
    log.seek(0)
    if "Traceback" in (text := log.read()):
        attack.violation("the log has a traceback", text[-2000:])
    attack.tell()
    worst = max(ratios, key=ratios.get)
    report.counts |= {
        "attacks": len(chosen),
        "p50_ms": round(before[0], 2),
        "p99_ms": round(before[1], 2),
        "worst_ratio_of_p99": round(ratios[worst], 1),
        "attacks_above_5": int(sum(ratio > 5 for ratio in ratios.values())),
        "worst_attack": worst,
        "most_mib": round(attack.most_mib),
        "slowest_look_ms": round(1000 * attack.slowest),
        "statuses": dict(sorted(attack.statuses.items())),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true", help="count all violations")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each attack")
    parser.add_argument("--only", nargs="*", help="names of attacks")
    parser.add_argument("--most-mib", type=float, default=MOST_MIB)
    parser.add_argument("--patience", type=float, default=1.0, help="seconds of a look at health")
    parser.add_argument("--wrk", action="store_true", help="search by wrk")
    options = parser.parse_args()
    if options.wrk and shutil.which("wrk") is None:
        parser.error("--wrk needs wrk, which is not installed")
    report = Report("attacks", goes_on=options.keep_going)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        run(folder, report, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.finish()


if __name__ == "__main__":
    main()
