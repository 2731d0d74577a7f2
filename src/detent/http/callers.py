"""Who sends a request: found by the token that it carries."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from datetime import datetime, timedelta

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from detent.app.detent import Detent
from detent.errors import DetentError
from detent.model.token_records import Role, TokenRow

__all__ = ["Caller", "Callers", "caller_of", "caller_still_valid"]

log = logging.getLogger("detent.server")

_KNOWN_FOR = 2.0
"""Seconds for which a token that was found valid is not looked up again."""
_KNOWN_MAX = 10_000
_USE_NOTED_EVERY = timedelta(minutes=1)


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a request. Changes go on record under its name."""

    name: str
    role: Role
    tenant: str | None = None
    """The only tenant that it reaches; None is all."""
    token_id: int | None = None
    """None if it sent no token, which a server on a loopback address may allow."""
    expires_at: datetime | None = None
    token_hash: str = ""


def caller_of(request: Request) -> Caller:
    """Return the caller of a request. Every request that reaches a route has one, except those to public paths."""
    caller: Caller = request.state.caller
    return caller


async def caller_still_valid(request: Request) -> bool:
    """Return whether the token of a request is still valid, for streams: ask every few seconds, and end the stream if
    it is not. All streams of one token share one look-up per two seconds."""
    caller = caller_of(request)
    callers: Callers = request.app.state.callers
    return caller.token_id is None or await callers.find(caller.token_hash) is not None


class Callers:
    """Finds callers by their tokens, and remembers valid ones for a moment."""

    def __init__(self, app: Detent, *, tokens_required: bool, open_name: str) -> None:
        self._app = app
        self.tokens_required = tokens_required
        self.open_caller = None if tokens_required else Caller(name=open_name, role="admin")
        """Who sends a request without a token; None if such a request is refused."""
        self._known: OrderedDict[str, tuple[float, Caller]] = OrderedDict()

    def now(self) -> datetime:
        """Return the time that decides whether a token has expired."""
        return self._app.clock.now()

    def is_known(self, token_hash: str) -> bool:
        """Return whether the token with this hash was found valid before, and not forgotten since."""
        return token_hash in self._known

    async def find(self, token_hash: str) -> Caller | None:
        """Return the caller whose token has this hash; None if there is none, or if it is no longer valid."""
        now = asyncio.get_running_loop().time()
        read_at, caller = self._known.get(token_hash, (now - _KNOWN_FOR, None))
        if now - read_at >= _KNOWN_FOR:
            row = await run_in_threadpool(self._look_up, token_hash)
            caller = None if row is None or row.revoked_at is not None else _caller(row, token_hash)
            self._remember(token_hash, now, caller)
        if caller is None or (caller.expires_at is not None and caller.expires_at <= self.now()):
            return None
        return caller

    def forget(self) -> None:
        """Look every token up again at its next use: one may have been revoked here."""
        self._known.clear()

    def _look_up(self, token_hash: str) -> TokenRow | None:
        row = self._app.store.token_find(token_hash)
        if row is not None and row.revoked_at is None:
            self._note_use(row)
        return row

    def _note_use(self, row: TokenRow) -> None:
        if row.last_used_at is not None and self.now() - row.last_used_at < _USE_NOTED_EVERY:
            return
        try:
            self._app.store.token_used(row.id)
        except DetentError as error:
            log.debug("Could not note that the token %s was used: %s", row.name, error)

    def _remember(self, token_hash: str, now: float, caller: Caller | None) -> None:
        self._known.pop(token_hash, None)
        if caller is not None:
            self._known[token_hash] = now, caller
            if len(self._known) > _KNOWN_MAX:
                self._known.popitem(last=False)


def _caller(row: TokenRow, token_hash: str) -> Caller:
    return Caller(
        name=row.name,
        role=row.role,
        tenant=row.tenant,
        token_id=row.id,
        expires_at=row.expires_at,
        token_hash=token_hash,
    )
