"""Outgoing webhooks: targets that are told of events, by ordinary jobs with retries.

A delivery job names its target and carries the event. The worker takes URL and secret from the declaration, so neither
is stored. The id of a delivery is the same in every attempt: the receiver can ignore what it has seen.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from detent.client.engine import EngineRef
from detent.declare.context import Context
from detent.declare.settings import inherited_environment
from detent.declare.signals import Fatal
from detent.declare.task import Task, check_seconds
from detent.errors import DetentError, InvalidInput, InvalidSetting
from detent.webhooks.destination import AllowList, BlockedAddress, Destination, read_url
from detent.webhooks.events import Event, check_patterns
from detent.webhooks.pinned_post import NoAnswer, Resolver, post_pinned, resolve
from detent.webhooks.shared_secret import Secret, SharedSecret
from detent.webhooks.signatures import StandardWebhooks

__all__ = ["DELIVERY_TASK", "DeliveryFailed", "OutgoingWebhook", "TaskName"]

DELIVERY_TASK = "detent.webhook"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ENVIRONMENT = "env:"
_GONE = 410
_STANDARD = StandardWebhooks()

TaskName: TypeAlias = "str | Task[..., Any, Any]"


class DeliveryFailed(DetentError):
    """The receiver of an outgoing webhook did not accept a delivery."""


class OutgoingWebhook:
    """A target of events."""

    resolver: Resolver = staticmethod(resolve)
    """Finds the addresses of a host. Tests replace it."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        on: Sequence[str],
        tasks: Sequence[TaskName],
        secret: Secret | Sequence[Secret],
        timeout: float,
        allow: AllowList,
        engine: EngineRef,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput("target", repr(name)[:80], "up to 100 letters, digits, dots, dashes and underscores")
        self.name = name
        self.events = frozenset(check_patterns(on))
        self.tasks = frozenset(one.name if isinstance(one, Task) else one for one in tasks)
        if "job.succeeded" in self.events and not self.tasks:
            raise InvalidInput(
                "tasks", "none, for job.succeeded", "the tasks whose successes are told: each becomes a delivery"
            )
        self.timeout = check_seconds("timeout", timeout)
        self._secret = SharedSecret(name, secret, _STANDARD.decode)
        self._allow = allow
        self._engine = engine
        self._url = url
        if not (isinstance(url, str) and url.startswith(_ENVIRONMENT)):
            self._allow.check_url(read_url(url))

    def __repr__(self) -> str:
        return f"<OutgoingWebhook {self.name}>"

    @property
    def destination(self) -> Destination:
        """The URL, taken apart. `InvalidSetting`."""
        url: str | None = self._url
        if self._url.startswith(_ENVIRONMENT):
            variable = self._url.removeprefix(_ENVIRONMENT)
            url = inherited_environment([variable]).get(variable)
            if not url:
                found = f"the environment variable {variable}, which is not set"
                raise InvalidSetting("url", found, f"the URL of target {self.name!r}")
        return read_url(str(url))

    @property
    def origin(self) -> str:
        """Its URL without the path, which may hold a secret; empty if the URL is missing here."""
        try:
            return self.destination.origin
        except InvalidSetting:
            return ""

    @property
    def is_on(self) -> bool:
        """Whether it has its secret and its URL here."""
        return bool(self._secret.keys) and bool(self.origin)

    @property
    def reads_record(self) -> bool:
        """Whether it asks for events that are on record: of runs and alerts, and changes of jobs."""
        return any(one not in ("job.failed", "job.quarantined") for one in self.events)

    @property
    def announced_tasks(self) -> frozenset[str]:
        """The tasks whose successes it is told of."""
        return self.tasks if "job.succeeded" in self.events else frozenset()

    def wants(self, event: Event) -> bool:
        """Whether this target is told of an event. Deliveries themselves are no events."""
        if event.type not in self.events or event.task == DELIVERY_TASK:
            return False
        return event.task is None or not self.tasks or event.task in self.tasks

    def delivery_id(self, event: Event, identity: str) -> str:
        """Return the id of the delivery of an event: different for each database and target."""
        text = "\n".join((identity, self.name, event.source))
        return f"msg_{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def send(self, delivery_id: str, event: dict[str, Any]) -> dict[str, Any]:
        """Sign and post an event, and return the status and the beginning of the answer. `DeliveryFailed`, `Fatal`."""
        if not self._secret.keys:
            raise DeliveryFailed(f"target {self.name!r} has no secret in this worker, so nothing was sent")
        clock = self._engine.clock()
        body = msgspec.json.encode(event)
        signed = [_STANDARD.sign(key, body, delivery_id, "", clock.now()) for key in self._secret.keys]
        headers = {
            **signed[0],
            _STANDARD.proof: " ".join(one[_STANDARD.proof] for one in signed),
            "content-type": "application/json",
            "user-agent": "detent",
        }
        try:
            answer = post_pinned(
                self.destination,
                body,
                headers,
                allow=self._allow,
                seconds=self.timeout,
                clock=clock,
                resolver=self.resolver,
            )
        except (NoAnswer, BlockedAddress, InvalidSetting) as error:
            raise DeliveryFailed(str(error)) from None
        if 200 <= answer.status < 300:
            return {"status": answer.status, "answer": answer.excerpt}
        said = f"target {self.name!r} answered {answer.status}: {answer.excerpt}".rstrip(": ")
        if answer.status == _GONE:
            raise Fatal(f"{said}; it wants no more deliveries")
        raise DeliveryFailed(f"{said} (redirects are not followed)" if 300 <= answer.status < 400 else said)


def deliver(targets: dict[str, OutgoingWebhook]) -> Any:
    """Return the function of the delivery task."""

    def deliver_event(ctx: Context, target: str, id: str, event: dict[str, Any]) -> dict[str, Any]:
        """Deliver an event to a target of `app.notify`."""
        if target not in targets:
            raise DeliveryFailed(f"no target {target!r} is declared in this worker; declare it, or discard the job")
        return targets[target].send(id, event)

    return deliver_event
