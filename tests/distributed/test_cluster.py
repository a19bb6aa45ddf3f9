"""Clusters that cannot be joined are refused at once; what is started is stopped."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clusters import processes, processes_with, require_gone
from rankbits import distributed
from rankbits.distributed import _address
from rankbits.errors import InputError, MissingExtraError


@pytest.fixture
def stranger():
    """A server that is no cluster: it answers everything with one line of HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_an_address_where_nothing_listens_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(InputError, match=rf"nothing answers at {address} \(Connection refused\)"):
        distributed.cluster_info(address)


def test_a_server_that_is_no_cluster_is_refused(stranger):
    with pytest.raises(InputError, match=f"what answers at {stranger} is something else"):
        distributed.cluster_info(stranger)


@pytest.mark.parametrize("address", ["here", "host:", ":6379", "host:0", "host:99999", ""])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="cluster must be 'auto' or"):
        _address.resolve(address)


def test_addresses_of_clients_are_refused():
    with pytest.raises(InputError, match=r"HOST:PORT of the head node, got ray://host:10001"):
        _address.resolve("ray://host:10001")


def test_auto_is_the_cluster_of_the_environment_or_this_machine(monkeypatch, stranger):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert _address.resolve("auto") is _address.resolve(None) is None
    monkeypatch.setenv("RAY_ADDRESS", stranger)
    with pytest.raises(InputError, match="is something else"):
        _address.resolve("auto")


def test_ray_that_is_not_installed_is_named(hide_package):
    hide_package("ray")
    with pytest.raises(MissingExtraError, match=r"pip install 'rankbits\[distributed\]'"):
        distributed.cluster_info()


SERIAL = """
import sys
import rankbits
from rankbits import distributed
from rankbits.cli import app
try:
    app(["evaluate", "--queries", "none.npy", "--database", "none.npy", "--bits", "8"])
except SystemExit:
    pass
try:
    app(["index", "search", "none", "none.npy"])
except SystemExit:
    pass
assert "ray" not in sys.modules
"""


def test_nothing_without_a_cluster_imports_ray():
    subprocess.run([sys.executable, "-c", SERIAL], check=True, capture_output=True)


OTHER_RANKBITS = """
import sys, rankbits
from rankbits import distributed
rankbits.__version__ = "9.9"
distributed.cluster_info(sys.argv[1]) if sys.argv[2] == "info" else None
with distributed.connect(sys.argv[1]):
    pass
"""
OTHER_RAY = """
import sys, ray
ray.__version__ = "1.0"
from rankbits import distributed
with distributed.connect(sys.argv[1]):
    pass
"""


def error_of(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert done.stdout == ""
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.slow
def test_another_rankbits_on_the_workers_is_refused(cluster):
    error = error_of(OTHER_RANKBITS, cluster.address, "connect")
    assert "cluster must have rankbits 9.9 on every machine, as here, and" in error
    assert "has rankbits 0.1.0; install the same version everywhere" in error


@pytest.mark.slow
def test_another_ray_is_refused(cluster):
    error = error_of(OTHER_RAY, cluster.address)
    assert "InputError: cluster must be one that this process can join" in error
    assert "Version mismatch" in error


@pytest.mark.slow
def test_a_cluster_says_what_it_has(cluster):
    command = [sys.executable, "-c", "from rankbits.cli import main; main()", "cluster", "info"]
    done = subprocess.run(
        [*command, "--cluster", cluster.address], capture_output=True, check=True, text=True
    )
    printed = json.loads(done.stdout)
    assert printed["address"] == cluster.address
    assert printed["cpus"] == 3
    assert [node["rankbits"] for node in printed["nodes"]] == ["0.1.0"] * 3
    assert done.stderr == ""


@pytest.mark.slow
def test_another_cluster_than_the_connected_one_is_refused(cluster):
    with (
        pytest.raises(InputError, match=f"cluster must be {cluster.address}, with which"),
        distributed.connect("127.0.0.1:1"),
    ):
        pass


LOCAL = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it: make test &
import sys, time
from rankbits import distributed
with distributed.connect(n_workers=1) as ray:
    print(ray._private.worker._global_node.get_session_dir_path(), flush=True)
    ray.get(ray.remote(lambda: 1).remote())
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_driver_that_dies_takes_its_processes_with_it(sent):
    command = [sys.executable, "-c", LOCAL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        folder = os.path.dirname(os.path.dirname(driver.stdout.readline().strip()))
        assert os.path.basename(folder).startswith("rankbits-ray-")
        assert driver.stdout.readline() == "ready\n"
        pids = processes_with(folder)
        assert pids
        driver.send_signal(sent)
        driver.wait(60)
        assert driver.stdout.read() == ""
    assert not require_gone(pids, folder)
    assert sent != signal.SIGINT or not os.path.exists(folder)
    shutil.rmtree(folder, ignore_errors=True)  # who is killed cannot


def listeners_of(pids):
    """Addresses at which processes wait for connections, as /proc/net writes them."""
    sockets = set()
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(handle))
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return [line[1].rpartition(":")[0] for line in lines if f"socket:[{line[9]}]" in sockets
            and line[3] == LISTENS]  # fmt: skip


LISTENS = "0A"
LOOPBACK = {
    "0100007F",
    "0000000000000000FFFF00000100007F",  # the same, as IPv6 writes it
    "00000000000000000000000001000000",
}


def descendants_of(pid):
    """A process and everything that it has started, and what that has started."""
    children = {}
    for child, parent, _ in processes():
        children.setdefault(parent, []).append(child)
    waiting, pids = [pid], []
    while waiting:
        pids.append(waiting.pop())
        waiting += children.get(pids[-1], [])
    return pids


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, "of an earlier Ray"])
def test_a_local_cluster_is_for_this_user_of_this_machine_only(tmp_path, token):
    place = tmp_path / ".ray" / "auth_token"
    if token is not None:
        place.parent.mkdir()
        place.write_text(token)
        place.chmod(0o644)
    variables = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    with subprocess.Popen(
        [sys.executable, "-c", LOCAL], stdout=subprocess.PIPE, text=True, umask=0o002,
        env={**variables, "HOME": str(tmp_path)},
    ) as driver:  # fmt: skip
        folder = os.path.dirname(os.path.dirname(driver.stdout.readline().strip()))
        assert driver.stdout.readline() == "ready\n"
        addresses = listeners_of(descendants_of(driver.pid))
        modes = [os.stat(path).st_mode & 0o777 for path in (folder, place)]
        driver.send_signal(signal.SIGINT)
        driver.wait(60)
    assert len(addresses) > 3
    assert set(addresses) <= LOOPBACK
    assert modes == [0o700, 0o600]
    assert token in (None, place.read_text())
