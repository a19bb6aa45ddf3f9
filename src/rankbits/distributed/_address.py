"""Whether a Ray cluster answers at an address, before Ray itself is asked.

Ray waits two minutes for an address that does not answer, and prints as it waits. A head node
speaks gRPC, which is HTTP/2: whoever sends the opening of that protocol gets its settings back.
"""

import os
import socket

from rankbits.errors import InputError

AUTO = "auto"
_OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_FRAME_HEADER, _KIND_BYTE, _SETTINGS = 9, 3, 4  # bytes in the header, where the kind is, its value
_SECONDS = 5.0
_START = "start one with `ray start --head` and give HOST:PORT as it prints it"


def resolve(cluster: str | None) -> str | None:
    """The address to join, or None for Ray on the cores of this machine.

    "auto" is the cluster that RAY_ADDRESS names, as it does within jobs of a cluster, or else the
    cores of this machine.
    """
    if cluster is None:
        return None
    if not isinstance(cluster, str) or not cluster:
        raise InputError(f"cluster must be {AUTO!r} or the address of a cluster, got {cluster!r}")
    address = os.environ.get("RAY_ADDRESS", "") if cluster == AUTO else cluster
    if address in ("", "local"):
        return None
    require_answer(address)
    return address


def require_answer(address: str) -> None:
    """Refuse an address where no Ray cluster answers.

    Parameters
    ----------
    address : str
        HOST:PORT of the head node.
    """
    host, port = _split(address)
    try:
        with socket.create_connection((host, port), _SECONDS) as connection:
            connection.settimeout(_SECONDS)
            connection.sendall(_OPENING)
            answer = connection.recv(_FRAME_HEADER)
    except OSError as error:
        reason = error.strerror or "no answer in time"
        raise InputError(
            f"cluster must be the address of a running Ray cluster, nothing answers at {address} "
            f"({reason}); {_START}"
        ) from None
    if len(answer) < _FRAME_HEADER or answer[_KIND_BYTE] != _SETTINGS:
        raise InputError(
            f"cluster must be the address of a running Ray cluster, what answers at {address} is "
            f"something else; {_START}"
        )


def _split(address: str) -> tuple[str, int]:
    """Host and port of an address."""
    if "://" in address:
        raise InputError(
            f"cluster must be HOST:PORT of the head node, got {address}; run the command on a "
            "machine of the cluster, or through `ray job submit`"
        )
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        raise InputError(f"cluster must be {AUTO!r} or HOST:PORT of a head node, got {address!r}")
    return host.strip("[]"), int(port)
