"""`detent alerts`: list, acknowledge and resolve alerts, set their policies, test their sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from detent.alerts.message_text import duration_text, figure_text
from detent.alerts.policies import BELOW, DEFAULTS
from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.failures import FAILED, OK
from detent.cli.options import duration, flag, limit_option, option, page_options, reason_option
from detent.cli.session import Session
from detent.model import json_codec
from detent.model.alert_records import EACH, MEASURES, Policy, Severity
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["alerts"]

alerts = Group(
    "alerts",
    help="List, acknowledge and resolve alerts; set their policies.",
    examples=("detent alerts list --state firing", "detent alerts acknowledge dead_letters_many --reason 'on it'"),
)
policies = Group(
    "policies",
    help="List and change the policies that decide when an alert fires.",
    examples=("detent alerts policies list", "detent alerts policies set dead_letters_many --threshold 20"),
)
alerts.add_command(policies)
alert_argument = click.argument("alert_id", metavar="ALERT")
policy_argument = click.argument("name", metavar="POLICY")
_DELIVERIES = output.columns("sink", "kind", "at", "state", "tries", "sent_at", "error")
_NO_DELIVERIES = "no notification has been sent yet"


@alerts.command("list")
@option("--state", "Only alerts in this state.", ["firing", "resolved"])
@page_options
@with_app
def list_(session: Session, app: Detent, state: str | None, limit: int, after: str | None) -> None:
    """List alerts, those that are firing first."""
    found = app.alerts.list(state=state, limit=limit, after=after)
    last = ("LAST", lambda one: one.resolved_at or one.last_at)
    acknowledged = ("ACKNOWLEDGED", "acknowledged_by")
    columns = output.columns(("ALERT", "id"), "state", "severity", "since", last, "raised", acknowledged, "message")
    empty = "no alerts" if state is None else f"no alerts are {state}"
    session.show_rows(found, columns, empty=empty, objects=(output.to_object(one, id=one.id) for one in found))


@alerts.command()
@alert_argument
@with_app
def get(session: Session, app: Detent, alert_id: str) -> None:
    """Show an alert and the notifications about it."""
    row, deliveries = app.alerts.get(alert_id), app.alerts.deliveries(alert_id)
    if session.json:
        output.print_json(output.to_object(row, id=row.id) | {"deliveries": output.records(deliveries)})
        return
    output.print_fields({"alert": row.id, **output.to_object(row)})
    output.print_text("")
    output.print_rows(deliveries, _DELIVERIES, empty=_NO_DELIVERIES)


@alerts.command()
@alert_argument
@reason_option
@with_app
def acknowledge(session: Session, app: Detent, alert_id: str, reason: str | None) -> None:
    """Acknowledge an alert: sinks send no more reminders of it."""
    session.show_moved("alert", app.alerts.acknowledge(alert_id, reason=reason), done="acknowledged")


@alerts.command()
@alert_argument
@reason_option
@with_app
def resolve(session: Session, app: Detent, alert_id: str, reason: str | None) -> None:
    """Resolve an alert by hand. It fires again if its cause comes back."""
    row = app.alerts.get(alert_id)
    session.show_moved("alert", app.alerts.resolve(row.id, reason=reason), done="resolved")


@alerts.command()
@alert_argument
@limit_option()
@with_app
def deliveries(session: Session, app: Detent, alert_id: str, limit: int) -> None:
    """List the notifications about an alert, the newest first."""
    session.show_rows(app.alerts.deliveries(alert_id, limit=limit), _DELIVERIES, empty=_NO_DELIVERIES)


@alerts.command("raise")
@click.argument("policy", metavar="POLICY")
@click.argument("message", metavar="MESSAGE")
@option("--scope", "Subject of the alert, such as host:db1.", "TEXT", default="")
@option("--severity", "Severity.", get_args(Severity), default="warning")
@option("--facts", "JSON object to keep with the alert.", "JSON")
@reason_option
@click.pass_obj
def raise_(
    session: Session,
    policy: str,
    message: str,
    scope: str,
    severity: Severity,
    facts: str | None,
    reason: str | None,
) -> None:
    """Raise an alert of your own. Raised again, it stays one alert that is reported once."""
    decoded = None if facts is None else json_codec.decode(facts, field="--facts")
    with session.open() as app:
        moved = app.alerts.raise_(policy, message, scope=scope, severity=severity, facts=decoded, reason=reason)
    session.show_moved("alert", moved, done="firing")


@alerts.command()
@with_app
def test(session: Session, app: Detent) -> int:
    """Send a test message to every sink, and show the answers.

    Uses the settings of this call; the workers may have other settings.
    """
    outcomes = app.alerts.test()
    session.show_rows(
        outcomes.items(),
        {
            "SINK": lambda item: item[0],
            "STATE": lambda item: "ok" if item[1].ok else "failed",
            "ANSWER": lambda item: item[1].said,
        },
        empty="no sinks",
        objects=({"sink": name, "ok": one.ok, "said": one.said} for name, one in outcomes.items()),
    )
    return OK if all(one.ok for one in outcomes.values()) else FAILED


@alerts.command()
@with_app
def judge(session: Session, app: Detent) -> None:
    """Judge all policies once, and send the notifications.

    Workers do this by themselves, and so does `detent ops claim` while no worker runs. If neither runs, as with scripts
    that claim ops runs by SQL, run this command every minute, for example from cron.
    """
    changed = app.alerts.judge()
    if session.json:
        output.print_json({"judged": changed is not None, "changed": changed or 0})
    elif changed is None:
        output.print_note("not judged: a worker or another command did so in the last 15 seconds")
    else:
        output.print_text(f"{output.count_of(changed, 'alert')} changed")


@policies.command("get")
@policy_argument
@with_app
def get_policy(session: Session, app: Detent, name: str) -> None:
    """Show a policy."""
    session.show_record(output.to_object(app.alerts.policies.get(name)))


@policies.command("remove")
@policy_argument
@reason_option
@with_app
def remove_policy(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Remove what was set for a policy. If it has a default, the default applies again."""
    policy = app.alerts.policies.get(name)
    session.show_moved("policy", app.alerts.policies.remove(policy.name, reason=reason), done="default")


