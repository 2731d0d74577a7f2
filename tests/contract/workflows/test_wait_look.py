"""wait_look: a wait ends with the first thing that has arrived, or with its time, and what ended it is on record."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from detent.errors import LeaseLost
from detent.model.records import Claimed
from detent.model.workflow_records import Arrived, Pending
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.clock_set_back import set_back
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import (
    begin,
    children,
    is_sent,
    load,
    look,
    paths,
    send,
    signal,
    spawn,
    step,
    wait,
)


def test_nothing_has_arrived(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    with untouched():
        assert look(store, held, signal()) == Pending(held.job_id, 1, None)


def test_a_signal_is_taken_once_and_on_record(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    sent = is_sent(send(store, held.job_id, payload='"x"'))
    clock.advance(1)
    answer = look(store, held, signal())
    assert answer == Arrived(held.job_id, 1, 0, "signal", '"x"', clock.now())
    (row,) = load(store, held).steps
    assert (row.path, row.kind, row.value, row.signal_name, row.signal_seq) == ("w", "signal", '"x"', "go", sent.seq)
    (mail,) = store.signal_list(held.job_id)
    assert (mail.path, mail.taken_at) == ("w", clock.now())
    clock.advance(1)
    assert look(store, held, signal()) == answer
    assert look(store, held, signal(), path="w#2") == Pending(held.job_id, 1, None)


def test_a_signal_is_not_taken_before_it_was_sent(store: Store, clock: StoreClock) -> None:
    """R2: after the clock was set back, the record said so."""
    held = begin(store)
    clock.advance(10)
    send(store, held.job_id, payload="1")
    sent_at = clock.now()
    set_back(clock, 5)
    answer = look(store, held, signal())
    assert isinstance(answer, Arrived)
    assert answer.done_at == load(store, held).steps[0].done_at == sent_at


def test_the_next_attempt_gets_the_same_outcome(store: Store) -> None:
    """F8: however often it is asked for, and whatever has arrived since."""
    held = begin(store)
    send(store, held.job_id, payload="1")
    first = look(store, held, signal())
    send(store, held.job_id, payload="2")
    abort(store, held)
    again = look(store, claim_one(store), signal())
    assert (again.n, again.kind, again.value, again.done_at) == (0, "signal", "1", first.done_at)


def test_two_signals_two_waits(store: Store) -> None:
    """F7: oldest first, each to one wait."""
    held = begin(store)
    for payload in ("1", "2", "3"):
        send(store, held.job_id, payload=payload)
    assert [look(store, held, signal(), path=f"w#{n}").value for n in range(3)] == ["1", "2", "3"]
    assert isinstance(look(store, held, signal(), path="w#3"), Pending)


def test_names_are_apart(store: Store) -> None:
    held = begin(store)
    send(store, held.job_id, "a", "1")
    send(store, held.job_id, "b", "2")
    assert look(store, held, signal("b"), path="w").value == "2"
    assert look(store, held, signal("a"), path="v").value == "1"


def test_the_first_of_several_is_a_choice(store: Store) -> None:
    held = begin(store)
    send(store, held.job_id, "b", '{"y":2}')
    answer = look(store, held, signal("a"), signal("b"), chooses=True)
    assert (answer.n, answer.kind, answer.value) == (1, "choice", '{"n":1,"value":{"y":2}}')
    send(store, held.job_id, "a")
    assert look(store, held, signal("a"), signal("b"), chooses=True) == answer
    assert look(store, held, signal("b"), path="v") == Pending(held.job_id, 1, None)


def holds(held: Claimed, path: str = "w~deadline", kind: str = "deadline") -> object:
    return step(held, path, kind=kind, value=None)


def test_a_time_limit_is_fixed_when_it_is_first_reached(store: Store, clock: StoreClock) -> None:
    """Scenario 9, rule 15: the database's clock fixes it, and no later look moves it."""
    held = begin(store, attempts_max=9)
    until = clock.now() + timedelta(seconds=90)
    assert look(store, held, signal(), lasts=90.0, holds=holds(held)) == Pending(held.job_id, 1, until)
    (row,) = load(store, held).steps
    assert (row.path, row.kind) == ("w~deadline", "deadline")
    assert row.value == f'"{until.isoformat(timespec="microseconds")}"'
    clock.advance(10)
    assert look(store, held, signal(), lasts=90.0, holds=holds(held)) == Pending(held.job_id, 1, until)
    assert look(store, held, signal(), until=until) == Pending(held.job_id, 1, until)
    clock.advance(80)
    store.lease_reap(10)
    held = claim_one(store)
    answer = look(store, held, signal(), until=until)
    assert answer == Arrived(held.job_id, 2, None, "timeout", "null", clock.now())
    send(store, held.job_id)
    assert look(store, held, signal(), until=until) == answer
    assert look(store, held, signal(), path="v").value == "1"


