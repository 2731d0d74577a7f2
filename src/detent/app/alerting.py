"""The part of `Detent` that is about alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args
from urllib.parse import urlsplit

from msgspec.structs import replace

from detent.alerts.courier import sinks_of
from detent.alerts.options import SinkOptions, host_and_port
from detent.alerts.policies import check_policy, in_force
from detent.alerts.round import judge_once
from detent.alerts.sinks import Outcome
from detent.app.wiring import Wiring
from detent.client.client import actor_and_reason, one
from detent.declare.settings import Settings
from detent.errors import InvalidInput, InvalidSetting, NotFound
from detent.model import jsondoor
from detent.model.alert_records import (
    AlertRow,
    DeliveryRow,
    Each,
    Measure,
    Notice,
    Policy,
    Severity,
)
from detent.model.records import Moved

__all__ = ["Alerting", "sink_options"]

_LIST_MAX = 10_000
_JUDGED_EVERY = 15.0
_NEW: dict[str, Any] = {
    "each": "whole",
    "severity": "warning",
    "threshold": None,
    "window_seconds": 0.0,
    "count_min": 0,
    "calm_seconds": 300.0,
    "message": "{value} of {scope} is beyond {threshold}",
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Alerting:
    """Alerts and their policies."""

    settings: Settings
    _wiring: Wiring

    def judge_alerts(self) -> int | None:
        """Judge and deliver alerts once. Workers do this by themselves; call it where no worker runs. Return how many
        alerts changed, or None if a worker or another call did it within the last 15 seconds."""
        wiring = self._wiring
        options = sink_options(self.settings, wiring.bare_store.name)
        return judge_once(wiring.store, options, wiring.ids.take(1)[0], _JUDGED_EVERY)

    def alerts(self, *, state: str | None = None, limit: int = 100) -> list[AlertRow]:
        """What is wrong now, and what was: those that fire first, the newest of each first."""
        if state not in (None, "firing", "resolved"):
            raise InvalidInput("state", repr(state)[:80], "firing, resolved")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _LIST_MAX:
            raise InvalidInput("limit", repr(limit)[:80], f"a whole number from 1 to {_LIST_MAX}")
        return self._wiring.store.alert_list(state, limit)

    def alert(
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
        actor: str = "application",
        reason: str | None = None,
    ) -> Policy:
        """Change an alert policy, or make one of your own: `app.alert("dead_letters_many", threshold=20)`.

        What is not said stays as it is. A new one needs its `measure`, and a `threshold` unless that is `event`;
        `window` and `calm` are seconds. Written at once, on record, and kept until it is said otherwise.
        `InvalidInput`.
        """
        checked, _ = self._named(name, "")
        who = actor_and_reason(actor, reason, self.settings)
        said = {
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
        changes = {field: value for field, value in said.items() if value is not None}
        known = self.alert_policies().get(checked)
        if known is None and measure is None:
            raise InvalidInput("name", f"{checked!r}, which is no policy", ", ".join(self.alert_policies()))
        if known is None:
            policy = Policy(**_NEW | {"name": checked} | changes)
            if policy.measure == "event" and message is None:
                policy = replace(policy, message=checked)
        else:
            policy = replace(known, **changes)
        self._wiring.store.alert_policy_put(check_policy(policy), *who)
        return policy

    def alert_policies(self) -> dict[str, Policy]:
        """The policies in force, by name: the defaults, with what was set in their place and besides."""
        return in_force(self._wiring.store.alert_policy_list())

    def reset_alert(self, name: str, *, actor: str, reason: str | None = None) -> Moved:
        """Take back what was set of a policy: its default holds again, or there is none."""
        checked = jsondoor.text(name, field="name", bytes_max=self.settings.name_max)
        return self._wiring.store.alert_policy_drop(checked, *actor_and_reason(actor, reason, self.settings))

    def raise_alert(
        self,
        policy: str,
        message: str,
        *,
        scope: str = "",
        severity: Severity = "warning",
        facts: Mapping[str, Any] | None = None,
    ) -> Moved:
        """Say that something of your own is wrong. However often and by however many it is said, it is one alert, and
        told once, until it is resolved: by `resolve_alert`, or a day after it was last said."""
        if severity not in get_args(Severity):
            raise InvalidInput("severity", repr(severity)[:80], ", ".join(get_args(Severity)))
        text = None
        if facts is not None:
            text = jsondoor.encode(
                dict(facts), field="facts", size_max=self.settings.metadata_max, depth_max=self.settings.depth_max
            )
        said = jsondoor.text(message, field="message", bytes_max=self.settings.reason_max)
        return self._wiring.store.alert_raise(*self._named(policy, scope), severity, said, text)

    def resolve_alert(self, policy: str, message: str, *, scope: str = "", actor: str) -> Moved:
        """Say that it is well again. Not firing: nothing to do."""
        who, said = actor_and_reason(actor, message, self.settings)
        return self._wiring.store.alert_resolve(*self._named(policy, scope), said or "", actor=who)

    def acknowledge(self, alert_id: str, *, actor: str, reason: str | None = None) -> Moved:
        """Look after an alert, such as `dead_letters_many` or `breaker_open/limit:shop`: nobody is reminded of it any
        more. `NotFound`."""
        who = actor_and_reason(actor, reason, self.settings)
        row = self.get_alert(alert_id)
        return one(self._wiring.store.alert_ack(row.policy, row.scope, *who))

    def get_alert(self, alert_id: str) -> AlertRow:
        """The alert as it stands. `NotFound`."""
        policy, _, scope = jsondoor.text(alert_id, field="alert", bytes_max=2 * self.settings.reason_max).partition("/")
        for row in self._wiring.store.alert_list(None, _LIST_MAX):
            if (row.policy, row.scope) == (policy, scope):
                return row
        raise NotFound("alert", alert_id)

    def alert_deliveries(self, alert_id: str, *, limit: int = 100) -> list[DeliveryRow]:
        """What was told of an alert, to whom, and what became of it; the newest first. `NotFound`."""
        row = self.get_alert(alert_id)
        return self._wiring.store.alert_deliveries(row.policy, row.scope, limit)

    def try_sinks(self) -> dict[str, Outcome]:
        """Send a test message to every sink that the settings name, now; what came back, by sink. The pager is told
        that it is over, too."""
        now = self._wiring.store.now()
        outcomes: dict[str, Outcome] = {}
        for sink in sinks_of(sink_options(self.settings, self._wiring.bare_store.name)):
            notice = Notice(
                n=0,
                policy="test",
                scope="",
                episode=int(now.timestamp()),
                kind="firing",
                severity=sink.route.severities[0],
                message="this is a test: nothing is wrong",
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

    def _named(self, policy: str, scope: str) -> tuple[str, str]:
        name = jsondoor.text(policy, field="policy", bytes_max=self.settings.name_max)
        if "/" in name:
            raise InvalidInput("policy", repr(name)[:80], "a name without a slash, which stands before the scope")
        return name, jsondoor.text(scope, field="scope", bytes_max=self.settings.reason_max, allow_empty=True)


def sink_options(settings: Settings, source: str) -> SinkOptions:
    """To whom alerts are told, by the settings. `InvalidSetting` for what cannot be, without repeating secrets."""
    for field in ("alert_webhook_url", "alert_pager_url"):
        url = getattr(settings, field)
        if url and not _is_web(url):
            raise InvalidSetting(field, "something else", "a URL that begins with https:// or http://")
    recipients = tuple(part.strip() for part in settings.alert_mail_recipients.split(",") if part.strip())
    if (recipients or settings.alert_mail_sender) and not settings.alert_mail_server:
        raise InvalidSetting("alert_mail_server", "nothing, though there is somebody to write to", "host or host:port")
    if settings.alert_mail_server:
        for field, addresses in (
            ("alert_mail_sender", (settings.alert_mail_sender,)),
            ("alert_mail_recipients", recipients or ("",)),
        ):
            for address in addresses:
                if not _is_mailbox(address):
                    raise InvalidSetting(field, repr(address), "an address, such as ops@example.org")
        try:
            host, _ = host_and_port(settings.alert_mail_server, 25)
        except ValueError:
            found = repr(settings.alert_mail_server)[:80]
            raise InvalidSetting("alert_mail_server", found, "host or host:port") from None
        if settings.alert_mail_password and settings.alert_mail_security == "none" and host not in _LOOPBACK:
            raise InvalidSetting("alert_mail_security", "none, with a password", "starttls or tls")
    fields = {
        name.removeprefix("alert_"): value
        for name, value in asdict(settings).items()
        if name.startswith("alert_") and name != "alert_mail_recipients"
    }
    return SinkOptions(source=source, mail_recipients=recipients, **fields)


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = url.isascii() and not any(letter.isspace() for letter in url)
    return is_plain and parts.scheme in ("http", "https") and bool(parts.hostname)


def _is_mailbox(address: str) -> bool:
    from email.utils import parseaddr

    found = parseaddr(address)[1]
    name, at, domain = found.rpartition("@")
    return bool(name and at and domain) and address.isascii() and not any(letter in address for letter in "\r\n")
