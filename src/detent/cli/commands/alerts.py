"""`detent alerts`: what is wrong, when it is, and who hears of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import click

from detent.alerts.policies import BELOW, DEFAULTS
from detent.alerts.words import amount, span
from detent.cli import render
from detent.cli.command import Group, duration, paged, reason_option
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.model import jsondoor
from detent.model.alert_records import EACH, MEASURES, AlertRow, DeliveryRow, Policy, Severity
from detent.model.escape import line
from detent.model.records import Moved

__all__ = ["command"]

alert = click.argument("alert_id", metavar="ALERT")


@click.group("alerts", cls=Group)
def command() -> None:
    """List, acknowledge and resolve alerts, set their policies, test where they are sent."""


@command.command("list")
@click.option("--firing", "state", flag_value="firing", help="Only those that fire now.")
@click.option("--resolved", "state", flag_value="resolved", help="Only those that are over.")
@paged
@click.pass_obj
def list_(session: Session, state: str | None, limit: int, after: str | None) -> None:
    """List alerts, those that fire first."""
    with session.open() as app:
        found = app.alerts.list(state=state, limit=limit, after=after)
    if session.json:
        render.json_value([render.plain(one, id=one.id) for one in found])
        return
    render.table(
        ["ALERT", "STATE", "SEVERITY", "SINCE", "LAST", "RAISED", "ACKNOWLEDGED", "MESSAGE"],
        [
            [
                *(one.id, one.state, one.severity, one.since, one.resolved_at or one.last_at, one.raised),
                *(one.acknowledged_by, one.message),
            ]
            for one in found
        ],
        empty="no alerts" if state is None else f"no alerts are {state}",
    )


@command.command()
@alert
@click.pass_obj
def get(session: Session, alert_id: str) -> None:
    """Show an alert, and what was told of it to whom."""
    with session.open() as app:
        row = app.alerts.get(alert_id)
        told = app.alerts.deliveries(alert_id)
    if session.json:
        render.json_value(render.plain(row, id=row.id) | {"deliveries": render.records(told)})
        return
    render.fields(_fields(row))
    render.out("")
    _deliveries(told)


def _deliveries(told: Sequence[DeliveryRow]) -> None:
    render.table(
        ["SINK", "WHAT", "AT", "STATE", "TRIES", "SENT", "ERROR"],
        [[one.sink, one.kind, one.at, one.state, one.tries, one.sent_at, one.error] for one in told],
        empty="no notification was sent yet",
    )


@command.command()
@alert
@reason_option
@click.pass_obj
def acknowledge(session: Session, alert_id: str, reason: str | None) -> None:
    """Acknowledge an alert: sinks no longer send reminders of it."""
    with session.open() as app:
        _say(session, "alert", app.alerts.acknowledge(alert_id, reason=reason), "acknowledged")


@command.command()
@alert
@reason_option
@click.pass_obj
def resolve(session: Session, alert_id: str, reason: str | None) -> None:
    """Resolve an alert by hand. It fires again if its cause comes back."""
    with session.open() as app:
        row = app.alerts.get(alert_id)
        _say(session, "alert", app.alerts.resolve(row.id, reason=reason), "resolved")


@command.command()
@alert
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.pass_obj
def deliveries(session: Session, alert_id: str, limit: int) -> None:
    """List the notifications about an alert, the newest first."""
    with session.open() as app:
        told = app.alerts.deliveries(alert_id, limit=limit)
    if session.json:
        render.json_value(render.records(told))
    else:
        _deliveries(told)


@command.command("raise")
@click.argument("policy", metavar="POLICY")
@click.argument("message", metavar="MESSAGE")
@click.option("--scope", default="", metavar="TEXT", help="What the alert is about, such as host:db1.")
@click.option(
    "--severity", type=click.Choice(get_args(Severity)), default="warning", show_default=True, help="How grave it is."
)
@click.option("--facts", metavar="JSON", help="A JSON object that goes with it.")
@click.pass_obj
def raise_(session: Session, policy: str, message: str, scope: str, severity: Severity, facts: str | None) -> None:
    """Raise an alert of your own. Raised again, it stays one alert that is reported once."""
    told = None if facts is None else jsondoor.decode(facts, field="--facts")
    with session.open() as app:
        _say(session, "alert", app.alerts.raise_(policy, message, scope=scope, severity=severity, facts=told), "firing")


@command.group("policies", cls=Group)
def policies() -> None:
    """List and change the policies that decide when an alert fires."""


@policies.command("get")
@click.argument("name", metavar="POLICY")
@click.pass_obj
def get_policy(session: Session, name: str) -> None:
    """Show a policy."""
    with session.open() as app:
        found = app.alerts.policies.get(name)
    if session.json:
        render.json_value(render.plain(found))
    else:
        render.fields(render.plain(found))


@policies.command("remove")
@click.argument("name", metavar="POLICY")
@reason_option
@click.pass_obj
def remove_policy(session: Session, name: str, reason: str | None) -> None:
    """Remove what was set of a policy: its default is in force again, or there is none."""
    with session.open() as app:
        _say(session, "policy", app.alerts.policies.remove(name, reason=reason), "default")


@policies.command("list")
@click.pass_obj
def list_policies(session: Session) -> None:
    """List the policies in force."""
    with session.open() as app:
        found = app.alerts.policies.list()
    if session.json:
        render.json_value([render.plain(one, default=DEFAULTS.get(one.name) == one) for one in found])
        return
    render.table(
        ["POLICY", "STATE", "SEVERITY", "WRONG WHEN", "EACH", "WINDOW", "AT LEAST", "CALM", "DEFAULT"],
        [
            [
                *(one.name, "on" if one.enabled else "off", one.severity, _condition(one), one.each),
                *(span(one.window_seconds) if one.window_seconds else None, one.count_min or None),
                *(span(one.calm_seconds), "yes" if DEFAULTS.get(one.name) == one else "no"),
            ]
            for one in found
        ],
    )


@policies.command("set")
@click.argument("name", metavar="POLICY")
@click.option("--on/--off", "enabled", default=None, help="Switch it on or off.")
@click.option("--threshold", type=float, metavar="N", help="Beyond it something is wrong; a rate is from 0 to 1.")
@click.option("--severity", type=click.Choice(get_args(Severity)), help="How grave it is.")
@click.option("--window", type=duration, metavar="TIME", help="How far back is looked.")
@click.option(
    "--at-least", "count_min", type=click.IntRange(0), metavar="N", help="Ignore windows with fewer jobs than this."
)
@click.option("--calm", type=duration, metavar="TIME", help="How long it must be well before it is resolved.")
@click.option("--each", type=click.Choice(EACH), help="Of what it is measured.")
@click.option("--measure", type=click.Choice(MEASURES), help="What is measured; makes a new policy.")
@click.option("--message", metavar="TEXT", help="What is said, with {value}, {threshold}, {count}, {scope}, {window}.")
@reason_option
@click.pass_obj
def set_(session: Session, /, name: str, reason: str | None, **said: Any) -> None:
    """Change a policy, or create one.

    Options you leave out keep their current value. `policies remove` restores the default.
    """
    if all(value is None for value in said.values()):
        raise click.UsageError("Say what to change.")
    with session.open() as app:
        found = app.alerts.policies.set(name, reason=reason, **said)
    if session.json:
        render.json_value(render.plain(found))
    else:
        state = "" if found.enabled else ", off"
        render.out(f"policy {line(found.name)}: {found.severity} when {_condition(found)}{state}")


@command.command()
@click.pass_obj
def test(session: Session) -> int:
    """Send a test message to every sink of alerts, and show the answers.

    By the settings of this call: those of the workers may be other ones.
    """
    with session.open() as app:
        outcomes = app.alerts.test()
    if session.json:
        render.json_value([{"sink": name, "ok": one.ok, "said": one.said} for name, one in outcomes.items()])
    else:
        render.table(
            ["SINK", "STATE", "IT SAID"],
            [[name, "ok" if one.ok else "failed", one.said] for name, one in outcomes.items()],
        )
    return OK if all(one.ok for one in outcomes.values()) else FAILED


@command.command()
@click.pass_obj
def judge(session: Session) -> None:
    """Judge all policies once, and deliver what is to be told.

    Workers do this by themselves, and so does `detent ops claim` while no worker runs. Run it every minute, as from
    cron, where neither runs: for scripts that claim ops runs by SQL.
    """
    with session.open() as app:
        changed = app.alerts.judge()
    if session.json:
        render.json_value({"judged": changed is not None, "changed": changed or 0})
    elif changed is None:
        render.note("a worker, or another command, judges already")
    else:
        render.out(f"{changed} alerts changed")


def _condition(policy: Policy) -> str:
    if policy.threshold is None:
        return "it happens"
    than = "<" if policy.measure in BELOW else ">"
    return f"{policy.measure} {than} {amount(policy.measure, policy.threshold)}"


def _fields(row: AlertRow) -> dict[str, render.Cell]:
    return {
        "alert": row.id,
        "state": row.state,
        "severity": row.severity,
        "message": row.message,
        "since": row.since,
        "last": row.last_at,
        "resolved": row.resolved_at,
        "raised": row.raised,
        "episode": row.episode,
        "facts": row.facts,
        "told": row.told_at,
        "acknowledged": row.acknowledged_at,
        "by": row.acknowledged_by,
        "because": row.acknowledged_reason,
    }


def _say(session: Session, what: str, moved: Moved, done: str) -> None:
    if session.json:
        render.json_value({what: moved.entity_id, "state": moved.state, "changed": moved.changed})
    else:
        render.out(f"{what} {line(moved.entity_id)}: {done if moved.changed else f'{moved.state} (nothing to do)'}")
