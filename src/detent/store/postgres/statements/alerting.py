"""The verbs of alerts."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, NotFound
from detent.model.alert_records import AlertRow, Severity, alert_id
from detent.model.records import Moved
from detent.store.postgres.statements.base import Row, Statement, named

__all__ = ["alert_ack", "alert_list", "alert_raise", "alert_resolve"]

_FIELDS = AlertRow.__struct_fields__
_RAISE = "SELECT detent.alert_raise_v1(%s::text, %s::text, %s::text, %s::text, %s::text, %s::double precision)"
_RESOLVE = """
SELECT now_state, changed FROM detent.alert_resolve_v1(%s::text, %s::text, %s::text, %s::double precision, %s::text)
"""
_ACK = "SELECT now_state, changed FROM detent.alert_ack_v1(%s::text, %s::text, %s::text, %s::text)"
_LIST = f"SELECT {', '.join(_FIELDS)} FROM detent.alert_list_v1(%s::text, %s::integer)"


def alert_raise(
    policy: str, scope: str, severity: Severity, message: str, facts: str | None, value: float | None
) -> Statement[Moved]:
    """Null where its policy is switched off."""

    def decode(rows: Sequence[Row]) -> Moved:
        began = rows[0][0]
        return Moved(alert_id(policy, scope), "off" if began is None else "firing", bool(began))

    return Statement(_RAISE, (policy, scope, severity, message, facts, value), decode)


def alert_resolve(policy: str, scope: str, message: str, calm: float, actor: str) -> Statement[Moved]:
    """The state it is in."""
    params = (policy, scope, message, float(calm), actor)
    return Statement(_RESOLVE, params, lambda rows: Moved(alert_id(policy, scope), rows[0][0], rows[0][1]))


def alert_ack(policy: str, scope: str, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """No state where it is not there."""
    name = alert_id(policy, scope)
    return Statement(
        _ACK,
        (policy, scope, actor, reason),
        lambda rows: NotFound("alert", name) if rows[0][0] is None else Moved(name, rows[0][0], rows[0][1]),
    )


def alert_list(state: str | None, limit: int) -> Statement[list[AlertRow]]:
    """Those that fire first."""
    return Statement(
        _LIST, (state, limit), lambda rows: [AlertRow(**named(_FIELDS, row)) for row in rows], writes=False
    )
