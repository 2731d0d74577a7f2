"""Where outgoing webhooks may go: URLs, ports and addresses, checked against requests to private networks.

A URL is checked when a target is declared. Its host is resolved once for each delivery; every address that the resolver
returns must be public, or on the allow-list, and the connection goes to one of these addresses. So an answer of the DNS
that changes between check and connection has no effect.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from detent.errors import InvalidSetting

__all__ = ["AllowList", "BlockedAddress", "Destination", "read_url"]

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

_URL_MAX = 2000
_ALLOWED_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~%A-Z]+")
"""What RFC 3986 allows in a URL. Space, control characters, backslashes and letters outside ASCII are refused, because
programs disagree on what they mean."""
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PLAIN_PORT = 80

_BLOCKED: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "reserved"),
    ("192.31.196.0/24", "reserved"),
    ("192.52.193.0/24", "reserved"),
    ("192.88.99.0/24", "reserved"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved"),
    ("198.18.0.0/15", "reserved"),
    ("198.51.100.0/24", "reserved"),
    ("203.0.113.0/24", "reserved"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::1/128", "loopback"),
    ("::/128", "unspecified"),
    ("fe80::/10", "link-local"),
    ("fc00::/7", "private"),
    ("ff00::/8", "multicast"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "reserved"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "reserved"),
)
_BLOCKED_NETWORKS: tuple[tuple[Network, str], ...] = tuple((ipaddress.ip_network(net), why) for net, why in _BLOCKED)
_PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_FOR_ALLOWED_HOSTS = frozenset({"private", "loopback", "carrier-grade NAT"})
"""Kinds of addresses that a host on the allow-list may have. Others, such as the link-local addresses under which
clouds give out credentials, must be on the list as networks."""


class BlockedAddress(Exception):
    """A delivery was not sent, because its host has an address that is not public and not on the allow-list."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL, taken apart. `host` is as it stands in the URL, in lower case; `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """The URL without path and query, which may hold secrets."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        is_usual = self.port == (443 if self.scheme == "https" else _PLAIN_PORT)
        return f"{self.scheme}://{shown}" + ("" if is_usual else f":{self.port}")


