"""Alerts on both databases side by side: the same verbs give the same answers and leave the same rows.

Apart from the machine of jobs: alerts know nothing of jobs, and no verb of jobs knows of them. There is no third model
here, since every verb has its words in the contract and its tests of them; what is looked for is where one database
says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from detent.model.alert_records import MEASURES, DeliveryOutcome, Policy, Route
from detent.store.contract import Store
from detent.testing.postgres import Cluster
from detent.testing.stores import StoreClock, plain_connection, table, turnable_store
from tests.contract.alerts.sample_policies import policy

TABLES = ("alert", "alert_policy", "alert_notice", "alert_delivery")
SINKS = (Route("hook", ("info", "warning", "critical")), Route("pager", ("critical",)))

names = st.sampled_from(["low", "dead_letters"])
scopes = st.sampled_from(["", "queue:ä", "queue:Z"])
severities = st.sampled_from(["warning", "critical"])
messages = st.sampled_from(["51", 'it\'s \\ "52"', "x" * 2100])
seconds = st.sampled_from([0.0, 1.5, 60.0, 300.0])
policies: st.SearchStrategy[Policy] = st.builds(
    lambda name, threshold, enabled, severity: policy(
        name=name, threshold=threshold, enabled=enabled, severity=severity
    ),
    *(names, st.sampled_from([50.0, 51.5]), st.booleans(), severities),
)
steps: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(st.just("alert_raise"), names, scopes, severities, messages, st.sampled_from([None, "{}"])),
    st.tuples(st.just("alert_resolve"), names, scopes, messages, seconds),
    st.tuples(st.just("alert_ack"), names, scopes, st.just("ana"), st.sampled_from([None, "on it"])),
    st.tuples(st.just("alert_policy_put"), policies, st.just("ana")),
    st.tuples(st.just("alert_policy_drop"), names, st.just("bob")),
    st.tuples(st.just("alert_spread"), st.sampled_from([SINKS, SINKS[:1], ()])),
    st.tuples(st.just("take"), st.sampled_from(["hook", "pager"]), st.sampled_from(["sent", "pending", "failed", ""])),
    st.tuples(st.just("alert_sweep"), seconds, st.sampled_from([100.0, 10_000.0])),
    st.tuples(st.just("advance"), seconds),
)


@pytest.fixture(scope="module")
def sides(
    postgres_cluster: Cluster, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[str, Store, StoreClock]]]:
    """A store of each kind, whose clocks are turned together."""
    name = f"{postgres_template}_alerts"
    file = f"sqlite:///{tmp_path_factory.mktemp('alerts')}/t.db"
    urls = [file, postgres_cluster.create_database(name, template=postgres_template)]
    with ExitStack() as stack:
        yield [(url, *stack.enter_context(turnable_store(url))) for url in urls]
    postgres_cluster.drop_database(name)


def do(store: Store, clock: StoreClock, step: tuple[Any, ...]) -> Any:
    """One step; what it answered, as far as it is the same everywhere."""
    verb, *arguments = step
    match verb:
        case "advance":
            return clock.advance(arguments[0])
        case "take":
            sink, becomes = arguments
            found, room = store.alert_take(sink, 3, 2, 30.0)
            if becomes:
                told = [DeliveryOutcome(notice_n=one.notice.n, state=becomes, error="e", delay=5.0) for one in found]
                store.alert_outcomes_put(sink, told)
            return [(one.notice.alert_id, one.notice.kind, one.notice.episode, one.tries) for one in found], room
        case _:
            return str(getattr(store, verb)(*arguments))


def seen(url: str, store: Store) -> list[Any]:
    """Everything that can be read, and how many rows there are."""
    with closing(plain_connection(url)) as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table(url, name)}").fetchone()[0] for name in TABLES]
    return [
        counts,
        store.alert_list(None, 1000),
        store.alert_policy_list(),
        [store.alert_deliveries(name, scope) for name in ("low", "dead_letters") for scope in ("", "queue:ä")],
        [store.transitions("alert", name) for name in ("low", "low/queue:ä", "dead_letters/queue:Z")],
        [store.alert_figures(measure, "whole", 300.0) for measure in MEASURES],
    ]


@given(st.lists(steps, max_size=25))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_say_the_same(sides: list[tuple[str, Store, StoreClock]], taken: list[tuple[Any, ...]]) -> None:
    """M2, L3, L4: whatever is done in whatever order."""
    for url, _, _ in sides:
        with closing(plain_connection(url)) as connection:
            for name in TABLES:
                connection.execute(f"DELETE FROM {table(url, name)}")
            connection.commit()
    for step in taken:
        answers = [do(store, clock, step) for _, store, clock in sides]
        assert answers[0] == answers[1], step
    on_sqlite, on_postgres = (seen(url, store) for url, store, _ in sides)
    for left, right in zip(on_sqlite, on_postgres, strict=True):
        assert left == right
