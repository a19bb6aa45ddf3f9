"""Joining a Ray cluster, or starting one on the cores of this machine, and leaving it again.

Whatever is started here is stopped here: when the outermost `connect` ends, and when this process
dies. Ray reports nothing to the internet, has no dashboard and prints nothing. What is started here
is for this user of this machine: it listens on the loopback interface, its token can be read by
nobody else, and its files lie in a folder that nobody else can enter.
"""

import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from rankbits import _check
from rankbits._files import one_line, write_atomically
from rankbits.distributed import _address
from rankbits.errors import ClusterError, InputError

_STORE_BYTES = 256 << 20  # of the object store: what travels are tables of counts and lists of ids
_LONGEST_FOLDER = 36  # characters; Ray puts sockets there, whose names may have 107
_VERSION_SECONDS = 60.0
_AUTH_MODE = "RAY_AUTH_MODE"
_TOKEN_SOURCES = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_HAS_OTHER_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0" is Ray's word for loopback only
_SETTINGS = {  # of Ray, unless the user has others
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns about GPUs
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_NUM_REDIS_GET_RETRIES": "5",  # seconds for which it tries to join what answers already
}


def import_ray() -> Any:
    """Ray, told to be quiet."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    ray = _check.extra("ray", "a cluster", "distributed")
    # Ray prints lost workers on standard output, where commands print their results. What is lost
    # for good is an error of the job, and what is not has been made up for.
    ray._private.worker._worker_logs_enabled = False
    return ray


@contextmanager
def connect(cluster: str | None = None, *, n_workers: int | None = None) -> Iterator[Any]:
    """Stay connected for several jobs, which otherwise connect each for itself.

    A process that has called `ray.init` already is connected, and remains so.

    Parameters
    ----------
    cluster : str or None, default=None
        HOST:PORT of the head node of a Ray cluster, "auto" for the one that RAY_ADDRESS names, if
        it names one. None, and "auto" without it, start Ray on the cores of this machine.
    n_workers : int or None, default=None
        How many cores of this machine to use; None for all that this process may use. Only for
        Ray on this machine.

    Returns
    -------
    ray : module
        The connected `ray`, as the value of the `with` statement.

    >>> with connect() as ray:  # doctest: +SKIP
    ...     ray.cluster_resources()["CPU"]
    2.0
    """
    n_workers = None if n_workers is None else _check.whole("n_workers", n_workers, 1)
    ray = import_ray()
    if ray.is_initialized():
        _require_same_cluster(ray, cluster)
        yield ray
        return
    address = _address.resolve(cluster)
    with _local(ray, n_workers) if address is None else _joined(ray, address):
        yield ray


@contextmanager
def _local(ray: Any, n_workers: int | None) -> Iterator[None]:
    """Ray on this machine, in a folder of its own that goes with it."""
    folder = tempfile.mkdtemp(prefix="rankbits-ray-")
    if len(folder) > _LONGEST_FOLDER and os.path.isdir("/tmp"):  # noqa: S108 - mkdtemp makes it
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="rankbits-ray-", dir="/tmp")
    try:
        with _variables_kept(_AUTH_MODE), _loopback_only():
            _make_token_private()
            ray.init(
                address="local",
                num_cpus=n_workers or _n_cores(),
                object_store_memory=_STORE_BYTES,
                include_dashboard=False,
                _temp_dir=os.path.join(folder, "ray"),  # which Ray opens to every user
                _node_ip_address="127.0.0.1",
                **_QUIET,
            )
            try:
                yield
            finally:
                ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _variables_kept(*names: str) -> Iterator[None]:
    """A block after which variables of the environment are as they were."""
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _loopback_only() -> Iterator[None]:
    """A block in which Ray, and what it starts, takes 127.0.0.1 for the address of this machine.

    Ray does so where it knows one machine only; elsewhere it replaces 127.0.0.1 by an address that
    others can reach, and listens on all of them.
    """
    constants: Any = _check.extra("ray._private.ray_constants", "a cluster", "distributed")
    before = constants.ENABLE_RAY_CLUSTER
    with _variables_kept(_HAS_OTHER_MACHINES):
        os.environ[_HAS_OTHER_MACHINES] = "0"
        constants.ENABLE_RAY_CLUSTER = False
        try:
            yield
        finally:
            constants.ENABLE_RAY_CLUSTER = before


def _make_token_private() -> None:
    """Make the token that Ray would make, which it leaves readable by every user.

    One that is there stays what it is, but nobody else can read it.
    """
    is_needed = os.environ.get(_AUTH_MODE, "token") == "token"
    if not is_needed or any(name in os.environ for name in _TOKEN_SOURCES):
        return
    place = Path.home() / ".ray" / "auth_token"
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with write_atomically(place, may_replace=False, mode=0o600) as file:
            file.write(secrets.token_hex(32).encode())
    except FileExistsError:
        if place.stat().st_uid == os.geteuid():
            place.chmod(0o600)


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    """A cluster that others started, whose machines have the same versions."""
    try:
        ray.init(address=address, **_QUIET)
    except (RuntimeError, ConnectionError, ValueError) as error:
        ray.shutdown()
        raise InputError(
            f"cluster must be one that this process can join, {address} says: "
            f"{one_line(error)[:300]}{_token_hint()}"
        ) from None
    _addresses.append(address)
    try:
        _require_same_rankbits(ray)
        yield
    finally:
        _addresses.remove(address)
        ray.shutdown()


def _token_hint() -> str:
    """What may be missing where this process has no token."""
    if os.environ.get(_AUTH_MODE) == "token":
        return ""
    return f"; if the cluster has a token, set {_AUTH_MODE}=token and give this process the same"


_addresses: list[str] = []  # by which this process has joined; Ray may call its cluster otherwise
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


def _n_cores() -> int:
    """Processors that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def _require_same_cluster(ray: Any, cluster: str | None) -> None:
    """Refuse an address other than that of the cluster that this process is connected with."""
    if cluster in (None, _address.AUTO, *_addresses):
        return
    current = ray.get_runtime_context().gcs_address
    if cluster != current:
        raise InputError(
            f"cluster must be {current}, with which this process is connected, got {cluster!r}; "
            "call ray.shutdown() first"
        )