def read_url(url: str) -> Destination:
    """Return the parts of a URL. `InvalidSetting`; the path is not shown."""
    if not isinstance(url, str) or len(url) > _URL_MAX:
        raise InvalidSetting("url", "no text, or one that is too long", f"a URL of up to {_URL_MAX} characters")
    if not _ALLOWED_CHARACTERS.fullmatch(url):
        raise InvalidSetting(
            "url", "characters that no URL has", "letters of ASCII; write others as %XX or as punycode"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidSetting("url", "a URL that cannot be read", "a URL such as https://erp.example/hook") from None
    if parts.scheme not in ("https", "http"):
        raise InvalidSetting("url", f"the scheme {parts.scheme[:20]!r}", "https, or http for hosts in webhook_allow")
    if "@" in parts.netloc:
        raise InvalidSetting("url", "a user name in the URL", "a URL without one; deliveries are signed")
    if port == 0:
        raise InvalidSetting("url", "port 0", "a port from 1 to 65535")
    host = _read_host(parts.hostname or "", is_bracketed="[" in parts.netloc)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(parts.scheme, host, port or (443 if parts.scheme == "https" else _PLAIN_PORT), path)


def _read_host(host: str, *, is_bracketed: bool) -> str:
    if is_bracketed:
        # A zone id (`%eth0`) chooses a network interface of this machine.
        address = _literal(host)
        if address is None or address.version != 6 or "%" in host:
            raise InvalidSetting("url", repr(host)[:80], "an IPv6 address without a zone")
        return str(address)
    name = host.removesuffix(".")
    if not _HOST.fullmatch(name):
        raise InvalidSetting("url", repr(host)[:80], "a host name")
    if _NUMBER.fullmatch(name.rpartition(".")[2]) and _literal(name) is None:
        # 2130706433, 0x7f.1 and 0177.0.0.1 are spellings of 127.0.0.1 that only some programs understand.
        raise InvalidSetting("url", repr(host)[:80], "an IPv4 address of four decimal numbers, or a host name")
    return name


class AllowList:
    """Hosts and networks that may be private: the setting `webhook_allow`, such as
    `erp.internal:8080, 10.20.0.0/16`; and the ports that all others may have: `webhook_ports`."""

    def __init__(self, allow: str, ports: str) -> None:
        self._ports = frozenset(_read_port("webhook_ports", one) for one in _listed(ports))
        self._hosts: dict[str, set[int]] = {}
        networks: list[Network] = []
        for entry in _listed(allow):
            network = _network(entry)
            if network is not None:
                networks.append(network)
                continue
            host, _, port = entry.rpartition(":") if _has_port(entry) else (entry, "", "")
            name = host.removeprefix("[").removesuffix("]").lower().removesuffix(".")
            if not _HOST.fullmatch(name) and _literal(name) is None:
                allowed = "hosts, host:port and networks such as 10.20.0.0/16, separated by commas"
                raise InvalidSetting("webhook_allow", repr(entry)[:80], allowed)
            literal = _literal(name)
            self._hosts.setdefault(str(literal or name), set()).update(
                {_read_port("webhook_allow", port)} if port else {*self._ports, _PLAIN_PORT}
            )
        self._networks = tuple(networks)

    def check_url(self, to: Destination) -> None:
        """Refuse a URL whose scheme, port or literal address is not allowed. `InvalidSetting`."""
        address = _literal(to.host)
        in_network = address is not None and self._is_in_network(address)
        if to.scheme != "https" and to.host not in self._hosts and not in_network:
            raise InvalidSetting("url", f"{to.origin}, which is not encrypted", "https, or a host in webhook_allow")
        ports = self._hosts.get(to.host) or (self._ports | {_PLAIN_PORT} if in_network else self._ports)
        if to.port not in ports:
            found, shown = f"port {to.port} of {to.host}", ", ".join(map(str, sorted(ports)))
            raise InvalidSetting("url", found, f"one of the ports {shown}, or `{to.host}:{to.port}` in webhook_allow")
        if address is not None:
            try:
                self.check_addresses(to, [to.host])
            except BlockedAddress as blocked:
                raise InvalidSetting("url", str(blocked), "a public address, or one in webhook_allow") from None

    def check_addresses(self, to: Destination, found: Sequence[str]) -> list[str]:
        """Return the addresses of a host, as the resolver gave them. Every one of them must be allowed.
        `BlockedAddress`."""
        checked: list[str] = []
        for text in found:
            address = _literal(text)
            if address is None or "%" in text:
                raise BlockedAddress(f"{to.host} has the address {text[:60]!r}, which cannot be checked")
            why = None if self._is_in_network(address) else why_blocked(address)
            if why is not None and not (to.host in self._hosts and why in _FOR_ALLOWED_HOSTS):
                raise BlockedAddress(f"{to.host} has the address {address}, which is {why} and not in webhook_allow")
            checked.append(str(address))
        if not checked:
            raise BlockedAddress(f"{to.host} has no address")
        return checked

    def _is_in_network(self, address: Address) -> bool:
        return any(address.version == one.version and address in one for one in self._networks)


def why_blocked(address: Address) -> str | None:
    """Return what kind of address this is, if it is not public; None for a public one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return "an IPv4 address written as IPv6"
        if address in _NAT64:
            return why_blocked(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    for network, why in _BLOCKED_NETWORKS:
        if address.version == network.version and address in network:
            return why
    if isinstance(address, ipaddress.IPv6Address) and address not in _PUBLIC_IPV6:
        return "not public"
    return None


def _literal(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry) if "/" in entry else None
    except ValueError:
        return None


def _has_port(entry: str) -> bool:
    return entry.rpartition(":")[2].isdigit() and (entry.count(":") == 1 or "]:" in entry)


def _read_port(setting: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65535):
        raise InvalidSetting(setting, f"the port {text[:20]!r}", "ports from 1 to 65535")
    return int(text)


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]
