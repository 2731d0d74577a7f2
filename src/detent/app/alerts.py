"""`app.alerts`: alerts, their policies, and where they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from msgspec.structs import replace

from detent.alerts.delivery import sinks_of
from detent.alerts.evaluation import evaluate_and_deliver
from detent.alerts.policies import check_policy, in_force
from detent.alerts.sink_options import sink_options
from detent.alerts.sinks import Outcome
from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import unwrap
from detent.client.list_page import ListPage, check_limit
from detent.declare.running_attempt import running_attempt
from detent.errors import InvalidInput, NotFound
from detent.model import json_codec
from detent.model.alert_records import AlertPlace, AlertRow, DeliveryRow, Each, Measure, Notice, Policy, Severity
from detent.model.clock import from_micros, to_micros
from detent.model.records import Moved
from detent.views.redaction import redact_told

__all__ = ["Alerts", "Policies"]

_JUDGED_EVERY = 15.0
_STATES = ("firing", "resolved")
_NEW: dict[str, Any] = {
    "each": "whole",
    "severity": "warning",
    "threshold": None,
    "window_seconds": 0.0,
    "count_min": 0,
    "calm_seconds": 300.0,
    "message": "{value} of {scope} is beyond {threshold}",
}


class Alerts:
    """The alerts on record, such as `dead_letters_many` or `breaker_open/limit:shop`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def policies(self) -> Policies:
        """The policies that decide when an alert fires."""
        return Policies(self._engine)

    def list(self, *, state: str | None = None, limit: int = 100, after: str | None = None) -> ListPage[AlertRow]:
        """List alerts: firing ones first, then resolved ones, the newest first. `.next` of the list is the `after` of
        the next page. `InvalidInput`."""
        if state is not None and state not in _STATES:
            raise InvalidInput("state", repr(state)[:80], ", ".join(_STATES))
        most = check_limit(limit)
        found = self._engine.store.alert_list(state, most, _place_of(after))
        return ListPage(found, _text_of(found[-1]) if len(found) == most else None)

    def get(self, alert_id: str) -> AlertRow:
        """Return an alert by its id. `NotFound`."""
        most = 2 * self._engine.settings.reason_max
        policy, _, scope = json_codec.text(alert_id, field="alert", bytes_max=most).partition("/")
        row = self._engine.store.alert_get(policy, scope)
        if row is None:
            raise NotFound("alert", alert_id)
        return row

    def acknowledge(self, alert_id: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Acknowledge an alert: no further reminders are sent. `NotFound`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        row = self.get(alert_id)
        return unwrap(self._engine.store.alert_ack(row.policy, row.scope, *who))

    def raise_(
        self,
        policy: str,
        message: str,
        *,
        scope: str = "",
        severity: Severity = "warning",
        facts: Mapping[str, Any] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Raise an alert of your own. If it fires already, it is only counted, and not reported again. It is resolved
        by `resolve`, or a day after it was last raised. Without a `reason`, the record has the message. In a job,
        values of its secret fields are redacted in it. `InvalidInput`."""
        settings = self._engine.settings
        who, why = actor_and_reason(actor, reason, settings)
        if severity not in get_args(Severity):
            raise InvalidInput("severity", repr(severity)[:80], ", ".join(get_args(Severity)))
        text = None
        if facts is not None:
            text = json_codec.encode(
                dict(facts), field="facts", size_max=settings.metadata_max, depth_max=settings.depth_max
            )
        said = json_codec.text(message, field="message", bytes_max=settings.reason_max)
        named = _named(policy, scope, self._engine)
        shown = self._redacted(said)
        text, why = (None if one is None else self._redacted(one) for one in (text, why))
        return self._engine.store.alert_raise(*named, severity, shown, text, None, who, why)

    def _redacted(self, text: str) -> str:
        """Return what is told without the secret fields of the job that tells it: an alert leaves the system."""
        running = running_attempt.get()
        task = None if running is None else self._engine.tasks.get(running.task)
        return text if task is None else redact_told(running.claimed.payload, task.options.secret, text)

    def resolve(self, alert_id: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resolve an alert by its id. A no-op if it does not fire. It fires again if its cause comes back."""
        policy, _, scope = alert_id.partition("/") if isinstance(alert_id, str) else (alert_id, "", "")
        who, said = actor_and_reason(actor, reason, self._engine.settings)
        return self._engine.store.alert_resolve(
            *_named(policy, scope, self._engine), said or "resolved by hand", actor=who
        )

    def deliveries(self, alert_id: str, *, limit: int = 100) -> ListPage[DeliveryRow]:
        """List the notifications about an alert and their outcome, the newest first. `NotFound`."""
        row = self.get(alert_id)
        return ListPage(self._engine.store.alert_deliveries(row.policy, row.scope, check_limit(limit)))

    def judge(self) -> int | None:
        """Evaluate all policies once, and send the notifications. Workers do this by themselves; call it if none runs.
        Return how many alerts changed, or None if it was done within the last 15 seconds."""
        engine = self._engine
        options = sink_options(engine.settings, engine.bare_store.name)
        return evaluate_and_deliver(engine.store, options, engine.ids.take(1)[0], _JUDGED_EVERY)

    def test(self) -> dict[str, Outcome]:
        """Send a test message to every sink in the settings, and return the answers by sink. The pager also gets a
        message that resolves it."""
        engine = self._engine
        now = engine.store.now()
        outcomes: dict[str, Outcome] = {}
        for sink in sinks_of(sink_options(engine.settings, engine.bare_store.name)):
            notice = Notice(
                n=0,
                policy="test",
                scope="",
                episode=int(now.timestamp()),
                kind="firing",
                severity=sink.route.severities[0],
                message="this is a test; nothing is wrong",
                facts=None,
                value=None,
                since=now,
                at=now,
            )
            outcome = sink.send([notice])
            if outcome.ok and not sink.summarises:
                outcome = sink.send([replace(notice, kind="resolved")])
            outcomes[sink.route.sink] = outcome
        return outcomes


class Policies:
    """The policies of alerts: the defaults, and those that operators set."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self) -> ListPage[Policy]:
        """List the policies in force: the defaults and those that were set, which replace defaults of the same name."""
        return ListPage(self._in_force().values())

    def get(self, name: str) -> Policy:
        """Return the policy of that name. `NotFound`."""
        found = self._in_force().get(name)
        if found is None:
            raise NotFound("policy", repr(name))
        return found

    def set(
        self,
        name: str,
        *,
        measure: Measure | None = None,
        each: Each | None = None,
        severity: Severity | None = None,
        threshold: float | None = None,
        window: float | None = None,
        count_min: int | None = None,
        calm: float | None = None,
        message: str | None = None,
        enabled: bool | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Policy:
        """Change a policy, or create one: `app.alerts.policies.set("dead_letters_many", threshold=20)`.

        Options you leave out keep their current value. A new policy needs a `measure`, and a `threshold` unless the
        measure is `event`. `window` and `calm` are in seconds. `InvalidInput`.
        """
        checked, _ = _named(name, "", self._engine)
        who = actor_and_reason(actor, reason, self._engine.settings)
        given = {
            "measure": measure,
            "each": each,
            "severity": severity,
            "threshold": threshold,
            "window_seconds": window,
            "count_min": count_min,
            "calm_seconds": calm,
            "message": message,
            "enabled": enabled,
        }
        changes = {field: value for field, value in given.items() if value is not None}
        policies = self._in_force()
        known = policies.get(checked)
        if known is None and measure is None:
            raise InvalidInput("name", f"{checked!r}, which is no policy", ", ".join(policies))
        if known is None:
            policy = Policy(**_NEW | {"name": checked} | changes)
            if policy.measure == "event" and message is None:
                policy = replace(policy, message=checked)
        else:
            policy = replace(known, **changes)
        self._engine.store.alert_policy_put(check_policy(policy), *who)
        return policy

    def remove(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Remove the settings of a policy. Its default applies again; a policy of your own is gone."""
        settings = self._engine.settings
        checked = json_codec.text(name, field="name", bytes_max=settings.name_max)
        return self._engine.store.alert_policy_drop(checked, *actor_and_reason(actor, reason, settings))

    def _in_force(self) -> dict[str, Policy]:
        return in_force(self._engine.store.alert_policy_list())


def _text_of(row: AlertRow) -> str:
    """Return the place of an alert in the list as the text that `after` accepts."""
    return f"{row.state}-{to_micros(row.since, field='after')}-{row.id}"


def _place_of(text: str | None) -> AlertPlace | None:
    """Return the place in the list that `after` names. `InvalidInput`."""
    if text is None:
        return None
    state, _, left = text.partition("-") if isinstance(text, str) else ("", "", "")
    micros, _, named = left.partition("-")
    if state not in _STATES or not named or not (micros.isascii() and micros.isdecimal() and len(micros) < 20):
        raise InvalidInput("after", repr(text)[:80], "the `next` of the page before")
    policy, _, scope = named.partition("/")
    return AlertPlace(state, from_micros(int(micros)), policy, scope)


def _named(policy: str, scope: str, engine: Engine) -> tuple[str, str]:
    name = json_codec.text(policy, field="policy", bytes_max=engine.settings.name_max)
    if "/" in name:
        raise InvalidInput("policy", repr(name)[:80], "a name without a slash, which separates policy and scope")
    return name, json_codec.text(scope, field="scope", bytes_max=engine.settings.reason_max, allow_empty=True)
