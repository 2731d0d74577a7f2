"""workflow_rewind: a workflow continues from an earlier step, in a generation that begins with copies."""

from __future__ import annotations

from typing import Any

import pytest

from detent.errors import CopyRefused, DetentError, NotFound
from detent.model.copy_records import Rewind, Rewound
from detent.model.records import Claimed
from detent.model.workflow_records import NewUndo, StepRow
from detent.store.contract import Store, Verbs
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, finish, job, new_job, state
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import (
    begin,
    children,
    is_sent,
    load,
    look,
    park,
    paths,
    record,
    send,
    signal,
    spawn,
    step,
)


def rewind(store: Verbs, job_id: int, to: str, **more: Any) -> Rewound | DetentError:
    fields: dict[str, Any] = {"actor": "bob", "seed": "here"} | more
    return store.workflow_rewind(Rewind(job_id=job_id, to=to, **fields))


def with_steps(store: Store, *names: str, **more: Any) -> Claimed:
    """A workflow that has recorded these steps, in this order."""
    held = begin(store, attempts_max=1)
    for n, name in enumerate(names, start=1):
        record(store, held, name, seq=n, value=f'"{name}"', **more)
    return held


def steps_on_record(store: Store, job_id: int, generation: int | None = None) -> list[StepRow]:
    return store.step_list(job_id, generation=generation).rows


def test_a_dead_workflow_continues_from_an_earlier_step(store: Store, clock: StoreClock) -> None:
    """F17: the steps before it are copies, the others are not on record any more, and what was recorded stays."""
    held = with_steps(store, "a", "b", "c", undo=True)
    clock.advance(5)
    abort(store, held)
    assert state(store, held.job_id) == "quarantined"
    before = steps_on_record(store, held.job_id)
    clock.advance(5)
    assert rewind(store, held.job_id, "b", reason="again") == Rewound(held.job_id, 2, 1, 2, 0)
    row = job(store, held.job_id)
    assert (row.state, row.due_at, row.spared, row.error, row.finished_at) == ("pending", clock.now(), 1, None, None)
    assert steps_on_record(store, held.job_id, 1) == before
    (copy,) = steps_on_record(store, held.job_id)
    expected = {"generation": 2, "attempt": 0}
    assert copy == StepRow(**{name: expected.get(name, getattr(before[0], name)) for name in StepRow.__struct_fields__})
    line = store.transitions("job", str(held.job_id))[-1]
    assert (line.from_state, line.to_state, line.trigger, line.actor, line.reason) == (
        "quarantined",
        "pending",
        "rewind",
        "bob",
        "again",
    )
    assert line.metadata == '{"to":"b"}'
    again = claim_one(store)
    history = load(store, again)
    assert (again.attempt, history.version, history.generation, paths(history)) == (2, 1, 2, ["a"])
    assert history.seeds == "2 here/1\n"
    assert record(store, again, "b", generation=2).created
    assert finish(store, again)
    assert store.verify() == []


@pytest.mark.parametrize("found", ["failed", "cancelled", "parked", "waits for another try"])
def test_it_may_be_at_rest_or_pending(store: Store, clock: StoreClock, found: str) -> None:
    held = begin(store, attempts_max=2, dead_letter=found != "failed")
    record(store, held, "a")
    record(store, held, "b", seq=2)
    match found:
        case "failed":
            abort(store, held, fatal=True)
        case "cancelled":
            park(store, held, signal())
            store.job_cancel([held.job_id], "bob")
        case "parked":
            park(store, held, signal())
        case _:
            abort(store, held, delay=3600.0)
    spared = job(store, held.job_id).spared
    clock.advance(10)
    assert rewind(store, held.job_id, "b") == Rewound(held.job_id, 2, 1, 1, 0)
    row = job(store, held.job_id)
    assert (row.state, row.due_at) == ("pending", clock.now())
    assert row.spared == (1 if found in ("failed", "cancelled") else spared)
    assert store.wait_list().rows == []
    assert store.verify() == []
    again = claim_one(store)
    assert (again.job_id, paths(load(store, again))) == (held.job_id, ["a"])


