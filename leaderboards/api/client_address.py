"""Whose request it is, by network address: forwarded headers count only from trusted proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from django.conf import settings
from django.http import HttpRequest

# An IPv6 customer has a whole /64, so that counting single addresses would count nobody.
IPV6_PREFIX = 64
# How a proxy that connects through a Unix socket, and so has no address, is named as trusted.
UNIX_SOCKET = "unix"


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """Peers whose X-Forwarded-For is believed; with neither, nobody's is."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    unix_socket: bool = False

    @classmethod
    def read(cls, texts: Iterable[str]) -> TrustedProxies:
        """From addresses, networks and "unix". Raises ValueError that names the wrong one."""
        names = {text.strip() for text in texts} - {""}
        try:
            networks = tuple(ipaddress.ip_network(name) for name in sorted(names - {UNIX_SOCKET}))
        except ValueError as error:
            raise ValueError(f"TRUSTED_PROXIES: {error}") from error
        return cls(networks, UNIX_SOCKET in names)

    def include(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self.networks)


def client_address(request: HttpRequest) -> str | None:
    """The rightmost hop that is no trusted proxy; the peer where the header says nothing usable.

    None when there is no address at all: a Unix socket that nobody declared a proxy.
    """
    proxies: TrustedProxies = settings.TRUSTED_PROXIES
    peer = _read_hop(request.META.get("REMOTE_ADDR") or "")
    trusted = proxies.unix_socket if peer is None else proxies.include(peer)
    found = peer
    if trusted:
        for hop in _hops_from_the_right(request.META.get("HTTP_X_FORWARDED_FOR", "")):
            if hop is None:
                found = peer
                break
            found = hop
            if not proxies.include(hop):
                break
    return str(found) if found else None


def address_key(address: str | None) -> str:
    """What requests are counted by: the address, of IPv6 its /64, or "unknown"."""
    if address is None:
        return "unknown"
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, IPv4Address):
        return address
    return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False))


def _hops_from_the_right(header: str) -> Iterator[IPv4Address | IPv6Address | None]:
    rest = header
    while rest:
        rest, _, text = rest.rpartition(",")
        yield _read_hop(text)


def _read_hop(text: str) -> IPv4Address | IPv6Address | None:
    """An address with or without a port and brackets; None for anything else."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        # A scope ("%eth0") says nothing outside the proxy's machine.
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
