"""Ops runs triggered by GitHub: reading the webhook of a push.

`read_push` reads a delivery that an incoming webhook has checked, and `queue_push` queues the run. A delivery that is
sent again, by GitHub or by a proxy, finds the run that the first one queued.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from detent.errors import InvalidInput
from detent.model import json_codec
from detent.ops.ops import Ops
from detent.ops.ops_run import OpsRun

__all__ = ["Push", "queue_push", "read_push"]

_ID_MAX = 200
_REF_MAX = 1000
_DELETED = "0" * 40


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


def read_push(delivery_id: str, data: Any) -> Push | None:
    """Return the push of a delivery whose signature was checked; None if it deletes a ref, so that there is nothing to
    run. `InvalidInput` names the part that is missing or wrong.

    In the function of a webhook: `read_push(delivery.id, delivery.data)`.
    """
    found = data
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
