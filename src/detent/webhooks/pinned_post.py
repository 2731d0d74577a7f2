"""Posts to an address that was checked: no redirects, no proxies, a limit for the whole time and for the answer.

The host is resolved once. The connection goes to a checked address; the `Host` header and the name in the certificate
are those of the URL.

`http.client` is loaded with the first post: with it, every start of a program that uses Detent would take longer.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from detent.model.clock import Clock
from detent.model.terminal_text import line
from detent.webhooks.destination import AllowList, Destination

if TYPE_CHECKING:
    import http.client

__all__ = ["Answer", "NoAnswer", "Resolver", "post_pinned", "resolve"]

ANSWER_MAX = 1024
_ADDRESSES_MAX = 4
_EXCERPT_SECONDS = 2.0

Resolver: TypeAlias = "Callable[[str, int], Sequence[str]]"
"""Returns the addresses of a host."""


class NoAnswer(Exception):
    """The other side could not be reached, or gave no answer in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer, and the beginning of its body as one line without control characters."""

    status: int
    excerpt: str


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system finds them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def post_pinned(
    to: Destination,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allow: AllowList,
    seconds: float,
    clock: Clock,
    resolver: Resolver = resolve,
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """Post a body, and return the answer whatever its status. `NoAnswer`, `BlockedAddress`, `InvalidSetting`."""
    import http.client

    allow.check_url(to)
    deadline = _Deadline(clock, seconds)
    try:
        found = resolver(to.host, to.port)
    except OSError as error:
        raise NoAnswer(f"{to.host} cannot be resolved: {error}") from None
    addresses = allow.check_addresses(to, found)
    try:
        with _connect(to, addresses, deadline, tls) as connection:
            return _exchange(to, connection, body, headers, deadline)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswer(f"no answer from {to.origin}: {str(error)[:200] or type(error).__name__}") from None


class _Deadline:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._until = clock.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left. `TimeoutError` if there are none."""
        left = self._until - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("the time limit for the whole delivery was exceeded")
        return left

    def within(self, seconds: float) -> _Deadline:
        """Return a deadline that is `seconds` from now, or this one if it is earlier."""
        return _Deadline(self._clock, min(self.left(), seconds))


class _TimedSocket(socket.socket):
    """A socket on which no read or write exceeds the deadline, however slowly the bytes come."""

    deadline: _Deadline

    def recv_into(self, *arguments: Any) -> int:
        self.settimeout(self.deadline.left())
        return super().recv_into(*arguments)

    def sendall(self, *arguments: Any) -> None:
        self.settimeout(self.deadline.left())
        super().sendall(*arguments)


class _TimedTls(ssl.SSLSocket):
    """The same, encrypted."""

    deadline: _Deadline

    def recv_into(self, *arguments: Any) -> int:
        self.settimeout(self.deadline.left())
        return super().recv_into(*arguments)

    def send(self, *arguments: Any) -> int:
        self.settimeout(self.deadline.left())
        return super().send(*arguments)


def _connect(
    to: Destination, addresses: Sequence[str], deadline: _Deadline, tls: ssl.SSLContext | None
) -> _TimedSocket | _TimedTls:
    """Connect to the first of these addresses that answers. They are literal, so nothing is resolved again."""
    failure: OSError = OSError("no address")
    for address in addresses[:_ADDRESSES_MAX]:
        plain = _TimedSocket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        plain.deadline = deadline
        try:
            plain.settimeout(deadline.left())
            plain.connect((address, to.port))
            return plain if to.scheme == "http" else _encrypt(plain, to.host, deadline, tls)
        except OSError as error:
            plain.close()
            failure = error
    raise failure


def _encrypt(plain: _TimedSocket, host: str, deadline: _Deadline, tls: ssl.SSLContext | None) -> _TimedTls:
    context = tls or ssl.create_default_context()
    context.sslsocket_class = _TimedTls
    plain.settimeout(deadline.left())
    wrapped = context.wrap_socket(plain, server_hostname=host)
    assert isinstance(wrapped, _TimedTls)
    wrapped.deadline = deadline
    return wrapped


def _exchange(
    to: Destination,
    connection: _TimedSocket | _TimedTls,
    body: bytes,
    headers: Mapping[str, str],
    deadline: _Deadline,
) -> Answer:
    import http.client

    request = http.client.HTTPConnection(to.host, to.port)
    request.auto_open = 0  # it must never connect by itself
    request.sock = connection
    request.request("POST", to.path, body, {"Host": to.origin.partition("//")[2], **headers, "Connection": "close"})
    answer = request.getresponse()
    connection.deadline = deadline.within(_EXCERPT_SECONDS)
    return Answer(answer.status, _excerpt(answer))


def _excerpt(answer: http.client.HTTPResponse) -> str:
    """Read at most 1 KiB of the answer. The status counts, so an answer that comes too slowly is cut short."""
    import http.client

    read = b""
    try:
        while len(read) < ANSWER_MAX and (part := answer.read1(ANSWER_MAX - len(read))):
            read += part
    except (OSError, http.client.HTTPException, ValueError):
        pass
    return line(" ".join(read.decode("utf-8", "replace").split()))