@pytest.mark.parametrize("found", ["running", "succeeded"])
def test_what_is_running_or_has_succeeded_is_refused(store: Store, untouched: Untouched, found: str) -> None:
    held = with_steps(store, "a")
    if found == "succeeded":
        finish(store, held)
    with untouched():
        error = refused(rewind(store, held.job_id, "a", force=True), CopyRefused, job_id=held.job_id, step="a")
        assert ("cancel it first" if found == "running" else "fork it") in str(error)


def test_a_requested_cancel_comes_first(store: Store, untouched: Untouched) -> None:
    """F20: it would have been cancelled in its next generation, and the repeated steps would never have been undone."""
    held = begin(store)
    record(store, held, "a", undo=True)
    park(store, held, signal())
    store.job_cancel([held.job_id], "bob")
    with untouched():
        error = refused(rewind(store, held.job_id, "a", force=True), CopyRefused, job_id=held.job_id, step="a")
        assert "wait until it is cancelled" in str(error)
    held = claim_one(store)
    store.undo_begin(held.job_id, held.attempt, "it was cancelled")
    abort(store, held, fatal=True)
    assert state(store, held.job_id) == "quarantined"
    assert rewind(store, held.job_id, "a") == Rewound(held.job_id, 2, 0, 1, 0)
    assert job(store, held.job_id).cancel_requested_at is None


def test_no_such_job_no_record_and_no_such_step(store: Store, untouched: Untouched) -> None:
    job_id = begin(store).job_id
    store.job_cancel([job_id], "bob")
    held = with_steps(store, "a", "b")
    abort(store, held)
    plain = store.job_enqueue([new_job(store)])[0]
    with untouched():
        refused(rewind(store, 10**9, "a"), NotFound)
        assert "recorded nothing" in str(refused(rewind(store, getattr(plain, "job_id", 0), "a"), CopyRefused))
        assert "are 'b', 'a'" in str(refused(rewind(store, held.job_id, "c"), CopyRefused))
        refused(rewind(store, held.job_id, "a#2"), CopyRefused)


def test_a_transaction_is_repeated_with_force_only(store: Store, untouched: Untouched) -> None:
    """F17."""
    held = with_steps(store, "a", "b")
    record(store, held, "book", seq=3, kind="transact")
    record(store, held, "d", seq=4)
    abort(store, held)
    with untouched():
        assert "'book'" in str(refused(rewind(store, held.job_id, "b"), CopyRefused))
        assert "'book'" in str(refused(rewind(store, held.job_id, "book"), CopyRefused))
    assert rewind(store, held.job_id, "d") == Rewound(held.job_id, 2, 3, 1, 0)
    abort(store, claim_one(store))
    assert "'book'" in str(refused(rewind(store, held.job_id, "b"), CopyRefused))
    assert rewind(store, held.job_id, "b", force=True) == Rewound(held.job_id, 3, 1, 2, 0)
    assert store.transitions("job", str(held.job_id))[-1].metadata == '{"to":"b","force":true}'
    assert store.verify() == []


def test_a_step_that_happens_once_is_repeated_with_force_only(store: Store, untouched: Untouched) -> None:
    """Also if it was begun and is not on record, and if it is a copy."""
    held = with_steps(store, "a", "b")
    store.step_begin([step(held, "charge")])
    abort(store, held)
    with untouched():
        assert "'charge'" in str(refused(rewind(store, held.job_id, "b"), CopyRefused))
    store.job_retry([held.job_id], "bob")
    held = claim_one(store)
    record(store, held, "charge", seq=3)
    record(store, held, "d", seq=4)
    abort(store, held)
    assert rewind(store, held.job_id, "d") == Rewound(held.job_id, 2, 3, 1, 0)
    held = claim_one(store)
    assert load(store, held).begun == ()
    abort(store, held)
    with untouched():
        assert "'charge'" in str(refused(rewind(store, held.job_id, "charge"), CopyRefused))
    assert rewind(store, held.job_id, "charge", force=True) == Rewound(held.job_id, 3, 2, 1, 0)


