"""How each provider signs its deliveries: checking a signature, and making one for tests.

A signature covers the raw bytes of the body, so it is checked before the body is parsed. All comparisons take constant
time. Stripe, Slack and Standard Webhooks sign the time too: a delivery that was signed more than five minutes ago, or
ahead, is refused. The others do not, so only the id of the delivery protects against a replay.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

__all__ = ["VERIFIERS", "StandardWebhooks", "Verifier"]

WINDOW = 300.0
"""Maximum number of seconds between the time that was signed and now."""
_DIGITS_MAX = 12
_SIGNATURES_MAX = 20


class Verifier(Protocol):
    """How one provider signs. Names of headers are in lower case."""

    name: str
    proof: str
    """The header with the signature. A request without it is refused before its body is read."""
    forms: bool
    """Whether bodies may be forms."""

    def decode(self, secret: bytes) -> bytes:
        """Return the key of a secret as the provider shows it. `ValueError`."""
        ...

    def check(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        """Whether one of the keys has signed this body, and not too long ago."""
        ...

    def delivery_id(self, headers: Mapping[str, str], body: bytes, data: Any) -> str | None:
        """Return the id that is the same if the delivery is sent again: from what is signed, if it is there."""
        ...

    def event(self, headers: Mapping[str, str], data: Any) -> str:
        """Return the name of what has happened; an empty text if the provider names none."""
        ...

    def reply(self, data: Any) -> dict[str, Any] | None:
        """Return the answer to a question of the provider; None for an ordinary delivery."""
        ...

    def sign(self, key: bytes, body: bytes, delivery_id: str, event: str, now: datetime) -> dict[str, str]:
        """Return the headers of a delivery with this body."""
        ...


class _Common:
    forms = False

    def decode(self, secret: bytes) -> bytes:
        return secret

    def reply(self, data: Any) -> dict[str, Any] | None:
        return None


class GitHub(_Common):
    """`X-Hub-Signature-256: sha256=…` over the body. The SHA-1 of `X-Hub-Signature` does not count."""

    name = "github"
    proof = "x-hub-signature-256"

    def check(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        return _any_equal([f"sha256={_hex(key, body)}" for key in keys], [headers.get(self.proof, "")])

    def delivery_id(self, headers: Mapping[str, str], body: bytes, data: Any) -> str | None:
        return headers.get("x-github-delivery")

    def event(self, headers: Mapping[str, str], data: Any) -> str:
        return headers.get("x-github-event", "")

    def sign(self, key: bytes, body: bytes, delivery_id: str, event: str, now: datetime) -> dict[str, str]:
        signature = f"sha256={_hex(key, body)}"
        return {self.proof: signature, "x-github-delivery": delivery_id, "x-github-event": event}


class GitLab(_Common):
    """`X-Gitlab-Token`: the secret itself, without a signature. The id is `Idempotency-Key`, or in older versions
    `X-Gitlab-Event-UUID`."""

    name = "gitlab"
    proof = "x-gitlab-token"

    def check(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        # Digests have one length, so the time of the comparison does not tell the length of the secret.
        # Servers read headers as Latin-1.
        given = hashlib.sha256(headers.get(self.proof, "").encode("latin-1", "replace")).hexdigest()
        return _any_equal([hashlib.sha256(key).hexdigest() for key in keys], [given])

    def delivery_id(self, headers: Mapping[str, str], body: bytes, data: Any) -> str | None:
        return headers.get("idempotency-key") or headers.get("x-gitlab-event-uuid")

    def event(self, headers: Mapping[str, str], data: Any) -> str:
        return headers.get("x-gitlab-event", "")

    def sign(self, key: bytes, body: bytes, delivery_id: str, event: str, now: datetime) -> dict[str, str]:
        return {self.proof: key.decode("latin-1"), "x-gitlab-event-uuid": delivery_id, "x-gitlab-event": event}


class Stripe(_Common):
    """`Stripe-Signature: t=…,v1=…` over `t.body`. The id is that of the event in the body."""

    name = "stripe"
    proof = "stripe-signature"

    def check(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        parts = [part.strip().partition("=")[::2] for part in headers.get(self.proof, "").split(",")]
        times = [value for name, value in parts if name == "t"]
        given = [value for name, value in parts if name == "v1"]
        if len(times) != 1 or not _is_recent(times[0], now):
            return False
        signed = times[0].encode() + b"." + body
        return _any_equal([_hex(key, signed) for key in keys], given)

    def delivery_id(self, headers: Mapping[str, str], body: bytes, data: Any) -> str | None:
        return _member(data, "id")

    def event(self, headers: Mapping[str, str], data: Any) -> str:
        return _member(data, "type") or ""

    def sign(self, key: bytes, body: bytes, delivery_id: str, event: str, now: datetime) -> dict[str, str]:
        time = _seconds(now)
        return {self.proof: f"t={time},v1={_hex(key, time.encode() + b'.' + body)}"}


class Slack(_Common):
    """`X-Slack-Signature: v0=…` over `v0:time:body`. The id is `event_id` or `trigger_id` of the body. A request that
    has neither is known by its signature. Slack asks for an answer to `url_verification`."""

    name = "slack"
    proof = "x-slack-signature"
    forms = True
    _time = "x-slack-request-timestamp"

    def check(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        time = headers.get(self._time, "")
        if not _is_recent(time, now):
            return False
        signed = b"v0:" + time.encode() + b":" + body
        return _any_equal([f"v0={_hex(key, signed)}" for key in keys], [headers.get(self.proof, "")])

    def delivery_id(self, headers: Mapping[str, str], body: bytes, data: Any) -> str | None:
        found = _member(data, "event_id") or _member(data, "trigger_id")
        return found or hashlib.sha256(headers[self._time].encode() + b":" + body).hexdigest()

    def event(self, headers: Mapping[str, str], data: Any) -> str:
        inner = data.get("event") if isinstance(data, dict) else None
        return _member(inner, "type") or _member(data, "command") or _member(data, "type") or ""

    def reply(self, data: Any) -> dict[str, Any] | None:
        if _member(data, "type") != "url_verification":
            return None
        return {"challenge": _member(data, "challenge") or ""}

    def sign(self, key: bytes, body: bytes, delivery_id: str, event: str, now: datetime) -> dict[str, str]:
        time = _seconds(now)
        return {self.proof: f"v0={_hex(key, b'v0:' + time.encode() + b':' + body)}", self._time: time}


class Shopify(_Common):
    """`X-Shopify-Hmac-Sha256`, in base64, over the body."""

    name = "shopify"
    proof = "x-shopify-hmac-sha256"

    def check(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        return _any_equal([_base64(key, body) for key in keys], [headers.get(self.proof, "")])

    def delivery_id(self, headers: Mapping[str, str], body: bytes, data: Any) -> str | None:
        return headers.get("x-shopify-webhook-id")

    def event(self, headers: Mapping[str, str], data: Any) -> str:
        return headers.get("x-shopify-topic", "")

    def sign(self, key: bytes, body: bytes, delivery_id: str, event: str, now: datetime) -> dict[str, str]:
        return {self.proof: _base64(key, body), "x-shopify-webhook-id": delivery_id, "x-shopify-topic": event}


class StandardWebhooks(_Common):
    """Standard Webhooks: `webhook-signature: v1,…` over `id.time.body`, so the id is signed too. Detent signs its own
    deliveries in the same way. A secret begins with `whsec_`, and the rest is base64."""

    name = "standard"
    proof = "webhook-signature"
    _id, _time, _prefix = "webhook-id", "webhook-timestamp", b"whsec_"

    def decode(self, secret: bytes) -> bytes:
        try:
            found = base64.b64decode(secret.removeprefix(self._prefix), validate=True)
        except binascii.Error:
            found = b""
        if not found:
            raise ValueError("a secret that is not base64 after `whsec_`")
        return found

    def check(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        delivery_id, time = headers.get(self._id, ""), headers.get(self._time, "")
        # A dot in the id could shift the border between what is signed as id, as time and as body.
        if not delivery_id or "." in delivery_id or not _is_recent(time, now):
            return False
        given = [one.removeprefix("v1,") for one in headers.get(self.proof, "").split() if one.startswith("v1,")]
        signed = _encoded(delivery_id) + b"." + time.encode() + b"." + body
        return _any_equal([_base64(key, signed) for key in keys], given)

    def delivery_id(self, headers: Mapping[str, str], body: bytes, data: Any) -> str | None:
        return headers.get(self._id)

    def event(self, headers: Mapping[str, str], data: Any) -> str:
        return _member(data, "type") or ""

    def sign(self, key: bytes, body: bytes, delivery_id: str, event: str, now: datetime) -> dict[str, str]:
        time = _seconds(now)
        signature = _base64(key, _encoded(delivery_id) + b"." + time.encode() + b"." + body)
        return {self._id: delivery_id, self._time: time, self.proof: f"v1,{signature}"}


VERIFIERS: dict[str, Verifier] = {
    one.name: one for one in (GitHub(), GitLab(), Stripe(), Slack(), Shopify(), StandardWebhooks())
}
"""The providers by name."""


def _hex(key: bytes, signed: bytes) -> str:
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def _base64(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _any_equal(expected: Iterable[str], given: Sequence[str]) -> bool:
    """Whether one of the given signatures is one of the expected ones. All of them are compared, in constant time."""
    equal = False
    for right in expected:
        for one in given[:_SIGNATURES_MAX]:
            equal |= hmac.compare_digest(right.encode(), _encoded(one))
    return equal


def _is_recent(time: str, now: datetime) -> bool:
    """Whether a time, in whole seconds since 1970, is at most five minutes away from now."""
    if not (time.isascii() and time.isdigit() and len(time) <= _DIGITS_MAX):
        return False
    return abs(now.timestamp() - int(time)) <= WINDOW


def _seconds(now: datetime) -> str:
    return str(int(now.timestamp()))


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _member(data: Any, name: str) -> str | None:
    """Return a text in a JSON object; None if there is none."""
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, str) and found else None