@policies.command("list")
@with_app
def list_policies(session: Session, app: Detent) -> None:
    """List the policies in force."""
    found = app.alerts.policies.list()
    columns = output.columns(
        ("POLICY", "name"),
        ("STATE", lambda one: "on" if one.enabled else "off"),
        "severity",
        ("FIRES WHEN", _condition),
        "each",
        ("WINDOW", lambda one: duration_text(one.window_seconds) if one.window_seconds else None),
        ("AT LEAST", lambda one: one.count_min or None),
        ("CALM", lambda one: duration_text(one.calm_seconds)),
        ("DEFAULT", lambda one: "yes" if _is_default(one) else "no"),
    )
    session.show_rows(
        found, columns, empty="no policies", objects=(output.to_object(one, default=_is_default(one)) for one in found)
    )


@policies.command("set")
@policy_argument
@flag("--on/--off", "Enable or disable the policy.", to="enabled")
@option("--threshold", "Value beyond which the alert fires; a rate is 0 to 1.", float)
@option("--severity", "Severity of the alert.", get_args(Severity))
@option("--window", "Period that is measured.", duration)
@option("--at-least", "Ignore windows with fewer jobs than this.", click.IntRange(0), to="count_min")
@option("--calm", "How long the value must be good before it is resolved.", duration)
@option("--each", "Measure the whole, or each queue, task or limit.", EACH)
@option("--measure", "What is measured. Required for a new policy.", MEASURES)
@option("--message", "Message, which may have {value}, {threshold}, {count}, {scope} and {window}.", "TEXT")
@reason_option
@click.pass_obj
def set_policy(session: Session, /, name: str, reason: str | None, **changes: Any) -> None:
    """Change a policy, or create one.

    Options you leave out keep their current value. `policies remove` restores the default.
    """
    if all(value is None for value in changes.values()):
        raise click.UsageError("Give at least one option to change.")
    with session.open() as app:
        found = app.alerts.policies.set(name, reason=reason, **changes)
    disabled = "" if found.enabled else ", off"
    text = f"policy {line(found.name)}: {found.severity} when {_condition(found)}{disabled}"
    session.answer(output.to_object(found), text)


def _is_default(policy: Policy) -> bool:
    return DEFAULTS.get(policy.name) == policy


def _condition(policy: Policy) -> str:
    if policy.threshold is None:
        return "it happens"
    than = "<" if policy.measure in BELOW else ">"
    return f"{policy.measure} {than} {figure_text(policy.measure, policy.threshold)}"