def test_signals_of_repeated_waits_are_in_the_mailbox_again(store: Store, clock: StoreClock) -> None:
    """In their order, from the one who rewinds; those of kept waits are not; and so once more after another rewind."""
    held = begin(store, attempts_max=1)
    sent = [is_sent(send(store, held.job_id, payload=str(n), dedupe=str(n))).seq for n in range(4)]
    for n in range(3):
        assert look(store, held, signal(), path=f"w{n}", outcome=step(held, f"w{n}", seq=n + 1)).value == str(n)
    abort(store, held)
    clock.advance(10)
    assert rewind(store, held.job_id, "w1", reason="again") == Rewound(held.job_id, 2, 1, 2, 2)
    (copy,) = steps_on_record(store, held.job_id)
    assert (copy.signal_name, copy.signal_seq) == ("go", sent[0])
    listed = store.signal_list(held.job_id)
    assert [(row.payload, row.dedupe, row.actor, row.reason, row.path) for row in listed] == [
        ("0", "0", "bob", None, "w0"),
        ("1", "1", "bob", None, "w1"),
        ("2", "2", "bob", None, "w2"),
        ("3", "3", "bob", None, None),
        ("1", None, "bob", "again", None),
        ("2", None, "bob", "again", None),
    ]
    held = claim_one(store)
    for n, payload in enumerate(("3", "1"), start=1):
        outcome = step(held, f"w{n}", seq=n + 1, generation=2)
        assert look(store, held, signal(), path=f"w{n}", outcome=outcome).value == payload
    abort(store, held)
    assert rewind(store, held.job_id, "w0") == Rewound(held.job_id, 3, 0, 3, 3)
    assert [row.payload for row in store.signal_list(held.job_id) if row.path is None] == ["2", "0", "3", "1"]
    assert store.verify() == []


def test_the_end_of_a_wait_goes_with_the_wait(store: Store) -> None:
    """It is recorded before the wait has ended; a wait that is repeated has its whole time again."""
    held = begin(store, attempts_max=1)
    for n, (path, kind) in enumerate(
        (("a~deadline", "deadline"), ("b~deadline", "deadline"), ("now~", "call"), ("a", "signal"), ("b", "signal")),
        start=1,
    ):
        record(store, held, path, seq=n, kind=kind, value='"2030-01-01T00:00:00.000000+00:00"')
    abort(store, held)
    assert rewind(store, held.job_id, "b") == Rewound(held.job_id, 2, 3, 2, 0)
    assert [row.path for row in steps_on_record(store, held.job_id)] == ["a", "a~deadline", "now~"]


def test_a_scope_is_repeated_whole_or_from_a_step_inside(store: Store) -> None:
    held = begin(store, attempts_max=1)
    for n, (path, scope) in enumerate((("a", ""), ("s/b", "s"), ("s/c", "s"), ("s", ""), ("s0", "")), start=1):
        record(store, held, path, seq=n, kind="scope" if path == "s" else "call", scope=scope)
    abort(store, held)
    assert rewind(store, held.job_id, "s/c") == Rewound(held.job_id, 2, 2, 3, 0)
    held = claim_one(store)
    assert paths(load(store, held)) == ["a", "s/b"]
    abort(store, held)
    assert rewind(store, held.job_id, "s") == Rewound(held.job_id, 3, 1, 1, 0)
    assert paths(load(store, claim_one(store))) == ["a"]


