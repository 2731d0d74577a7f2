"""Alerts on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, NotFound
from detent.model.alert_records import (
    AlertPlace,
    AlertRow,
    Asked,
    Delivery,
    DeliveryOutcome,
    DeliveryRow,
    Each,
    Figure,
    Measure,
    Notice,
    Policy,
    PolicyRow,
    Route,
    Severity,
    alert_id,
)
from detent.model.records import Moved
from detent.store.postgres.statement import Row, Statement, flags, moment, named, numbers, texts
from detent.store.postgres.verb_base import VerbBase, runs, runs_each

__all__ = ["PostgresAlerts"]

_FIELDS = AlertRow.__struct_fields__
_RAISE = """
SELECT detent.alert_raise_v2(%s::text, %s::text, %s::text, %s::text, %s::text, %s::double precision, %s::text, %s::text)
"""
_RESOLVE = """
SELECT now_state, changed FROM detent.alert_resolve_v1(%s::text, %s::text, %s::text, %s::double precision, %s::text)
"""
_ACK = "SELECT now_state, changed FROM detent.alert_ack_v1(%s::text, %s::text, %s::text, %s::text)"
_ALERTS = f"SELECT {', '.join(_FIELDS)} FROM"
_GET = f"{_ALERTS} detent.alert_get_v1(%s::text, %s::text)"
_LIST = f"{_ALERTS} detent.alert_list_v2(%s::text, %s::integer, %s::text, %s::timestamptz, %s::text, %s::text)"

_PUT = """
SELECT detent.alert_policy_put_v1(%s::text, %s::text, %s::text, %s::text, %s::double precision, %s::double precision,
                                  %s::integer, %s::double precision, %s::text, %s::boolean, %s::text, %s::text)
"""
_DROP = "SELECT detent.alert_policy_drop_v1(%s::text, %s::text, %s::text)"
_POLICY = PolicyRow.__struct_fields__
_POLICIES = f"SELECT {', '.join(_POLICY)} FROM detent.alert_policy_list_v1()"
_TALLY = "SELECT detent.alert_tally_v1(%s::integer)"
_FIGURES = "SELECT of_scope, value, of_count FROM detent.alert_figures_v1(%s::text, %s::text, %s::double precision)"
_MEASURE = """
SELECT question, of_scope, value, of_count
  FROM detent.alert_measure_v1(%s::text[], %s::text[], %s::double precision[])
"""
_SPREAD = "SELECT detent.alert_spread_v1(%s::text[], %s::text[])"
_NOTICE = Notice.__struct_fields__
_TAKE = f"""
SELECT {", ".join(_NOTICE)}, tries, room
  FROM detent.alert_take_v1(%s::text, %s::integer, %s::integer, %s::double precision)
"""
_TOLD = """
SELECT detent.alert_outcomes_put_v1(%s::text, %s::bigint[], %s::text[], %s::text[], %s::double precision[],
                                    %s::boolean[])
