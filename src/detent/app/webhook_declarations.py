"""Declaring webhooks: `@app.webhook(...)` for incoming ones, `app.notify(...)` for outgoing ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from detent.app.registry import Registry
from detent.client.task import SendableTask
from detent.declare.limit import Limit
from detent.declare.settings import Settings
from detent.declare.task import Options
from detent.errors import InvalidInput
from detent.model.backoff import Retry
from detent.webhooks.announcements import Announcements
from detent.webhooks.destination import AllowList
from detent.webhooks.incoming import IncomingWebhook, WorkOf
from detent.webhooks.outgoing import DELIVERY_TASK, OutgoingWebhook, TaskName, deliver
from detent.webhooks.shared_secret import Secret

__all__ = ["WebhookDeclarations"]

_QUEUE = "webhooks"
_RETRY = Retry(12, base=5.0, factor=3.0, cap=6 * 3600.0)
"""Thirteen attempts in about a day."""
_PER_TARGET = 2
"""Deliveries to one target that run at once. A receiver that hangs holds no more slots of workers than that."""
_TIMEOUT = 15.0
_TIMEOUT_MAX = 60.0


class WebhookDeclarations:
    """What an application declares about webhooks."""

    settings: Settings
    _registry: Registry

    def _declare(
        self, function: Callable[..., Any], name: str | None, aliases: Sequence[str], options: Options
    ) -> SendableTask[..., Any, Any]:
        raise NotImplementedError

    def webhook(
        self,
        name: str,
        /,
        *,
        secret: Secret | Sequence[Secret],
        verify: str = "standard",
        size_max: int | None = None,
        key_ttl: float | None = None,
        tenant: str = "",
    ) -> Callable[[WorkOf], IncomingWebhook]:
        """Declare an incoming webhook: `@app.webhook("github-push", secret="env:GITHUB_SECRET", verify="github")` above
        a function that takes a `WebhookDelivery` and returns calls to enqueue: one, a list, or None. The function may
        also queue ops runs and return them. `detent server` takes deliveries at `POST /hooks/github-push`.

        - `secret`: a text, bytes, `env:NAME` for an environment variable, or a function that returns the secret; it is
          read once, when the server starts. A list accepts each of them, while a secret is rotated. If the variable is
          not set, the webhook is off.
        - `verify`: how the provider signs: github, gitlab, stripe, slack, shopify or standard (Standard Webhooks).
        - `size_max`: maximum size of a body in bytes; default 1 MiB, at most 25 MiB.
        - `key_ttl`: seconds for which the id of a delivery is kept; default: for ever. A delivery that is sent again
          later than that creates new jobs.
        - `tenant`: tenant of the jobs.

        The id of a delivery is the key of its jobs, so a delivery that is sent again creates nothing. `InvalidInput` if
        the name is taken, `InvalidSetting` for an empty secret and an option out of range.
        """

        def declare(function: WorkOf) -> IncomingWebhook:
            declared = IncomingWebhook(
                name,
                function,
                verify=verify,
                secret=secret,
                size_max=size_max,
                key_ttl=key_ttl,
                tenant=tenant,
                engine=self._registry.engine_ref,
            )
            if name in self._registry.webhooks:
                raise InvalidInput("webhook", f"the name {name!r} twice", "one webhook for each name")
            self._registry.webhooks[name] = declared
            return declared

        return declare

    @property
    def incoming_webhooks(self) -> Mapping[str, IncomingWebhook]:
        """Declared incoming webhooks by name."""
        return dict(self._registry.webhooks)

    def notify(
        self,
        name: str,
        url: str,
        *,
        secret: Secret | Sequence[Secret],
        on: Sequence[str] = ("job.failed", "job.quarantined"),
        tasks: Sequence[TaskName] = (),
        timeout: float = _TIMEOUT,
    ) -> None:
        """Declare a target that is told of events: `app.notify("erp", "https://erp.example/hook",
        secret="env:ERP_SECRET", on=("job.quarantined", "run.*", "alert.*"))`. Deliveries are signed by the rules of
        Standard Webhooks.

        - `url`: https, unless the setting `webhook_allow` has the host; or `env:NAME`. A host with an address that is
          not public is refused at each delivery, unless `webhook_allow` has it.
        - `secret`: `whsec_…`, or `env:NAME` or a function for one. If it is a list, each of them signs.
        - `on`: types of events: `job.failed`, `job.quarantined`, `run.…`, `alert.…`; `run.*` is all of a kind.
          `job.succeeded`, which needs `tasks`, and `job.cancelled` must be named; `job.*` does not stand for them.
        - `tasks`: tasks, or their names, whose jobs count; default: all. Runs and alerts always count.
        - `timeout`: time limit of a delivery in seconds.

        Each event is delivered by a job of the task `detent.webhook` in the queue `webhooks`, with retries for about a
        day, under an id that stays the same. Workers of this application enqueue the deliveries. A new target is told
        of what happens after the first of them has started. `InvalidInput` if the name is taken or a type is unknown,
        `InvalidSetting` for a URL or a secret that is refused.
        """
        if not 0 < timeout <= _TIMEOUT_MAX:
            raise InvalidInput("timeout", repr(timeout)[:80], f"up to {_TIMEOUT_MAX:g} seconds")
        targets = self._registry.targets
        target = OutgoingWebhook(
            name,
            url,
            on=on,
            tasks=tasks,
            secret=secret,
            timeout=timeout,
            allow=AllowList(self.settings.webhook_allow, self.settings.webhook_ports),
            engine=self._registry.engine_ref,
        )
        if name in targets:
            raise InvalidInput("target", f"the name {name!r} twice", "one target for each name")
        if not targets:
            options = Options(
                queue=_QUEUE,
                retry=_RETRY,
                timeout=2 * _TIMEOUT_MAX,
                limit=Limit(concurrency=_PER_TARGET),
                limit_key=lambda target: f"{DELIVERY_TASK}:{target}",
            )
            self._declare(deliver(targets), DELIVERY_TASK, (), options)
        targets[name] = target

    @property
    def announcements(self) -> Announcements | None:
        """What enqueues the deliveries of outgoing webhooks; None if no target is declared. For workers."""
        if not self._registry.targets:
            return None
        tasks = self._registry.tasks
        return Announcements(self._registry.engine_ref, self._registry.targets, lambda: tasks[DELIVERY_TASK])
