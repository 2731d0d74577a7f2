"""Incoming webhooks: a signed delivery becomes jobs or ops runs, once, however often it is sent."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from detent.client.engine import Engine, EngineRef
from detent.client.job_verbs import unwrap
from detent.declare.enqueue import EnqueueOptions, new_job
from detent.declare.task import Call, check_seconds
from detent.errors import DetentError, InvalidInput, InvalidSetting, KeyConflict, WrongSignature
from detent.model import json_codec
from detent.model.records import Enqueued, NewJob
from detent.ops.ops_run import OpsRun
from detent.store.contract import Verbs
from detent.store.jobs.filters import JobSearch
from detent.webhooks.delivery import WebhookDelivery, read_data
from detent.webhooks.shared_secret import Secret, SharedSecret
from detent.webhooks.signatures import VERIFIERS, Verifier

__all__ = ["AcceptedDelivery", "IncomingWebhook", "Work", "WorkOf"]

log = logging.getLogger("detent.webhooks")

_SIZE_MAX = 1024 * 1024
_SIZE_LIMIT = 25 * 1024 * 1024
_ID_MAX = 200
_CALLS_MAX = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LOG_EVERY = 60.0

Work: TypeAlias = "Call[Any] | OpsRun | None"
WorkOf: TypeAlias = "Callable[[WebhookDelivery], Work | Iterable[Call[Any] | OpsRun]]"
"""The function of a webhook: it returns the calls to enqueue, or ops runs that it has queued."""


@dataclass(frozen=True, slots=True)
class AcceptedDelivery:
    """The outcome of a delivery: the ids of its jobs and of its ops runs. `created` is false if it was sent before.
    `reply` is the answer to a question of the provider; then there is nothing to do."""

    delivery_id: str
    jobs: tuple[int, ...] = ()
    runs: tuple[str, ...] = ()
    created: bool = False
    reply: dict[str, Any] | None = None


class IncomingWebhook:
    """A declared webhook: `POST /hooks/NAME` of the server, or `receive` in a server of your own."""

    def __init__(
        self,
        name: str,
        function: WorkOf,
        *,
        verify: str,
        secret: Secret | Sequence[Secret],
        size_max: int | None,
        key_ttl: float | None,
        tenant: str,
        engine: EngineRef,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            allowed = "up to 100 letters, digits, dots, dashes and underscores"
            raise InvalidInput("webhook", repr(name)[:80], allowed)
        if verify not in VERIFIERS:
            raise InvalidSetting("verify", repr(verify)[:80], ", ".join(VERIFIERS))
        if not callable(function) or inspect.iscoroutinefunction(function):
            allowed = "a plain function of the delivery: it only describes calls, and workers run them"
            raise InvalidInput("webhook", f"{function!r}"[:80], allowed)
        self.name = name
        self.function = function
        self.verifier: Verifier = VERIFIERS[verify]
        self.size_max = _SIZE_MAX if size_max is None else _checked_size(size_max)
        self.__doc__ = function.__doc__
        self._key_ttl = None if key_ttl is None else check_seconds("key_ttl", key_ttl)
        self._tenant = tenant
        self._secret = SharedSecret(name, secret, self.verifier.decode)
        self._engine = engine
        self._log_at = float("-inf")

    def __repr__(self) -> str:
        return f"<IncomingWebhook {self.name}>"

    def __call__(self, delivery: WebhookDelivery) -> Work | Iterable[Call[Any] | OpsRun]:
        """Run the function directly, without a delivery."""
        return self.function(delivery)

    @property
    def path(self) -> str:
        """The path under which the server takes deliveries."""
        return f"/hooks/{self.name}"

    @property
    def is_on(self) -> bool:
        """Whether it has a secret. Without one, every delivery is refused."""
        return bool(self._secret.keys)

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without a signature before its body is read. `WrongSignature`."""
        if not self.is_on or not headers.get(self.verifier.proof):
            self._refuse()

    def receive(self, headers: Mapping[str, str], body: bytes) -> AcceptedDelivery:
        """Check the signature of a delivery over its raw body, call the function, and enqueue what it returns.

        The jobs of a delivery are created in one transaction, with the delivery's id as their key. If the delivery is
        sent again, that finds the same jobs. `WrongSignature`; `InvalidInput` for a body that is too large or no JSON,
        and for a delivery without an id.
        """
        names = {name.lower(): value for name, value in headers.items()}
        self.check_headers(names)
        if len(body) > self.size_max:
            raise InvalidInput("body", f"{len(body)} bytes", f"at most {self.size_max} bytes")
        if not self.verifier.check(self._secret.keys, names, body, self._engine.clock().now()):
            self._refuse()
        data = read_data(names, body, depth_max=self._engine.settings.depth_max, forms=self.verifier.forms)
        reply = self.verifier.reply(data)
        if reply is not None:
            return AcceptedDelivery("", reply=reply)
        found = self.verifier.delivery_id(names, body, data)
        if found is None:
            raise InvalidInput("delivery", "no id", f"the id that {self.verifier.name} sends with each delivery")
        delivery = WebhookDelivery(
            webhook=self.name,
            id=json_codec.text(found, field="delivery id", bytes_max=_ID_MAX),
            event=json_codec.text(self.verifier.event(names, data), field="event", bytes_max=_ID_MAX, allow_empty=True),
            data=data,
            headers=names,
            body=body,
        )
        return self._accept(delivery, _listed(self.name, self.function(delivery)))

    def signed(self, body: bytes, delivery_id: str, event: str = "") -> dict[str, str]:
        """Return the headers with which the provider would send this body now. For tests."""
        if not self.is_on:
            raise InvalidInput("webhook", f"{self.name!r}, which has no secret here", "a webhook with a secret")
        now = self._engine.clock().now()
        headers = self.verifier.sign(self._secret.keys[0], body, delivery_id, event, now)
        return {"content-type": "application/json", **headers}

    def _refuse(self) -> None:
        """Log a refusal, at most once a minute, and refuse."""
        now = self._engine.clock().monotonic()
        if now >= self._log_at:
            self._log_at = now + _LOG_EVERY
            found = "a delivery without the right signature" if self.is_on else "a delivery, because it has no secret"
            log.warning("Webhook %s refused %s.", self.name, found)
        raise WrongSignature(self.name)

    def _accept(self, delivery: WebhookDelivery, work: Sequence[Call[Any] | OpsRun]) -> AcceptedDelivery:
        runs = [one for one in work if isinstance(one, OpsRun)]
        calls = [one for one in work if isinstance(one, Call)]
        jobs, is_new = self._enqueue(delivery, calls) if calls else ((), False)
        return AcceptedDelivery(
            delivery.id, jobs, tuple(run.id for run in runs), is_new or any(run.created for run in runs) or not work
        )

    def _enqueue(self, delivery: WebhookDelivery, calls: Sequence[Call[Any]]) -> tuple[tuple[int, ...], bool]:
        """Return the jobs of a delivery, and whether they are new.

        The first job decides: if its key is taken, the delivery was sent before, and nothing is created, even if the
        function returned other calls this time.
        """
        engine = self._engine.find()
        jobs = engine.prepared.number(
            [
                new_job(call, self._options(delivery, number), settings=engine.settings)
                for number, call in enumerate(calls)
            ]
        )

        def write(verbs: Verbs) -> tuple[list[Enqueued | DetentError], bool]:
            (first,) = verbs.job_enqueue(jobs[:1])
            is_ours = isinstance(first, Enqueued) and (first.created or first.job_id == jobs[0].id)
            rest = verbs.job_enqueue(jobs[1:]) if is_ours and len(jobs) > 1 else []
            for one in rest:
                unwrap(one)
            return [first, *rest], is_ours

        answers, is_new = engine.store.together(write)
        if not is_new:
            return self._known(engine, answers[0], jobs), False
        return tuple(unwrap(one).job_id for one in answers), True

    def _known(self, engine: Engine, first: Enqueued | DetentError, jobs: Sequence[NewJob]) -> tuple[int, ...]:
        """Return the jobs of a delivery that was sent before."""
        found = [first.job_id if isinstance(first, KeyConflict) else unwrap(first).job_id]
        for job in jobs[1:]:
            page = engine.store.job_list(JobSearch(tenant=self._tenant, key=job.key), limit=1)
            found += [row.id for row in page.rows]
        return tuple(found)

    def _options(self, delivery: WebhookDelivery, number: int) -> EnqueueOptions:
        key = f"webhook:{self.name}:{delivery.id}"
        return EnqueueOptions(
            key=f"{key}:{number}" if number else key,
            key_ttl=self._key_ttl,
            tenant=self._tenant,
            metadata={"webhook": self.name, "delivery_id": delivery.id, "event": delivery.event},
            correlation_id=delivery.id,
        )


def _checked_size(size_max: int) -> int:
    if isinstance(size_max, bool) or not isinstance(size_max, int) or not 1 <= size_max <= _SIZE_LIMIT:
        raise InvalidSetting("size_max", repr(size_max)[:80], f"a number of bytes from 1 to {_SIZE_LIMIT}")
    return size_max


def _listed(name: str, found: Any) -> list[Call[Any] | OpsRun]:
    """Return what the function of a webhook returned as a list. `TypeError` for anything but calls and ops runs."""
    if found is None:
        return []
    work = [found] if isinstance(found, Call | OpsRun) else list(found)
    if len(work) > _CALLS_MAX:
        raise TypeError(f"the function of webhook {name!r} returned {len(work)} calls; allowed: {_CALLS_MAX}")
    for one in work:
        if not isinstance(one, Call | OpsRun):
            kind = type(one).__name__
            raise TypeError(f"the function of webhook {name!r} returned a {kind}; allowed: calls, ops runs or None")
    return work
