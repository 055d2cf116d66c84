"""Under which names the server may be asked, and which pages may ask it: the Host and Origin headers. Pure.

A name that is not listed is refused: a stranger's name that was made to point at this machine would give the
stranger's page the rights of a page of ours (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from qlog_assets.errors import QlogError

AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)(:(?P<port>[0-9]{1,5}))?")
ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<authority>.+)")
PORTS = {"http": 80, "https": 443}
EVERYWHERE = ("0.0.0.0", "::")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Hosts:
    """The names of one server, as Host headers have them, in small letters."""

    direct: frozenset[str]
    proxied: frozenset[str]
    """Names of a proxy before the server: it may speak https to the world."""

    @classmethod
    def of(cls, host: str, port: int, allowed: Sequence[str] = ()) -> Hosts:
        """The names for an address that is listened on, and those that --allowed-host adds."""
        proxied = {name for given in allowed for name in proxy_names(given)}
        if host in EVERYWHERE and not proxied:
            raise QlogError(
                f"--host {host} listens on every address: say by --allowed-host NAME under which name people open it"
            )
        names = set(LOOPBACK) if is_loopback(host) or host in EVERYWHERE else set()
        if host not in EVERYWHERE:
            names.add(bracketed(host.lower()))
        direct = {f"{name}:{port}" for name in names} | (names if port == PORTS["http"] else set())
        return cls(frozenset(direct), frozenset(proxied))

    def know(self, host: str) -> bool:
        return host.lower() in self.direct | self.proxied

    def is_own_page(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is one that this server served under this Host: scheme, name and port."""
        found = ORIGIN.fullmatch(origin.lower())
        if not found or not self.know(host):
            return False
        scheme = found["scheme"]
        if scheme == "https" and host.lower() not in self.proxied:
            return False
        return with_port(found["authority"], scheme) == with_port(host.lower(), scheme)


def proxy_names(given: str) -> set[str]:
    """What a Host header may say for one --allowed-host: without a port, the usual ones are meant."""
    name = bracketed(given.strip().lower())
    found = AUTHORITY.fullmatch(name)
    if not found:
        raise QlogError(
            f"--allowed-host {given!r}: give one name such as qlog.example, or with a port: qlog.example:8443"
        )
    return {name} if found["port"] else {name, *(f"{name}:{port}" for port in PORTS.values())}


def with_port(authority: str, scheme: str) -> tuple[str, int] | None:
    found = AUTHORITY.fullmatch(authority)
    return (found["name"], int(found["port"] or PORTS[scheme])) if found else None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bracketed(host: str) -> str:
    """An IPv6 address as an address bar has it; any other name as it is."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
