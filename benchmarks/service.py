"""A server beside search in the same process, and beside a FastAPI route that does nothing.

All connections are to this machine, as many as said and for as long as said. Contenders take turns,
and the best of several rounds counts for rates; latencies are of all requests of all rounds. Codes
are random, of 64 bits.

    python benchmarks/service.py [--job throughput latency restart memory] [--items 1000000]
                                 [--rounds 3] [--seconds 3] [--minutes 10] [--out FOLDER]
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from rankbits import BinaryCodes, _wire
from rankbits.index import Collection

N_BITS, K = 64, 10
CLIENTS = (1, 8, 64)
SERVE = "from rankbits.cli import main; main()"
HELLO = """
import asyncio, json
from fastapi import FastAPI
from rankbits.service._server import build_server, listening, url_of
app = FastAPI()
@app.post("/search")
async def hello(): return {"hello": "world"}
with listening("127.0.0.1", 0) as listener:
    print(json.dumps({"url": url_of(listener)}), flush=True)
    asyncio.run(build_server(app).serve(sockets=[listener]))
"""


class Server:
    """A process that prints where it listens."""

    def __init__(self, *command):
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-c", *map(str, command)], stdout=subprocess.PIPE, text=True
        )
        text = ""
        while not text.rstrip().endswith("}"):
            text += self.process.stdout.readline()
        self.place = urlsplit(json.loads(text)["url"])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait()

    def connect(self):
        return HTTPConnection(self.place.hostname, self.place.port, timeout=60)

    def get(self, path):
        connection = self.connect()
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def serve(folder, *options):
    return Server(SERVE, "serve", folder, "--port", "0", "--quiet", *options)


def build(folder, n):
    rng = np.random.default_rng(0)
    with Collection.create(folder, N_BITS) as collection:
        for start in range(0, n, 1 << 20):
            collection.add(rng.integers(0, 256, (min(1 << 20, n - start), 8), np.uint8))
        collection.compact()


def queries(n, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, 8), np.uint8)


def binary(codes):
    headers = {"Content-Type": _wire.MEDIA_TYPE, "Accept": _wire.MEDIA_TYPE}
    return _wire.dump({"codes": codes}, {"k": str(K)}), headers


def text(codes):
    body = {"codes": [code.tobytes().hex() for code in codes], "k": K}
    return json.dumps(body).encode(), {"Content-Type": "application/json"}


def drive(make_call, n_clients, seconds):
    """Seconds of each call of so many threads, each of which calls as long as there is time."""
    times, end, barrier = [], [0.0], threading.Barrier(n_clients + 1)

    def client(seed):
        call, mine = make_call(seed), []
        call()
        barrier.wait()
        barrier.wait()
        while time.perf_counter() < end[0]:
            start = time.perf_counter()
            call()
            mine.append(time.perf_counter() - start)
        times.append(mine)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(n_clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begin = time.perf_counter()
    end[0] = begin + seconds
    barrier.wait()
    for thread in threads:
        thread.join()
    return np.concatenate([np.array(mine) for mine in times]), time.perf_counter() - begin


def over_http(server, form, n_queries):
    def make(seed):
        connection, (body, headers) = server.connect(), form(queries(n_queries, seed))

        def call():
            connection.request("POST", "/search", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}")

        return call

    return make


def in_process(collection, n_queries):
    def make(seed):
        codes = BinaryCodes(queries(n_queries, seed), N_BITS)
        return lambda: collection.search(codes, K)

    return make


def throughput(options, folder):
    """Queries a second at batches of 64, by the clock and by the processor.

    Where other work shares the processors, only the second can be compared: it counts the time of
    the server, or of the search in this process, and neither that of clients nor waiting.
    """
    rates, cpu_rates = {}, {}
    with (
        Collection.open(folder, n_threads=1) as collection,
        serve(folder, "--threads", 1) as server,
    ):
        contenders = {
            "in process": (in_process(collection, 64), 1),
            "server, arrays, 1 client": (over_http(server, binary, 64), 1),
            "server, arrays, 4 clients": (over_http(server, binary, 64), 4),
            "server, JSON, 4 clients": (over_http(server, text, 64), 4),
        }
        for _ in range(options.rounds):
            for name, (call, n_clients) in contenders.items():
                process = os.getpid() if name == "in process" else server.process.pid
                before = cpu_of(process)
                times, seconds = drive(call, n_clients, options.seconds)
                spent = cpu_of(process) - before
                n = 64 * (len(times) + n_clients)  # with the first call of each client
                rates[name] = max(rates.get(name, 0.0), 64 * len(times) / seconds)
                cpu_rates[name] = max(cpu_rates.get(name, 0.0), n / spent)
    for name, rate in rates.items():
        share, cpu_rate = rate / rates["in process"], cpu_rates[name]
        cpu_share = cpu_rate / cpu_rates["in process"]
        print(
            f"{name:28} {rate:8.0f} queries/s {share:5.0%}   {cpu_rate:8.0f} a second of its "
            f"processor {cpu_share:5.0%}"
        )
    return {"rates": rates, "cpu_rates": cpu_rates}


def cpu_of(process):
    """Seconds that a process has run."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def latency(options, folder):
    """Median and 99th percentile of requests of one query."""
    rows = {}
    with (
        Collection.open(folder, n_threads=1) as collection,
        serve(folder, "--threads", 1) as server,
        Server(HELLO) as hello,
    ):
        contenders = {
            "in process": in_process(collection, 1),
            "server, JSON": over_http(server, text, 1),
            "FastAPI hello": over_http(hello, text, 1),
        }
        for n_clients in CLIENTS:
            times = {name: [] for name in contenders}
            rates = dict.fromkeys(contenders, 0.0)
            for _ in range(options.rounds):
                for name, call in contenders.items():
                    some, seconds = drive(call, n_clients, options.seconds)
                    times[name].append(some)
                    rates[name] = max(rates[name], len(some) / seconds)
            for name, parts in times.items():
                p50, p99 = 1000 * np.percentile(np.concatenate(parts), [50, 99])
                rows[f"{name}, {n_clients} clients"] = p50, p99, rates[name]
                print(
                    f"{name:15} {n_clients:3} clients  p50 {p50:8.2f} ms  p99 {p99:8.2f} ms  "
                    f"{rates[name]:8.0f} queries/s"
                )
    return rows


