"""What triggers ops runs from outside: a push that GitHub tells about.

Steps that know nothing of HTTP. `check_signature` says whether the body of a delivery was signed with the secret that
both sides know; `read_push` takes a body apart that was. `queue_push` then queues the run: a delivery that is sent
again, which GitHub does on request and proxies do on their own, answers the run that the first one queued.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from detent.errors import InvalidInput, InvalidSetting
from detent.model import jsondoor
from detent.ops.run import OpsRun
from detent.ops.runs import Ops

__all__ = ["Push", "check_signature", "queue_push", "read_push"]

_BODY_MAX = 25 * 1024 * 1024
_ID_MAX = 200
_REF_MAX = 1000
_DELETED = "0" * 40


def check_signature(secret: str | bytes, body: bytes, signature: str | None) -> bool:
    """Whether `signature`, the header `X-Hub-Signature-256`, is that of the body under the secret.

    Takes as long for a wrong one as for a right one. `InvalidSetting` for an empty secret, under which everybody could
    sign.
    """
    key = secret.encode() if isinstance(secret, str) else secret
    if not key:
        raise InvalidSetting("webhook secret", "nothing", "a secret that both sides know")
    expected = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or "").encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True)
class Push:
    """A push that somebody told us about, and that was checked to come from where it says."""

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
    """The push of a delivery whose signature was checked; None where it deletes a ref, so that there is nothing to run.

    `delivery_id` is the header `X-GitHub-Delivery`. `InvalidInput` names what is missing or is not what it should be.
    """
    if len(body) > _BODY_MAX:
        raise InvalidInput("body", f"{len(body)} bytes", f"at most {_BODY_MAX}")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("body", "bytes that are not UTF-8", "the JSON of a push") from None
    found = jsondoor.decode(text, field="body", depth_max=depth_max)
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
        delivery_id=jsondoor.text(delivery_id, field="delivery_id", bytes_max=_ID_MAX),
        repository=jsondoor.text(name, field="body.repository.full_name", bytes_max=_ID_MAX),
        ref=jsondoor.text(ref, field="body.ref", bytes_max=_REF_MAX),
        sha=jsondoor.text(sha, field="body.after", bytes_max=_ID_MAX),
        metadata=metadata,
    )


def queue_push(ops: Ops, push: Push, *, env: str, project_id: str | None = None) -> OpsRun:
    """Queue the run of a push, once for each delivery and environment. The project is the repository unless said."""
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
