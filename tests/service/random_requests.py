"""Random requests to a server: some sound, most not, none of which may be answered by a 500.

python tests/service/random_requests.py URL --requests 10000 --seed 0
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import httpx
import numpy as np

from rankbits import _wire

PATHS = [
    "/",
    "/search",
    "/encode",
    "/items",
    "/items/{}",
    "/items/{}/image",
    "/stats",
    "/metrics",
    "/docs",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/page/{}",
    "/{}",
]
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]
KINDS = [
    "application/json",
    "application/octet-stream",
    "text/plain",
    "application/json; charset=x",
    "",
    "a/b",
]
TEXTS = [
    "",
    "0",
    "-1",
    "x",
    "..",
    "%2e%2e",
    "1500",
    "9" * 30,
    "null",
    "é",
    "\u0000",
    "a" * 300,
    "1.5",
    "main.js",
]


class Requests:
    """A source of requests."""

    def __init__(self, seed, n_bits, n_features):
        self.dice, self.n_bytes, self.n_features = random.Random(seed), -(-n_bits // 8), n_features

    def value(self, depth=0):
        """Any JSON value."""
        dice = self.dice
        choices = [
            lambda: None,
            lambda: dice.random() < 0.5,
            lambda: dice.choice([0, 1, -1, 5, 10, 2**31, 2**63, 10**30]),
            lambda: dice.choice([0.0, -0.5, 1e308, 5e-324, 3.7]),
            lambda: dice.choice(TEXTS),
        ]
        if depth < 3:
            choices.append(lambda: [self.value(depth + 1) for _ in range(dice.randrange(4))])
            choices.append(lambda: {dice.choice(TEXTS): self.value(depth + 1) for _ in range(2)})
        return dice.choice(choices)()

    def code(self):
        return self.dice.randbytes(self.n_bytes).hex()

    def row(self):
        return [self.dice.gauss(0, 10) for _ in range(self.n_features)]

    def body(self):
        """A body with fields of the API, some of them wrong."""
        dice, n = self.dice, self.dice.choice([1, 1, 2, 7])
        sound = {
            "codes": lambda: [self.code() for _ in range(n)],
            "ids": lambda: [dice.randrange(1600) for _ in range(n)],
            "vectors": lambda: [self.row() for _ in range(n)],
            "k": lambda: dice.choice([1, 3, 10, 1000]),
            "radius": lambda: dice.randrange(40),
            "ties": lambda: dice.choice(["id", "complete"]),
            "by": lambda: dice.choice(["bits", "weights"]),
            "allowed": lambda: [dice.randrange(1500) for _ in range(9)],
            "labels": lambda: [str(dice.randrange(11))],
            "pool": lambda: dice.randrange(1, 300),
            "rerank": lambda: dice.choice(["none", "weights", "vectors", "weighted_bits"]),
            "weights": lambda: [dice.random() for _ in range(8 * self.n_bytes)],
            "include": lambda: dice.sample(["codes", "fields", "histogram"], dice.randrange(4)),
            "vector": self.row,
            "code": self.code,
            "as": lambda: dice.choice(["items", "queries", "weights"]),
            "texts": lambda: ["x"],
            "pictures": lambda: ["AAAA"],
            "similarity": lambda: dice.choice(["l2", "ip", "cosine"]),
        }
        names = [dice.choice(["codes", "ids", "vectors"])] if dice.random() < 0.8 else []
        names += dice.sample(list(sound), dice.choice([0, 1, 1, 2, 4]))
        return {name: self.value() if dice.random() < 0.08 else sound[name]() for name in names}

    def arrays(self):
        """A binary body, sound or damaged."""
        dice, rng = self.dice, np.random.default_rng(self.dice.randrange(2**31))
        arrays = {
            "codes": rng.integers(0, 256, (2, self.n_bytes + dice.choice([0, 0, 1])), np.uint8),
            "vectors": rng.standard_normal((2, self.n_features)),
            "ids": rng.integers(-1, 1600, 3),
            "allowed": rng.integers(0, 1500, 5),
            "weights": rng.random(8 * self.n_bytes),
        }
        chosen = {name: arrays[name] for name in dice.sample(list(arrays), dice.choice([1, 1, 2]))}
        texts = {"k": dice.choice(["3", "x", "-1"])} if dice.random() < 0.5 else {}
        body = bytearray(_wire.dump(chosen, texts))
        for _ in range(dice.choice([0, 0, 1, 5])):
            body[dice.randrange(len(body))] = dice.randrange(256)
        return bytes(body[: dice.randrange(len(body))] if dice.random() < 0.1 else body)

    def one(self):
        """Method, path, body and headers."""
        dice = self.dice
        path = dice.choice(PATHS) if dice.random() < 0.4 else "/search"
        path = path.format(
            dice.choice([*TEXTS[:12], str(dice.randrange(1600))]).replace("\0", "%00")
        )
        method = dice.choice(METHODS) if path != "/search" or dice.random() < 0.1 else "POST"
        kind = dice.choice(KINDS) if dice.random() < 0.1 else dice.choice(KINDS[:2])
        if kind == "application/octet-stream":
            body = self.arrays()
        else:
            value = self.body() if dice.random() < 0.95 else self.value()
            body = json.dumps(value).encode()
        accept = dice.choice(
            ["*/*", "application/octet-stream", "application/json", "text/html", ",;"]
        )
        headers = {"Accept": accept, **({"Content-Type": kind} if kind else {})}
        return method, path, None if method in ("GET", "HEAD") else body, headers


def run(url, n_requests, seed, n_bits=32, n_features=64, token=None):
    """Answers by status; the first 500 is an error with the request that caused it."""
    source, statuses = Requests(seed, n_bits, n_features), Counter()
    with httpx.Client(base_url=url, timeout=60) as http:
        for number in range(n_requests):
            method, path, body, headers = source.one()
            if token and source.dice.random() < 0.5:
                headers["Authorization"] = f"Bearer {token}"
            answer = http.request(method, path, content=body, headers=headers)
            statuses[answer.status_code] += 1
            if answer.status_code == 500:
                raise AssertionError(f"request {number} of seed {seed}: {method} {path} {body!r}")
            if answer.status_code >= 400 and method != "HEAD":
                kind = answer.headers["content-type"]
                assert kind == "application/problem+json", (number, method, path, kind)
    return statuses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from service.conftest import TOKEN, Folder, Process

    with tempfile.TemporaryDirectory() as place:
        folder = Folder(place)
        files = [f"--{name}={path}" for name, path in folder.settings.items()]
        variables = {"RANKBITS_TOKEN": TOKEN}
        collection = folder.path / "collection"
        with Process(collection, *files, "--writable", environment=variables) as server:
            statuses = run(server.url, options.requests, options.seed, token=TOKEN)
    print({status: statuses[status] for status in sorted(statuses)})


if __name__ == "__main__":
    main()
