"""A Ray cluster of three nodes on this machine, whose workers and nodes tests can kill.

Processes are found in /proc: workers are children of a node's raylet, and whatever belongs to a
cluster has the folder of its session on its command line or such a parent.
"""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

HERE = str(Path(__file__).parent)
_STORE_BYTES = 80 << 20
_AGENTS = ("Agent",)


class TestCluster:
    """Three nodes with one processor each; this process is connected to the first."""

    __test__ = False

    def __init__(self, n_nodes=3):
        from rankbits.distributed._cluster import import_ray

        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = f"{HERE}:{before}" if before else HERE  # for shards of tests
        self.ray = import_ray()
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={
                **self._resources(),
                "include_dashboard": False,
                # for which Ray waits for a worker that was killed as it started; else a minute
                "_system_config": {"worker_register_timeout_seconds": 10},
            },
        )
        self.address = self._cluster.address
        self.ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        self.session = self._cluster.head_node.get_session_dir_path()
        for _ in range(n_nodes - 1):
            self.add_node()

    def _resources(self):
        return {"num_cpus": 1, "object_store_memory": _STORE_BYTES}

    def add_node(self):
        self._cluster.add_node(**self._resources())

    def remove_node(self):
        """Kill the newest node and all its workers."""
        node = sorted(self._cluster.worker_nodes, key=lambda node: node.unique_id)[-1]
        self._cluster.remove_node(node, allow_graceful=False)

    def raylets(self):
        nodes = self._cluster.list_all_nodes()
        return [node.all_processes["raylet"][0].process.pid for node in nodes]

    def workers(self, busy_with=""):
        """Processes that run tasks or hold actors, or those among them that do one thing."""
        parents = set(self.raylets())
        titles = {pid: title for pid, parent, title in processes() if parent in parents}
        return [
            pid
            for pid, title in titles.items()
            if title.startswith("ray::")
            and not title.endswith(_AGENTS)
            and busy_with.lower() in title.lower()
        ]

    def stop(self):
        pids = [*self.raylets(), *self.workers()]
        self.ray.shutdown()
        self._cluster.shutdown()
        return require_gone(pids, self.session)


def processes():
    """(pid, parent, command line) of everything that runs."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            if status[0] != "Z":
                yield int(folder.name), int(status[1]), command


def processes_with(text):
    """Processes with a text on their command line."""
    return [pid for pid, _, command in processes() if text in command and pid != os.getpid()]


def require_gone(pids, text, seconds=15.0):
    """Wait until processes have ended; those that have not."""
    deadline = time.monotonic() + seconds
    while True:
        alive = {pid for pid, _, _ in processes()}
        left = sorted({pid for pid in pids if pid in alive} | set(processes_with(text)))
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


class Killer(threading.Thread):
    """Sends a signal to a random worker now and then, until the `with` block ends."""

    def __init__(self, cluster, rng, pause, *, busy_with="", sent=signal.SIGKILL, most=10**9):
        super().__init__(daemon=True)
        self.cluster, self.rng, self.pause = cluster, rng, pause
        self.busy_with, self.sent, self.most = busy_with, sent, most
        self.n_sent = 0
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(self.pause) and self.n_sent < self.most:
            workers = self.cluster.workers(self.busy_with)
            if workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(self.rng.choice(workers)), self.sent)
                    self.n_sent += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self.join()
