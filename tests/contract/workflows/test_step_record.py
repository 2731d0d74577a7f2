"""step_record: a step is recorded once, by the holder, and whoever comes second adopts what is on record."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from detent.errors import LeaseLost
from detent.model.records import Claimed
from detent.model.workflow_records import StepRecorded
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, finish, job
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, is_recorded, load, paths, record, step


def test_a_step_is_on_record_with_all_that_was_said(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    clock.advance(5)
    answer = record(store, held, "s/a:7", seq=3, kind="transact", scope="s", fingerprint="f", beside=True, secret=True)
    assert answer == StepRecorded("s/a:7", True, "transact", "1", None, clock.now())
    record(store, held, "b", seq=4, undo=True, ran_for=2.0, value=None, error='{"kind":"E"}')
    (b, a) = load(store, held).steps
    assert (a.job_id, a.generation, a.path, a.seq, a.kind, a.scope) == (held.job_id, 1, "s/a:7", 3, "transact", "s")
    assert (a.attempt, a.fingerprint, a.beside, a.secret, a.undo) == (1, "f", True, True, False)
    assert (a.began_at, a.done_at, a.value, a.error) == (clock.now(), clock.now(), "1", None)
    assert (b.undo, b.began_at, b.value, b.error) == (True, clock.now() - timedelta(seconds=2), None, '{"kind":"E"}')


def test_the_second_writer_adopts_the_record(store: Store, clock: StoreClock) -> None:
    """F2, F4: a step has one answer, whoever asks again and whatever they bring."""
    held = begin(store)
    first = is_recorded(record(store, held, value='"one"'))
    clock.advance(1)
    again = record(store, held, value='"two"', kind="transact")
    assert again == StepRecorded("a", False, "call", '"one"', None, first.done_at)
    abort(store, held)
    assert record(store, claim_one(store), value='"three"') == again
    assert len(store.step_list(held.job_id).rows) == 1


def test_a_path_named_twice_in_one_call_counts_as_recorded(store: Store) -> None:
    held = begin(store)
    first, second = store.step_record([step(held, value="1"), step(held, value="2")])
    assert (is_recorded(first).created, is_recorded(first).value) == (True, "1")
    assert (is_recorded(second).created, is_recorded(second).value) == (False, "1")


@pytest.mark.parametrize("has_begun", [False, True])
def test_another_attempt_in_the_same_call_takes_no_credit(store: Store, has_begun: bool) -> None:
    """A step of the holder was answered to a caller that names another attempt and the same path."""
    held = begin(store)
    if has_begun:
        record(store, held, "before")
    stranger = msgspec.structs.replace(step(held, value="1"), attempt=held.attempt + 1)
    lost, first, second = store.step_record([stranger, step(held, value="2"), step(held, value="3")])
    assert isinstance(lost, LeaseLost)
    assert (is_recorded(first).created, is_recorded(first).value) == (True, "2")
    assert (is_recorded(second).created, is_recorded(second).value) == (False, "2")


def test_many_steps_of_many_workflows(store: Store) -> None:
    """More than one list of rows, and some on record before."""
    for _ in range(40):
        enqueue(store)
    held = claim(store)
    for one in held[:5]:
        record(store, one, "s1", value="0")
    items = [step(one, f"s{n}", seq=n) for n in range(3) for one in held]
    answers = [is_recorded(answer) for answer in store.step_record(items)]
    assert [answer.path for answer in answers] == [item.path for item in items]
    assert [answer.value for answer in answers if not answer.created] == ["0"] * 5
    assert all(paths(load(store, one)) == ["s0", "s1", "s2"] for one in held)


def test_the_first_step_begins_the_workflow_under_its_version(store: Store) -> None:
    held = begin(store)
    assert store.workflow_get([held.job_id]) == [None]
    record(store, held, version=3)
    abort(store, held)
    held = claim_one(store)
    record(store, held, "b", version=4)
    (row,) = store.workflow_get([held.job_id])
    assert row is not None
    assert (row.version, row.generation, row.root_id, row.depth, row.steps) == (3, 1, held.job_id, 0, 2)
    assert load(store, held).version == 3


@pytest.mark.parametrize("has_begun", [False, True])
def test_only_the_holder_records(store: Store, clock: StoreClock, untouched: Untouched, has_begun: bool) -> None:
    """F4: an old attempt, one whose lease is over, one that has ended, and one that never was. A single step of
    a workflow that has begun is recorded in a way of its own, and so are several."""
    held = begin(store, attempts_max=9)
    if has_begun:
        record(store, held, "begun")
    abort(store, held)
    current = claim_one(store)

    def is_refused(by: Claimed) -> None:
        with untouched():
            refused(record(store, by), LeaseLost, job_id=by.job_id, attempt=by.attempt)
            for answer in store.step_record([step(by), step(by, "b", seq=2)]):
                refused(answer, LeaseLost, job_id=by.job_id, attempt=by.attempt)

    is_refused(held)
    gone = step(current, job_id=held.job_id + 1000)
    refused(store.step_record([gone])[0], LeaseLost)
    clock.advance(LEASE + 1)
    is_refused(current)
    store.lease_reap(10)
    is_refused(current)
    last = claim_one(store)
    finish(store, last)
    is_refused(last)


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_step_never_follows_the_commit(store: Store, untouched: Untouched, has_begun: bool) -> None:
    held = begin(store)
    if has_begun:
        record(store, held, "begun")
    with store.commit_block(held.job_id, held.attempt):
        pass
    with untouched():
        refused(record(store, held), LeaseLost)
    finish(store, held)


def test_a_refusal_harms_no_other_item(store: Store) -> None:
    first, second = enqueue(store), enqueue(store)
    one, two = claim(store)
    abort(store, one)
    lost, kept = store.step_record([step(one), step(two)])
    refused(lost, LeaseLost, job_id=first)
    assert is_recorded(kept).created
    assert store.step_list(first).rows == []
    assert [row.path for row in store.step_list(second).rows] == ["a"]


def test_an_attempt_that_records_something_restarts_the_count(store: Store) -> None:
    """Rule 7 of workflows: with three attempts, a workflow that gets on never runs out of them."""
    job_id = enqueue(store, attempts_max=3)
    for n in range(6):
        held = claim_one(store)
        record(store, held, f"s{n}")
        assert abort(store, held).state == "pending"
        assert job(store, job_id).spared == n
    abort(store, claim_one(store))
    assert abort(store, claim_one(store)).state == "quarantined"


def test_times_alone_are_no_progress(store: Store) -> None:
    enqueue(store, attempts_max=3)
    for kind in ("sleep", "deadline"):
        held = claim_one(store)
        record(store, held, kind, kind=kind)
        assert abort(store, held).state == "pending"
    held = claim_one(store)
    record(store, held, "over", kind="timeout", value="null")
    assert abort(store, held).state == "quarantined"


def test_an_expired_attempt_that_has_recorded_something_restarts_the_count(store: Store, clock: StoreClock) -> None:
    job_id = enqueue(store, attempts_max=2)
    for n in range(8):
        record(store, claim_one(store), f"s{n}")
        clock.advance(LEASE + 1)
        store.lease_reap(10)
        assert job(store, job_id).state == "pending"
    assert [each.outcome for each in store.job_executions(job_id)] == ["expired"] * 8
