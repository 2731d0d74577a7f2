"""Redeeming tokens of signals: what `ctx.token` made, and a link or a callback brought back."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from detent.client.job_verbs import unwrap
from detent.client.workflow_verbs import new_signal, signal_job
from detent.declare.settings import Settings
from detent.errors import JobEnded, KeyConflict, NotFound, TokenUsed, WrongToken
from detent.model.signal_token import SignalToken, read_token
from detent.model.workflow_records import SignalSent
from detent.store.contract import Store
from detent.store.jobs.identities import Identities

__all__ = ["TokenFacts", "look_at_token", "redeem_token"]

_ENDED = ("succeeded", "failed", "cancelled")


class TokenFacts(Struct, frozen=True):
    """What the holder of a token may know before using it."""

    signal: str
    job_id: int
    task: str


def _read(store: Store, text: str) -> SignalToken:
    """Return what a token says. `WrongToken` if it was not made here, or for a job that a restore has taken away."""
    token = read_token(text, store.signing_key())
    # Not as the store remembers them: this program may have been there before the restore.
    if not token.is_of(Identities(lambda: store.name, store.identity_list).of(token.job_id)):
        raise WrongToken
    return token


def look_at_token(store: Store, text: str) -> TokenFacts:
    """Return what a token is for, and change nothing. `WrongToken`, `JobEnded`, `NotFound`."""
    token = _read(store, text)
    (row,) = store.job_get([token.job_id])
    if row is None:
        raise NotFound("job", str(token.job_id))
    if row.state in _ENDED:
        raise JobEnded(row.id, row.state)
    return TokenFacts(token.signal, row.id, row.task)


def redeem_token(
    store: Store, text: str, payload: Any, actor: str | None, reason: str | None, settings: Settings
) -> SignalSent:
    """Send the signal of a token, once. `WrongToken`, `TokenUsed`, `WaitOver`, `JobEnded`, `MailboxFull`, `NotFound`,
    `InvalidPayload`."""
    token = _read(store, text)
    signal = new_signal(token.job_id, token.signal, payload, token.dedupe, actor, reason, settings)
    try:
        if token.next_wait_only:
            return unwrap(store.signal_redeem(signal, token.generation, token.path))
        return signal_job(store, signal)
    except KeyConflict:
        raise TokenUsed(token.job_id, token.signal) from None
