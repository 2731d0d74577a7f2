"""Tokens of signals: what a link or a callback carries, so that its holder may send one signal to a workflow.

A token names the job, the signal and its own place in the workflow, and is signed. Nothing is stored until it is used.
It also names the identity of the database when the job was enqueued: two copies of a database have the same secret, and
give the same ids to different jobs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

import msgspec

from detent.errors import WrongToken

__all__ = ["SignalToken", "read_token"]

_PREFIX = "dts_"
_PURPOSE = b"detent signal token 1\0"
_SIGNATURE = 20
"""Bytes of the signature, an HMAC-SHA256 that is cut off: 160 bits."""
_LETTERS_MAX = 4000
_IDENTITY_LETTERS = 8
"""Letters of the identity of a database. Few are enough: there are as many as the database had restores and copies."""


class SignalToken(msgspec.Struct, frozen=True, array_like=True):
    """The right to send one signal to a workflow. `path` is where the workflow has made it."""

    job_id: int
    generation: int
    signal: str
    path: str
    next_wait_only: bool = False
    identity: str = ""

    @classmethod
    def of(
        cls, job_id: int, generation: int, signal: str, path: str, next_wait_only: bool, identity: str
    ) -> SignalToken:
        """Return the token of a job that was enqueued under this identity of its database."""
        return cls(job_id, generation, signal, path, next_wait_only, identity[:_IDENTITY_LETTERS])

    def is_of(self, identity: str) -> bool:
        """Whether its job was enqueued under this identity."""
        return self.identity == identity[:_IDENTITY_LETTERS]

    def text(self, key: bytes) -> str:
        """Return the token, signed with the secret of the database. It is safe in URLs."""
        body = msgspec.msgpack.encode(self)
        return _PREFIX + _as_text(body + _signature(key, body))

    @property
    def dedupe(self) -> str:
        """What makes its signal one and the same, however often it is sent."""
        return f"token:{hashlib.sha256(msgspec.msgpack.encode(self)).hexdigest()[:32]}"


def read_token(text: object, key: bytes) -> SignalToken:
    """Return what a token says. `WrongToken` if it was not signed with this secret."""
    if not isinstance(text, str) or len(text) > _LETTERS_MAX or not text.startswith(_PREFIX):
        raise WrongToken
    letters = text.removeprefix(_PREFIX)
    try:
        found = base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
    except (ValueError, binascii.Error):
        raise WrongToken from None
    body, signature = found[:-_SIGNATURE], found[-_SIGNATURE:]
    if not hmac.compare_digest(signature, _signature(key, body)) or _as_text(found) != letters:
        raise WrongToken
    try:
        return msgspec.msgpack.decode(body, type=SignalToken)
    except msgspec.DecodeError:
        raise WrongToken from None


def _signature(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + body, "sha256")[:_SIGNATURE]


def _as_text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
