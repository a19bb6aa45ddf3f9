"""Who may speak to the server from within a browser: its own page, and nobody else's.

A page from elsewhere can send requests to this server, even if it listens for this machine alone.
By the name of the page's own site, pointed at this machine (DNS rebinding), it could read the
answers, so a name must be one that the owner chose; an address cannot be pointed elsewhere. And
what a page of another origin asks for is refused by what browsers say of it, before any work.
"""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache

from rankbits.service._problems import RequestProblem

LOCAL_HOSTS = ("localhost",)
_FOREIGN = ("cross-site", "same-site")


def require_host(values: list[bytes], hosts: frozenset[str] | None) -> None:
    """Refuse a Host header that is neither an address nor one of these names; None allows any."""
    if hosts is None:
        return
    name = host_name(values[0].decode("latin-1")) if len(values) == 1 else ""
    if name not in hosts and not is_address(name):
        known = ", ".join(sorted(hosts))
        raise RequestProblem(
            "misdirected", f"the Host header must be an address or {known}; see --allow-host"
        )


def require_own_page(method: str, headers: Mapping[bytes, bytes]) -> None:
    """Refuse what a page of another origin asks for; to follow a link to here is no asking."""
    if headers.get(b"sec-fetch-site", b"").decode("latin-1") not in _FOREIGN:
        return
    if method != "GET" or headers.get(b"sec-fetch-mode") != b"navigate":
        raise RequestProblem("foreign-page", "pages of other sites are not answered")


def host_name(host: str) -> str:
    """A Host header without its port.

    >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.lower().rpartition(":")
    return (
        name
        if colon and (port.isdecimal() or not port) and not port.endswith("]")
        else host.lower()
    )


@lru_cache(256)
def is_address(name: str) -> bool:
    """Whether the name of a Host header is an IP address.

    >>> [is_address(name) for name in ("192.0.2.7", "[::1]", "::1", "127.0.0.1.example")]
    [True, True, False, False]
    """
    try:
        if name.startswith("[") and name.endswith("]"):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True
