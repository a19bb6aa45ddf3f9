"""A collection of digits with everything that a server can be given, and servers of it."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from rankbits import methods
from rankbits.datasets import digits
from rankbits.index import Collection

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

TOKEN = "a-token-of-a-test-2f9c"
N_BITS = 32
_MAIN = "from rankbits.cli import main; main()"


class Folder:
    """Files to serve, and what made them."""

    def __init__(self, path):
        self.path, self.data = Path(path), digits()
        self.hasher = methods.get("itq", n_bits=N_BITS, random_state=0).fit(self.data.database_x)
        self.codes = self.hasher.encode(self.data.database_x)
        self.queries = self.hasher.encode_queries(self.data.query_x)
        self.hasher.save(self.path / "model")
        with Collection.create(self.path / "collection", N_BITS) as collection:
            collection.add(self.codes)
        np.save(self.path / "vectors.npy", self.data.database_x)
        lines = [json.dumps(row) for row in self._rows()]
        (self.path / "items.jsonl").write_text("\n".join(lines))

    def _rows(self):
        from rankbits.report import picture

        pairs = zip(self.data.database_x, self.data.database_y, strict=True)
        for item, (x, y) in enumerate(pairs):
            image = picture(x.reshape(8, 8) / 16)
            yield {"id": item, "label": str(y), "title": f"A handwritten {y}", "image": image}

    @property
    def settings(self):
        """Keyword arguments of create_app, apart from the collection."""
        names = {"items": "items.jsonl", "vectors": "vectors.npy"}
        return {"model": self.path / "model"} | {k: self.path / v for k, v in names.items()}

    def copy(self, target):
        """The collection in a folder of its own, to be changed."""
        with Collection.open(self.path / "collection") as collection:
            collection.snapshot(target, link=False)
        return target


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("served"))


@contextmanager
def running(app):
    """The address of an application that runs in a thread until the block ends."""
    from rankbits.service._server import build_server, listening, url_of

    server = build_server(app)
    with listening("127.0.0.1", 0) as listener:
        run = server.serve(sockets=[listener])
        thread = threading.Thread(target=asyncio.run, args=(run,), daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        yield url_of(listener)
        server.stop()
        thread.join()


class Process:
    """`rankbits serve` in a process of its own."""

    def __init__(self, *arguments, environment=None, stderr=subprocess.PIPE):
        command = [sys.executable, "-c", _MAIN, "serve", *map(str, arguments), "--port", "0"]
        variables = {**os.environ, **(environment or {})}
        streams = {"stdout": subprocess.PIPE, "stderr": stderr, "text": True}
        self.process = subprocess.Popen(command, env=variables, **streams)
        text = ""
        while not text.endswith("}\n"):
            line = self.process.stdout.readline()
            assert line, self.process.stderr and self.process.stderr.read()
            text += line
        self.printed = json.loads(text)
        self.url = self.printed["url"]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()

    def end(self, how="terminate"):
        """Exit code and what was written to standard error."""
        if self.process.poll() is None:
            getattr(self.process, how)()
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors
