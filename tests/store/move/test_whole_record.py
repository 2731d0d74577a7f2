"""J15: a database moves with its whole record, in every direction."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.model.clock import SystemClock
from detent.model.json_codec import fingerprint
from detent.model.record_cursor import RecordCursor
from detent.model.records import Enqueued, NewJob
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.store.move.mover import Mover
from detent.store.move.tables import LEFT_OUT, all_tables
from detent.testing.stores import row_violations
from tests.contract.workflows.sample_workflows import send
from tests.store.move.conftest import Databases
from tests.store.move.moving import KINDS
from tests.store.move.whole_life import everything, tables_without_rows

BOTH_WAYS = [(here, there) for here in KINDS for there in KINDS]


def move(source: Store, target: Store, rows_max: int = 7) -> None:
    Mover(source, target, SystemClock(), actor="ana", reason="it grew", rows_max=rows_max).run()


def test_every_table_is_copied_or_left_out_for_a_reason() -> None:
    """A new table is copied without a word; one that is left out has its reason in `LEFT_OUT`."""
    assert set(LEFT_OUT) <= {table.name for table in all_tables()}
    assert all(table.key and set(table.key) <= set(table.names) for table in all_tables())


@pytest.mark.parametrize(("here", "there"), BOTH_WAYS)
def test_all_rows_are_the_same_there_and_back_again(databases: Databases, here: str, there: str) -> None:
    first, second, third = databases.with_life(here), databases.empty(there), databases.empty(here)
    assert tables_without_rows(first) == set()
    before = everything(first)
    move(databases.open(first), databases.open(second))
    assert everything(second) == before
    assert row_violations(databases.open(second), second) == []
    move(databases.open(second), databases.open(third))
    assert everything(third) == before
    assert databases.open(third).verify() == []


@pytest.mark.parametrize(("here", "there"), [KINDS, KINDS[::-1]])
def test_what_was_there_goes_on(databases: Databases, here: str, there: str) -> None:
    """Ids, keys, tokens, secrets, effect keys and cursors mean in the target what they meant in the source."""
    source, into = databases.open(databases.with_life(here)), databases.empty(there)
    source.ready()
    ids = databases.ids[here]
    reserved = source.ids_reserve(1)
    mark = fingerprint("held", "{}")
    held = NewJob(id=reserved, task="held", payload="{}", nonce=1, fingerprint=mark, key="held", unique_pending=True)
    same = source.job_enqueue([held])
    assert same == [Enqueued(ids["held"], False)]
    cursor = source.record_feed().next
    past = source.now() - timedelta(seconds=5)
    asked = (
        lambda store: store.job_list(JobSearch(), limit=1000),
        lambda store: [store.transitions("job", str(job_id)) for job_id in ids.values()],
        lambda store: store.counts(),
        lambda store: store.job_executions(ids["succeeded"]),
        lambda store: store.schedule_list(),
        lambda store: [row.key for row in store.limit_list()],
        lambda store: store.alert_list(),
        lambda store: store.token_list(True, 2**62, 100),
        lambda store: store.workflow_get([ids["flow"]]),
        lambda store: store.signing_key(),
        lambda store: store.identity_list(),
        lambda store: store.dead_report(None, None, None, 100),
        lambda store: store.counts_as_of(past),
        lambda store: store.figures(past),
        lambda store: store.webhook_place("erp"),
        lambda store: store.task_secrets_list(),
        lambda store: store.batch_get(ids["batch_run"]),
        lambda store: store.pipeline_get(ids["pipeline_run"]),
    )
    told = [ask(source) for ask in asked]
    move(source, databases.open(into))
    target = databases.open(into)
    assert [ask(target) for ask in asked] == told
    assert target.identity_of(ids["flow"]) == source.identity_of(ids["flow"])
    assert target.job_enqueue([held]) == same
    assert target.ids_reserve(1) > reserved
    page = target.record_feed(cursor)
    assert [line.row.entity for line in page.lines] == ["database", "database"]
    assert RecordCursor.parse(page.next).last_seen == page.lines[-1].row.n
    new = NewJob(id=target.ids_reserve(1), task="new", payload="{}", nonce=1, fingerprint="")
    assert target.job_enqueue([new]) == [Enqueued(new.id, True)]
    assert not isinstance(send(target, ids["flow"], "later"), Exception)
    lines = target.transitions("database", target.identity_list()[0].identity)
    assert [(row.to_state, row.actor, row.reason) for row in lines] == [
        ("moving", "ana", "it grew"),
        ("open", "ana", "it grew"),
    ]
    assert target.verify() == []