def test_what_was_undone_is_not_kept(store: Store, untouched: Untouched) -> None:
    held = with_steps(store, "a", "b", undo=True)
    store.undo_begin(held.job_id, held.attempt, "it failed")
    record(store, held, "b~undo", seq=3, kind="undo")
    abort(store, held)
    store.job_retry([held.job_id], "bob")
    abort(store, claim_one(store))
    assert rewind(store, held.job_id, "b") == Rewound(held.job_id, 2, 1, 1, 0)
    held = claim_one(store)
    history = load(store, held)
    assert (paths(history), history.undoing, history.cause) == (["a"], False, None)
    store.undo_begin(held.job_id, held.attempt, "it failed again")
    record(store, held, "b", seq=4, generation=2)
    record(store, held, "a~undo", seq=5, kind="undo", generation=2)
    abort(store, held)
    with untouched():
        assert "'a'" in str(refused(rewind(store, held.job_id, "b"), CopyRefused))
    assert rewind(store, held.job_id, "a") == Rewound(held.job_id, 3, 0, 2, 0)


def test_children_stay_with_the_record_that_spawned_them(store: Store, untouched: Untouched) -> None:
    """A group is neither divided from its join nor left behind with children that have not ended."""
    held = begin(store, attempts_max=1)
    record(store, held, "a")
    spawn(store, held, 1, step=step(held, "kids", seq=2, kind="spawn"))
    record(store, held, "c", seq=3)
    park(store, held, children())
    with untouched():
        assert "go back to 'kids'" in str(refused(rewind(store, held.job_id, "c", force=True), CopyRefused))
        assert "have not ended" in str(refused(rewind(store, held.job_id, "a", force=True), CopyRefused))
    finish(store, claim_one(store, tasks=("mail.child",)))
    held = claim_one(store)
    outcome = step(held, "kids~join", seq=4)
    assert look(store, held, children(), outcome=outcome).value == '{"succeeded":1,"failed":0,"dead":0}'
    record(store, held, "d", seq=5)
    abort(store, held)
    assert rewind(store, held.job_id, "d") == Rewound(held.job_id, 2, 4, 1, 0)
    held = claim_one(store)
    abort(store, held)
    with untouched():
        assert "go back to 'kids'" in str(refused(rewind(store, held.job_id, "c"), CopyRefused))
    assert rewind(store, held.job_id, "kids") == Rewound(held.job_id, 3, 1, 3, 0)
    assert store.verify() == []
    held = claim_one(store)
    spawn(store, held, 1, step=step(held, "kids", seq=2, kind="spawn", generation=3))
    assert [group.generation for group in store.child_groups(held.job_id)] == [3]
    assert len(claim(store, tasks=("mail.child",))) == 1


def test_it_wakes_a_worker(store: Store, clock: StoreClock) -> None:
    """A claim that was bounded before finds the job."""
    held = with_steps(store, "a")
    abort(store, held)
    assert claim(store) == []
    clock.advance(1)
    rewind(store, held.job_id, "a")
    assert [one.job_id for one in claim(store)] == [held.job_id]


def test_what_another_job_undoes(store: Store, untouched: Untouched) -> None:
    """It is not rewound before that has succeeded, and what was undone is not kept; nor is that job itself rewound."""
    held = with_steps(store, "a", "b", undo=True)
    abort(store, held)
    undo_id = store.ids_reserve(1)
    begun = store.undo_start(NewUndo(id=undo_id, job_id=held.job_id, nonce=1, cause="asked"))
    assert not isinstance(begun, DetentError), begun
    with untouched():
        assert f"job {undo_id} undoes its steps" in str(refused(rewind(store, held.job_id, "a"), CopyRefused))
        assert "another job" in str(refused(rewind(store, undo_id, "a"), CopyRefused))
    finish(store, claim_one(store))
    with untouched():
        assert "'a'" in str(refused(rewind(store, held.job_id, "b"), CopyRefused))
    assert rewind(store, held.job_id, "a") == Rewound(held.job_id, 2, 0, 2, 0)
