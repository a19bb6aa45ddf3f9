"""Hundreds of connections that are slow, silent or endless, against a server with few files.

    python tests/service/connections.py --seconds 15 --sockets 800
    python tests/service/connections.py --only half idle --seed 3

An ordinary client, which connects anew for every request, must get in throughout; memory and log
stay small, connections that wait are closed in time, and SIGTERM ends the process.
"""

import argparse
import contextlib
import http.client
import json
import random
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "durability")]

import numpy as np
from violations import Report

from rankbits.index import Collection

GET = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
MOST_GAP = 5.0  # seconds in which an ordinary client must get in
MOST_MEMORY = 300 << 20  # bytes above those of the server at its start
MOST_LOG = 100_000  # bytes
CLOSED_IN = 25.0  # seconds, of which the server's limits are 10 for headers and for pauses
ENDED_IN = 30.0
SIZES = ("seconds", "sockets", "files", "seed")
MAIN = "from rankbits.cli import main; main()"


class Server:
    """A process of `rankbits serve` that may open few files, and what it costs."""

    def __init__(self, folder, n_files):
        Collection.create(folder / "collection", 32).close()
        with Collection.open(folder / "collection", writable=True) as collection:
            rows = np.random.default_rng(0).integers(0, 256, (1000, 4), np.uint8)
            collection.add(rows)
        self.log = folder / "log"
        command = [sys.executable, "-c", MAIN, "serve", str(folder / "collection"), "--port", "0"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.log.open("wb"),
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files)),
        )
        text = ""
        while not text.endswith("}\n"):
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(self.log.read_text())
            text += line
        parts = urlsplit(json.loads(text)["url"])
        self.address = parts.hostname, parts.port
        self.bytes_at_start = self.peak_bytes()

    def peak_bytes(self):
        """The most memory that was resident."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
        return 0


class OrdinaryClient(threading.Thread):
    """Somebody who asks five times a second, on a new connection each time."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.is_over = address, threading.Event()
        self.n_answers = self.n_failures = 0
        self.longest_gap, self.last_answer = 0.0, time.monotonic()

    def run(self):
        while not self.is_over.wait(0.2):
            try:
                is_answered = self.ask() == 200
            except (OSError, http.client.HTTPException):
                is_answered = False
            now = time.monotonic()
            self.longest_gap = max(self.longest_gap, now - self.last_answer)
            self.last_answer = now if is_answered else self.last_answer
            self.n_answers += is_answered
            self.n_failures += not is_answered

    def ask(self):
        connection = http.client.HTTPConnection(*self.address, timeout=MOST_GAP)
        with contextlib.closing(connection):
            body = json.dumps({"ids": [3], "k": 5})
            connection.request("POST", "/search", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            return answer.status

    def gap(self):
        """The longest time without an answer, from the last call on."""
        gap = max(self.longest_gap, time.monotonic() - self.last_answer)
        self.longest_gap = 0.0
        return gap


class Attack:
    """Connections, and what is sent on each of them from time to time."""

    def __init__(self, address, n_sockets, seconds, dice):
        self.address, self.n_sockets, self.dice = address, n_sockets, dice
        self.end = time.monotonic() + seconds
        self.sockets, self.n_forgotten = [], 0

    def is_over(self):
        return time.monotonic() > self.end

    def connect(self, first=b""):
        """One more connection; that it is refused is no failure."""
        try:
            one = socket.create_connection(self.address, timeout=2)
            self.sockets.append(one)
            one.sendall(first)
        except OSError:
            return None
        return one

    def send(self, one, data):
        """Whether the server still took it."""
        try:
            one.settimeout(1)
            one.sendall(data)
        except OSError:
            return False
        return True

    def hold(self, first, more=b""):
        """Open all connections, and send a byte of `more` on some of them again and again."""
        for _ in range(self.n_sockets):
            if self.is_over():
                return
            self.connect(first)
        while not self.is_over():
            for one in self.dice.sample(self.sockets, len(self.sockets) // 5) if more else ():
                self.send(one, more)
            time.sleep(0.2)

    def flood(self, first, more):
        """Send without an end on one connection after the other."""
        while not self.is_over():
            one = self.connect(first)
            while one and not self.is_over() and self.send(one, more):
                pass
            if not self.is_over():
                self.forget()

    def forget(self):
        """Close what the server has ended, of which there would soon be too many to hold."""
        while self.sockets:
            self.sockets.pop().close()
            self.n_forgotten += 1

    def n_open_after(self, seconds):
        """How many connections the server has not closed by then."""
        end, rest = time.monotonic() + seconds, set(self.sockets)
        while rest and time.monotonic() < end:
            rest = {one for one in rest if not is_closed(one)}
            time.sleep(0.1)
        return len(rest)

    def close(self):
        for one in self.sockets:
            one.close()


def is_closed(one):
    """Whether the other side has ended the connection; what it sent is read."""
    one.setblocking(False)
    try:
        while one.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


ATTACKS = {
    "half": lambda attack: attack.hold(GET + b"X-Half: "),
    "silent": lambda attack: attack.hold(b""),
    "slow_headers": lambda attack: attack.hold(GET + b"X-Slow: ", b"a"),
    "slow_bodies": lambda attack: attack.hold(POST + b"Content-Length: 9999\r\n\r\n{", b" "),
    "early_answers": lambda attack: attack.hold(
        b"PUT /items/3 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n", b" "
    ),
    "idle": lambda attack: attack.hold(GET + b"\r\n"),
    "unread": lambda attack: attack.hold(
        40 * b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ),
    "blank_lines": lambda attack: attack.hold(b"\r\n", b"\r\n"),
    "endless_header": lambda attack: attack.flood(GET + b"X-Long: ", b"a" * (1 << 20)),
    "endless_headers": lambda attack: attack.flood(GET, b"X: a\r\n" * (1 << 16)),
    "endless_address": lambda attack: attack.flood(b"GET /", b"a" * (1 << 20)),
    "endless_trailers": lambda attack: attack.flood(
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n", b"X: a\r\n" * (1 << 16)
    ),
    "endless_extension": lambda attack: attack.flood(
        POST + b"Transfer-Encoding: chunked\r\n\r\n1;x=", b"a" * (1 << 20)
    ),
    "pipelining": lambda attack: attack.flood(b"", (GET + b"\r\n") * 5000),
    "no_http": lambda attack: attack.flood(b"\x16\x03\x01\x02\x00", b"\x00" * 100),
    "come_and_go": lambda attack: attack.flood(b"GE", b""),
}


class Run:
    """All attacks on one server."""

    def __init__(self, options, report, folder):
        self.options, self.report = options, report
        self.server = Server(folder, options.files)
        self.client = OrdinaryClient(self.server.address)

    def check(self, is_right, name, sentence, detail):
        if not is_right:
            only = "" if name == "all" else f" --only {name.replace('+', ' ')}"
            numbers = [f"--{one} {getattr(self.options, one)}" for one in SIZES]
            repeat = f"{sys.executable} tests/service/connections.py{only} {' '.join(numbers)}"
            self.report.violation(sentence, f"{name}: {detail}", repeat)

    def attack(self, names):
        """Attack in these ways at once, and look at the server meanwhile and afterwards."""
        n_sockets = max(10, self.options.sockets // len(names))
        arguments = self.server.address, n_sockets, self.options.seconds
        dice = random.Random(self.options.seed)
        attacks = [Attack(*arguments, random.Random(dice.random())) for _ in names]
        threads = [
            threading.Thread(target=ATTACKS[name], args=(attack,), daemon=True)
            for name, attack in zip(names, attacks, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.look("+".join(names) if len(names) < 3 else "all")
        if self.options.seconds >= 5:
            for name, attack in zip(names, attacks, strict=True):
                n_open = attack.n_open_after(CLOSED_IN)
                words = "connections that wait are not closed in time"
                self.check(n_open == 0, name, words, f"{n_open} open")
        self.report.count(
            "connections", sum(len(attack.sockets) + attack.n_forgotten for attack in attacks)
        )
        self.report.count("attacks", len(attacks))
        return attacks

    def look(self, name):
        """What must hold at any time."""
        if self.server.process.poll() is not None:
            self.check(False, name, "the server ended", self.server.process.returncode)
            return
        gap, peak = self.client.gap(), self.server.peak_bytes() - self.server.bytes_at_start
        n_bytes = self.server.log.stat().st_size
        self.check(gap < MOST_GAP, name, "an ordinary client was kept out", f"{gap:.1f} s")
        self.check(peak < MOST_MEMORY, name, "memory is not bounded", f"{peak >> 20} MiB more")
        self.report.counts["peak_mib"] = max(self.report.counts.get("peak_mib", 0), peak >> 20)
        self.check(n_bytes < MOST_LOG, name, "the log is not bounded", f"{n_bytes} bytes")

    def end(self):
        """End the server in the middle of an attack."""
        last = Attack(self.server.address, 50, 1, random.Random(0))
        is_short = self.options.seconds < 5  # a body may pause for longer than that
        last.hold(GET if is_short else POST + b"Content-Length: 99\r\n\r\n{")
        self.client.is_over.set()
        start = time.monotonic()
        self.server.process.terminate()
        try:
            code = self.server.process.wait(ENDED_IN)
        except subprocess.TimeoutExpired:
            code = "no end"
            self.server.process.kill()
            self.server.process.wait()
        self.check(code == 0, "half", "SIGTERM does not end the server", code)
        self.report.count("seconds_of_the_end", round(time.monotonic() - start, 1))
        self.report.count("answers", self.client.n_answers)
        self.report.count("failures_of_the_client", self.client.n_failures)
        self.report.count("log_bytes", self.server.log.stat().st_size)
        last.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8, help="of each attack")
    parser.add_argument("--sockets", type=int, default=600)
    parser.add_argument("--files", type=int, default=256, help="that the server may open")
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--together", action="store_true", help="all attacks at once alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--folder")
    options = parser.parse_args()
    report = Report("connections", goes_on=options.keep_going)
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        run = Run(options, report, Path(place))
        try:
            run.client.start()
            rounds = [] if options.together else [[name] for name in options.only]
            for names in [*rounds, options.only]:
                for attack in run.attack(names):
                    attack.close()
            run.end()
        finally:
            run.server.process.kill()
    report.finish()


if __name__ == "__main__":
    main()