def _require_same_rankbits(ray: Any) -> None:
    """Refuse a cluster of which a machine has another rankbits, or none."""
    from rankbits import __version__

    for place, version in node_versions(ray).items():
        if version != __version__:
            has = f"rankbits {version}" if version else "no rankbits"
            raise InputError(
                f"cluster must have rankbits {__version__} on every machine, as here, and "
                f"{place} has {has}; install the same version everywhere"
            )


def node_versions(ray: Any) -> dict[str, str | None]:
    """The version of rankbits on each machine, None where it is not installed."""
    task = ray.remote(_version_function())
    requests = {
        node["NodeID"]: task.options(
            num_cpus=0, max_retries=3, scheduling_strategy=on_node(node["NodeID"], is_soft=False)
        ).remote()
        for node in alive_nodes(ray)
    }
    _, late = ray.wait(list(requests.values()), num_returns=len(requests), timeout=_VERSION_SECONDS)
    if late:
        raise ClusterError(
            f"cluster must answer, {len(late)} of its {len(requests)} machines did not start a "
            f"process within {_VERSION_SECONDS:.0f} s"
        )
    places = {node["NodeID"]: place_of(node) for node in alive_nodes(ray)}
    answers = {node: ray.get(ref) for node, ref in requests.items() if node in places}
    return {places[node]: version for node, version in answers.items()}


def _version_function() -> Any:
    """A function that travels as code: where rankbits is missing, it must run as well."""

    def installed_version() -> str | None:
        try:
            import rankbits
        except ImportError:
            return None
        return rankbits.__version__

    return installed_version


def on_node(node: str, *, is_soft: bool) -> Any:
    """Ray's word for running something on one machine, or elsewhere if soft and it is lost."""
    strategies = _check.extra("ray.util.scheduling_strategies", "a cluster", "distributed")
    return strategies.NodeAffinitySchedulingStrategy(node, soft=is_soft)


def alive_nodes(ray: Any) -> list[dict[str, Any]]:
    """What Ray knows of the machines that are there, in a fixed order."""
    return sorted((n for n in ray.nodes() if n["Alive"]), key=lambda node: str(node["NodeID"]))


def place_of(node: dict[str, Any]) -> str:
    """A machine as messages name it."""
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def n_cpus(ray: Any) -> int:
    """Processors of the whole cluster as it was within the last second, at least one."""
    return _n_cpus(ray, int(time.monotonic()), ray.get_runtime_context().get_job_id())


@lru_cache(maxsize=1)
def _n_cpus(ray: Any, second: int, job: str) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def cluster_info(cluster: str | None = None) -> dict[str, Any]:
    """What Ray has: versions, machines and their processors and memory, ready for JSON.

    Parameters
    ----------
    cluster : str or None, default=None
        The cluster, as in `connect`.

    Returns
    -------
    info : dict
        `address` (None for this machine), `ray` and `rankbits` (versions), `cpus`, and `nodes`:
        for each machine its `place`, `cpus`, `memory_gb`, `object_store_gb` and `rankbits`.
    """
    from rankbits import __version__

    is_local = _address.resolve(cluster) is None and not import_ray().is_initialized()
    with connect(cluster) as ray:
        versions = node_versions(ray)
        return {
            "address": None if is_local else ray.get_runtime_context().gcs_address,
            "ray": ray.__version__,
            "rankbits": __version__,
            "cpus": n_cpus(ray),
            "nodes": [_describe_node(node, versions) for node in alive_nodes(ray)],
        }


def _describe_node(node: dict[str, Any], versions: dict[str, str | None]) -> dict[str, Any]:
    resources = node["Resources"]
    return {
        "place": place_of(node),
        "cpus": int(resources.get("CPU", 0)),
        "memory_gb": round(resources.get("memory", 0) / 1e9, 1),
        "object_store_gb": round(resources.get("object_store_memory", 0) / 1e9, 1),
        "rankbits": versions.get(place_of(node)),
    }