"""
_DELIVERY = DeliveryRow.__struct_fields__
_DELIVERIES = f"SELECT {', '.join(_DELIVERY)} FROM detent.alert_deliveries_v1(%s::text, %s::text, %s::integer)"
_SWEEP = "SELECT detent.alert_sweep_v1(%s::double precision, %s::double precision)"


def alert_raise(
    policy: str,
    scope: str,
    severity: Severity,
    message: str,
    facts: str | None = None,
    value: float | None = None,
    actor: str = "system",
    reason: str | None = None,
) -> Statement[Moved]:

    def decode(rows: Sequence[Row]) -> Moved:
        began = rows[0][0]
        return Moved(alert_id(policy, scope), "off" if began is None else "firing", bool(began))

    return Statement(_RAISE, (policy, scope, severity, message, facts, value, actor, reason), decode)


def alert_resolve(policy: str, scope: str, message: str, calm: float = 0.0, actor: str = "system") -> Statement[Moved]:
    params = (policy, scope, message, float(calm), actor)
    return Statement(_RESOLVE, params, lambda rows: Moved(alert_id(policy, scope), rows[0][0], rows[0][1]))


def alert_ack(policy: str, scope: str, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    name = alert_id(policy, scope)
    return Statement(
        _ACK,
        (policy, scope, actor, reason),
        lambda rows: NotFound("alert", name) if rows[0][0] is None else Moved(name, rows[0][0], rows[0][1]),
    )


def alert_get(policy: str, scope: str) -> Statement[AlertRow | None]:
    return Statement(_GET, (policy, scope), lambda rows: next(iter(_alerts(rows)), None), writes=False)


def alert_list(
    state: str | None = None, limit: int = 100, after: AlertPlace | None = None
) -> Statement[list[AlertRow]]:
    place: tuple[str | None, ...] = (None, None, None, None)
    if after is not None:
        place = (after.state, moment(after.since, field="after"), after.policy, after.scope)
    return Statement(_LIST, (state, limit, *place), _alerts, writes=False)


def _alerts(rows: Sequence[Row]) -> list[AlertRow]:
    return [AlertRow(**named(_FIELDS, row)) for row in rows]


def alert_policy_put(item: Policy, actor: str, reason: str | None = None) -> Statement[Moved]:
    params = tuple(getattr(item, name) for name in Policy.__struct_fields__)
    state = "on" if item.enabled else "off"
    return Statement(_PUT, (*params, actor, reason), lambda rows: Moved(item.name, state, rows[0][0]))


def alert_policy_drop(name: str, actor: str, reason: str | None = None) -> Statement[Moved]:
    return Statement(_DROP, (name, actor, reason), lambda rows: Moved(name, "default", rows[0][0]))


def alert_policy_list() -> Statement[list[PolicyRow]]:
    return Statement(_POLICIES, (), lambda rows: [PolicyRow(**named(_POLICY, row)) for row in rows], writes=False)


def alert_tally(jobs_max: int) -> Statement[int]:
    return Statement(_TALLY, (jobs_max,), lambda rows: int(rows[0][0]))


def alert_figures(measure: Measure, each: Each, window_seconds: float) -> Statement[list[Figure]]:
    params = (measure, each, float(window_seconds))
    return Statement(_FIGURES, params, lambda rows: [Figure(*row) for row in rows], writes=False)


def alert_measure(asked: Sequence[Asked]) -> Statement[list[list[Figure]]]:

    def decode(rows: Sequence[Row]) -> list[list[Figure]]:
        answers: list[list[Figure]] = [[] for _ in asked]
        for question, *figure in rows:
            answers[question - 1].append(Figure(*figure))
        return answers

    lists = (texts(one[0] for one in asked), texts(one[1] for one in asked), numbers(float(one[2]) for one in asked))
    return Statement(_MEASURE, lists, decode, writes=False)


def alert_spread(routes: Sequence[Route]) -> Statement[int]:
    # Severities are joined by commas: an array of arrays would have to be rectangular.
    params = (texts(route.sink for route in routes), texts(",".join(route.severities) for route in routes))
    return Statement(_SPREAD, params, lambda rows: int(rows[0][0]))


def alert_take(sink: str, minute_max: int, limit: int, seconds: float) -> Statement[tuple[list[Delivery], int]]:

    def decode(rows: Sequence[Row]) -> tuple[list[Delivery], int]:
        found = [Delivery(Notice(**named(_NOTICE, row[:-2])), row[-2]) for row in rows]
        return found, int(rows[0][-1]) if rows else 0

    return Statement(_TAKE, (sink, minute_max, limit, float(seconds)), decode)


def _told(sink: str, items: Sequence[DeliveryOutcome]) -> Statement[None]:
    lists = (
        numbers(item.notice_n for item in items),
        texts(item.state for item in items),
        texts(item.error for item in items),
        numbers(item.delay for item in items),
        flags(item.tried for item in items),
    )
    return Statement(_TOLD, (sink, *lists), lambda rows: None)


def alert_deliveries(policy: str, scope: str, limit: int = 100) -> Statement[list[DeliveryRow]]:
    return Statement(
        _DELIVERIES,
        (policy, scope, limit),
        lambda rows: [DeliveryRow(**named(_DELIVERY, row)) for row in rows],
        writes=False,
    )


def alert_sweep(remind_after: float, keep: float) -> Statement[int]:
    return Statement(_SWEEP, (float(remind_after), float(keep)), lambda rows: int(rows[0][0]))


class PostgresAlerts(VerbBase):
    """The verbs of alerts."""

    alert_raise = runs(alert_raise)
    alert_resolve = runs(alert_resolve)
    alert_ack = runs(alert_ack)
    alert_get = runs(alert_get)
    alert_list = runs(alert_list)
    alert_policy_put = runs(alert_policy_put)
    alert_policy_drop = runs(alert_policy_drop)
    alert_policy_list = runs(alert_policy_list)
    alert_tally = runs(alert_tally)
    alert_figures = runs(alert_figures)
    alert_measure = runs_each(alert_measure)
    alert_spread = runs(alert_spread)
    alert_take = runs(alert_take)
    alert_deliveries = runs(alert_deliveries)
    alert_sweep = runs(alert_sweep)

    def alert_outcomes_put(self, sink: str, items: Sequence[DeliveryOutcome]) -> None:
        if items:
            self._session.run(_told(sink, items))