def restart(options, folder):
    """Seconds from the start of a process to its first answer, after a kill -9."""
    seconds, cpu = [], []
    with tempfile.TemporaryDirectory() as work:
        place = os.path.join(work, "large")
        build(place, options.large)
        for _ in range(options.rounds + 1):
            server = serve(place)
            connection, (body, headers) = server.connect(), text(queries(1, 0))
            connection.request("POST", "/search", body, headers)
            connection.getresponse().read()
            seconds.append(time.perf_counter() - server.started)
            before = _cpu_of_children()
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            cpu.append(_cpu_of_children() - before)
    print(f"{options.large} codes: {[round(one, 2) for one in seconds]} s from start to answer")
    print(f"of which on a processor: {[round(one, 2) for one in cpu]} s")
    return {"seconds": seconds, "cpu": cpu}


def _cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)  # of those that have ended
    return usage.ru_utime + usage.ru_stime


def memory(options, folder):
    """Resident memory under load of every kind, every ten seconds."""
    name, sizes = "process_resident_memory_bytes ", []
    is_done = threading.Event()
    with serve(folder, "--threads", 1) as server:
        include = {"include": ["codes", "histogram"], "k": 5}
        calls = [over_http(server, binary, 64), over_http(server, text, 1)]
        calls.append(over_http(server, lambda codes: _with(text(codes), include), 1))

        def client(make):
            call = make(0)
            while not is_done.wait(options.pause):
                call()

        threads = [threading.Thread(target=client, args=(make,)) for make in calls]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60 * options.minutes
        while time.monotonic() < end:
            time.sleep(10)
            line = next(one for one in server.get("/metrics").splitlines() if one.startswith(name))
            sizes.append(float(line.removeprefix(name)) / 2**20)
        is_done.set()
        for thread in threads:
            thread.join()
        counts = [one for one in server.get("/metrics").splitlines() if "_requests_total" in one]
    quarter = max(1, len(sizes) // 4)
    second, last = np.mean(sizes[quarter : 2 * quarter]), np.mean(sizes[-quarter:])
    print(
        f"resident MiB: second quarter {second:.1f}, last quarter {last:.1f}, most {max(sizes):.1f}"
    )
    print("\n".join(counts))
    return sizes


def _with(request, facts):
    body, headers = request
    return json.dumps({**json.loads(body), **facts}).encode(), headers


JOBS = {"throughput": throughput, "latency": latency, "restart": restart, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--job", nargs="+", choices=JOBS, default=["throughput", "latency"])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000, help="codes of the job restart")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--minutes", type=float, default=10.0, help="of the job memory")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds, of the job memory")
    parser.add_argument("--out", type=Path, default=Path("out/service"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "collection")
        build(folder, options.items)
        print(f"{options.items} codes of {N_BITS} bits, k = {K}")
        for name in options.job:
            result = JOBS[name](options, folder)
            (options.out / f"{name}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
