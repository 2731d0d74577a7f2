"""Ops runs triggered by GitHub: reading the webhook of a push.

These functions know nothing of HTTP. `check_signature` checks the signature of a delivery, `read_push` reads its body,
and `queue_push` queues the run. A delivery that is sent again, by GitHub or by a proxy, finds the run that the first
one queued.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from detent.errors import InvalidInput, InvalidSetting
from detent.model import json_codec
from detent.ops.ops import Ops
from detent.ops.ops_run import OpsRun

__all__ = ["Push", "check_signature", "queue_push", "read_push"]

_BODY_MAX = 25 * 1024 * 1024
_ID_MAX = 200
_REF_MAX = 1000
_DELETED = "0" * 40


def check_signature(secret: str | bytes, body: bytes, signature: str | None) -> bool:
    """Whether `signature`, the header `X-Hub-Signature-256`, is that of the body under the secret.

    The comparison takes constant time. `InvalidSetting` for an empty secret, with which anyone could sign.
    """
    key = secret.encode() if isinstance(secret, str) else secret
    if not key:
        raise InvalidSetting("webhook secret", "an empty secret", "the secret that was set for the webhook in GitHub")
    expected = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or "").encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True)
class Push:
    """A push from a delivery whose signature was checked."""

    delivery_id: str
    repository: str
    ref: str
    sha: str
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def branch(self) -> str | None:
        """The branch that was pushed to; None for a tag."""
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else None


def read_push(delivery_id: str, body: bytes, *, depth_max: int = 64) -> Push | None:
    """Return the push of a delivery whose signature was checked; None if it deletes a ref, so that there is nothing to
    run.

    `delivery_id` is the header `X-GitHub-Delivery`. `InvalidInput` names the part that is missing or wrong.
    """
    if len(body) > _BODY_MAX:
        raise InvalidInput("body", f"{len(body)} bytes", f"at most {_BODY_MAX}")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("body", "bytes that are not UTF-8", "the JSON of a push") from None
    found = json_codec.decode(text, field="body", depth_max=depth_max)
    repository = _part(_part({"body": found}, "body", dict, "body"), "repository", dict, "body.repository")
    name = _part(repository, "full_name", str, "body.repository.full_name")
    ref, sha = _part(found, "ref", str, "body.ref"), _part(found, "after", str, "body.after")
    if found.get("deleted") is True or sha == _DELETED:
        return None
    pusher = found.get("pusher")
    metadata: dict[str, Any] = {"trigger": "webhook", "delivery_id": delivery_id}
    if isinstance(pusher, dict) and isinstance(pusher.get("name"), str):
        metadata["author"] = pusher["name"][:_ID_MAX]
    return Push(
        delivery_id=json_codec.text(delivery_id, field="delivery_id", bytes_max=_ID_MAX),
        repository=json_codec.text(name, field="body.repository.full_name", bytes_max=_ID_MAX),
        ref=json_codec.text(ref, field="body.ref", bytes_max=_REF_MAX),
        sha=json_codec.text(sha, field="body.after", bytes_max=_ID_MAX),
        metadata=metadata,
    )


def queue_push(ops: Ops, push: Push, *, env: str, project_id: str | None = None) -> OpsRun:
    """Queue the run of a push, once per delivery and environment. By default the project is the repository."""
    return ops.queue(
        push.repository if project_id is None else project_id,
        env,
        git_sha=push.sha,
        git_ref=push.ref,
        metadata=push.metadata,
        key=f"push:{push.delivery_id}:{env}",
    )


def _part(whole: Any, name: str, kind: type[Any], field: str) -> Any:
    value = whole.get(name)
    if not isinstance(value, kind) or value == "":
        allowed = "an object" if kind is dict else "a text"
        raise InvalidInput(field, "nothing" if value in (None, "") else f"a {type(value).__name__}", allowed)
    return value
