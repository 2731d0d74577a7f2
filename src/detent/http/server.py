"""Serves the HTTP API with uvicorn, and stops cleanly while streams are open."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

from detent.app.detent import Detent
from detent.client.list_page import LIST_MAX
from detent.errors import InvalidInput
from detent.http.api import build_api
from detent.http.webhooks import log_webhooks

__all__ = ["Server", "check_address", "listen"]

log = logging.getLogger("detent.server")

_STOP_SECONDS_MAX = 2


def check_address(host: str) -> tuple[str, bool]:
    """Return the address to listen on, and whether only this machine can reach it. `InvalidInput`."""
    if host == "localhost":
        return "127.0.0.1", True
    try:
        return host, ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InvalidInput("host", repr(host)[:80], "an IP address of this machine, such as 127.0.0.1") from None


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address. `InvalidInput` if the port is taken."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit this. Otherwise the body of an answer waits 40 ms until the client acknowledges its headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InvalidInput("port", f"{port}: {error.strerror}", "a free port; `--port 0` takes any") from None
    return listener


class Server:
    """The HTTP API of an application on one address. Port 0 takes any free port.

    On a loopback address, requests without a token may do everything, unless `require_token` is true. On every other
    address, tokens are required. Requests without a token are recorded under `actor`, or the actor of the application.
    """

    def __init__(
        self,
        app: Detent,
        *,
        host: str = "127.0.0.1",
        port: int = 8321,
        hosts: Sequence[str] = (),
        require_token: bool = False,
        actor: str | None = None,
    ) -> None:
        self._app = app
        self._actor = app.settings.actor if actor is None else actor
        self._host, is_local = check_address(host)
        self._port = port
        is_any = ipaddress.ip_address(self._host).is_unspecified
        self._hosts = tuple(hosts) if is_any else (self._host, *hosts)
        self._tokens_required = require_token or not is_local

    def check_tokens(self) -> None:
        """Raise `InvalidInput` if tokens are required and none is usable: every request would be refused."""
        if self._tokens_required and not _has_usable_token(self._app):
            found = f"no usable token, which the address {self._host} or --require-token needs"
            raise InvalidInput("tokens", found, "at least one; create one with `detent tokens create NAME`")

    def run(self, *, ready: Callable[[str], None]) -> None:
        """Serve until a signal says stop (SIGINT or SIGTERM). `ready` is called with the URL once it answers."""
        self.check_tokens()
        with listen(self._host, self._port) as listener:
            api = build_api(
                self._app,
                hosts=self._hosts,
                actor=self._actor,
                tokens_required=self._tokens_required,
            )
            config = uvicorn.Config(
                api, log_config=None, access_log=False, timeout_graceful_shutdown=_STOP_SECONDS_MAX, server_header=False
            )
            log_webhooks(self._app)
            port = listener.getsockname()[1]
            shown = f"[{self._host}]" if ":" in self._host else self._host
            _Uvicorn(config, api.state.streams.stop, lambda: ready(f"http://{shown}:{port}")).run(sockets=[listener])


def _has_usable_token(app: Detent) -> bool:
    after: str | None = None
    while True:
        page = app.tokens.list(limit=LIST_MAX, after=after)
        if any(one.expires_at is None or one.expires_at > app.clock.now() for one in page):
            return True
        if (after := page.next) is None:
            return False


class _Uvicorn(uvicorn.Server):
    """Tells when it has started. On a signal it ends open streams, which would keep it from stopping, and itself."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None], started: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell."""
        await super().startup(sockets)
        self._tell_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop."""
        log.info("Signal %d: stopping.", sig)
        self._end_streams()
        self.should_exit = True