def test_what_has_arrived_comes_before_the_time(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    send(store, held.job_id)
    past = clock.now() - timedelta(seconds=5)
    assert look(store, held, signal(), until=past, holds=holds(held)).kind == "signal"
    assert paths(load(store, held)) == ["w"]


def test_no_choice_in_time(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    answer = look(store, held, signal(), chooses=True, until=clock.now(), holds=holds(held))
    assert (answer.n, answer.kind, answer.value) == (None, "choice", '{"n":null,"value":null}')
    assert look(store, held, signal(), chooses=True, until=clock.now()) == answer
    assert paths(load(store, held)) == ["w"]


def sleep(store: Store, held: Claimed, **overrides: Any) -> object:
    return look(store, held, outcome=None, holds=holds(held, "sleep", "sleep"), **overrides)


def test_a_sleep_records_its_time_alone(store: Store, clock: StoreClock) -> None:
    """F15: a sleep until a time that is over returns at once, and is on record too."""
    held = begin(store)
    until: datetime = clock.now() + timedelta(seconds=20)
    assert sleep(store, held, lasts=20.0) == Pending(held.job_id, 1, until)
    assert paths(load(store, held)) == ["sleep"]
    clock.advance(20)
    answer = sleep(store, held, until=until)
    assert isinstance(answer, Arrived)
    assert (answer.n, answer.kind) == (None, "sleep")
    held_past = look(
        store, held, outcome=None, holds=holds(held, "past", "sleep"), until=clock.now() - timedelta(days=1)
    )
    assert (held_past.n, held_past.kind) == (None, "sleep")
    assert paths(load(store, held)) == ["past", "sleep"]


def test_a_look_without_an_outcome_takes_nothing(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    send(store, held.job_id, payload="7")
    with untouched():
        answer = look(store, held, signal(), outcome=None)
    assert (answer.n, answer.kind, answer.value) == (0, "signal", "7")
    assert look(store, held, signal()).value == "7"


def test_children_that_have_ended(store: Store) -> None:
    held = begin(store)
    spawn(store, held, 1)
    assert isinstance(look(store, held, children()), Pending)
    child = claim_one(store, tasks=["mail.child"])
    abort(store, child, fatal=True)
    assert isinstance(look(store, held, children(settled=True)), Pending)
    answer = look(store, held, children())
    assert (answer.n, answer.kind, answer.value) == (0, "join", '{"succeeded":0,"failed":0,"dead":1}')
    store.job_retry([child.job_id], "bob")
    assert look(store, held, children()) == answer


def test_steps_are_recorded_first_whatever_comes_of_the_wait(store: Store) -> None:
    held = begin(store)
    look(store, held, signal(), steps=(step(held, "before"), step(held, "before")))
    assert paths(load(store, held)) == ["before"]


def test_many_at_once(store: Store) -> None:
    first, second = begin(store), begin(store)
    send(store, second.job_id)
    waits = [wait(first, signal()), wait(second, signal()), wait(second, signal(), path="v")]
    one, two, three = store.wait_look(waits)
    assert isinstance(one, Pending)
    assert isinstance(two, Arrived)
    assert isinstance(three, Pending)


def test_only_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    held = begin(store)
    send(store, held.job_id)
    abort(store, held)
    current = claim_one(store)
    with untouched():
        refused(look(store, held, signal(), steps=(step(held, "before"),)), LeaseLost, attempt=1)
    clock.advance(LEASE + 1)
    with untouched():
        refused(look(store, current, signal()), LeaseLost)
