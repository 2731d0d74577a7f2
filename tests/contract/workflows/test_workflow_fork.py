"""workflow_fork: another job begins with copies of the steps of a workflow, which is left as it is."""

from __future__ import annotations

from typing import Any

import pytest

from detent.errors import CopyRefused, DetentError, GuardViolation, NotFound
from detent.model.copy_records import Fork, Forked
from detent.model.workflow_records import StepRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish, job
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
from tests.contract.workflows.test_workflow_rewind import rewind, steps_on_record, with_steps


def fork(store: Store, job_id: int, at: str | None = None, **more: Any) -> Forked | DetentError:
    """Fork a job in one transaction; nothing stays of one that is refused."""
    fields: dict[str, Any] = {"actor": "bob", "seed": "here"} | more
    refusal: list[DetentError] = []

    def work(verbs: Any) -> Forked:
        answer = verbs.workflow_fork(Fork(job_id=job_id, new_id=enqueue(verbs), at=at, **fields))
        if isinstance(answer, DetentError):
            refusal.append(answer)
            raise answer
        assert isinstance(answer, Forked)
        return answer

    try:
        return store.together(work)
    except DetentError:
        return refusal[0]


def forked(answer: object) -> int:
    assert isinstance(answer, Forked), answer
    return answer.job_id


def everything(store: Store, job_id: int) -> tuple[Any, ...]:
    """What is on record about a job."""
    generations = [steps_on_record(store, job_id, n) for n in (1, 2, 3)]
    lists = (store.transitions("job", str(job_id)), store.job_executions(job_id), store.signal_list(job_id))
    return job(store, job_id), *store.workflow_get([job_id]), *generations, *lists, store.child_groups(job_id)


@pytest.mark.parametrize("found", ["succeeded", "running", "parked", "quarantined"])
def test_it_begins_with_the_steps_before(store: Store, clock: StoreClock, found: str) -> None:
    """F17: whatever the state of the other, which is byte-equal afterwards."""
    held = with_steps(store, "a", "b", "c", version=3, undo=True)
    match found:
        case "succeeded":
            finish(store, held)
        case "parked":
            park(store, held, signal(), version=3)
        case "quarantined":
            abort(store, held)
    clock.advance(60)
    before = everything(store, held.job_id)
    replaced = (("a", '"other"'),)
    new = forked(fork(store, held.job_id, "c", replaced=replaced, reason="what if", metadata='{"at":"c"}'))
    assert everything(store, held.job_id) == before
    copies, originals = steps_on_record(store, new), steps_on_record(store, held.job_id)
    for copy, original in zip(copies, originals[:2], strict=True):
        differs: dict[str, Any] = {"job_id": new, "attempt": 0, "undo": False}
        if copy.path == "a":
            differs["value"] = '"other"'
        same = {name: differs.get(name, getattr(original, name)) for name in StepRow.__struct_fields__}
        assert copy == StepRow(**same)
    (row,) = store.workflow_get([new])
    assert row is not None
    assert (row.version, row.generation, row.forked_from, row.root_id, row.depth, row.parent_id, row.steps) == (
        3,
        1,
        held.job_id,
        new,
        0,
        None,
        2,
    )
    line = store.transitions("job", str(new))[-1]
    assert (line.from_state, line.to_state, line.trigger, line.actor, line.reason, line.metadata) == (
        "pending",
        "pending",
        "fork",
        "bob",
        "what if",
        '{"at":"c"}',
    )
    assert store.verify() == []
    (again,) = claim(store)
    assert (again.job_id, again.attempt) == (new, 1)
    history = load(store, again)
    assert (history.version, history.forked_from, paths(history)) == (3, held.job_id, ["a", "b"])
    assert history.seeds == "3 here/1\n"
    finish(store, again)
    assert everything(store, held.job_id) == before
    assert store.verify() == []


def test_only_a_worker_that_supports_its_version_claims_it(store: Store) -> None:
    """The fork stands in the lane of its version, like the other."""
    held = with_steps(store, "a", version=3)
    finish(store, held)
    new = forked(fork(store, held.job_id))
    assert [one.version for one in store.workflow_versions()] == [3]
    assert [one.job_id for one in claim(store)] == [new]


def test_forks_of_forks(store: Store) -> None:
    """F17: each is divided like any other record; a step that happens once stays one."""
    held = with_steps(store, "a", "b")
    store.step_begin([step(held, "charge")])
    record(store, held, "charge", seq=3)
    record(store, held, "d", seq=4)
    finish(store, held)
    first = forked(fork(store, held.job_id, "d"))
    held = claim_one(store)
    record(store, held, "d", seq=4, value="2")
    record(store, held, "e", seq=5)
    finish(store, held)
    second = forked(fork(store, first, "e"))
    assert [(row.path, row.value) for row in steps_on_record(store, second)][-1] == ("d", "2")
    held = claim_one(store)
    assert load(store, held).seeds == "4 here/1\n5 here/1\n"
    abort(store, held)
    refused(fork(store, second, "b"), CopyRefused, word="forked")
    third = forked(fork(store, second, "b", force=True))
    assert [row.path for row in steps_on_record(store, third)] == ["a"]
    assert [row.forked_from for row in store.workflow_get([second, third]) if row] == [first, second]
    assert store.verify() == []


def test_a_fork_is_rewound(store: Store) -> None:
    """Its own steps follow from its own chance, the copies from that of the other."""
    held = with_steps(store, "a", "b")
    finish(store, held)
    new = forked(fork(store, held.job_id, seed="first"))
    held = claim_one(store)
    record(store, held, "c", seq=3)
    record(store, held, "d", seq=4)
    abort(store, held)
    rewind(store, new, "d", seed="second")
    held = claim_one(store)
    assert load(store, held).seeds == "3 first/1\n4 second/1\n"
    assert store.verify() == []


def test_it_has_the_signals_that_its_steps_took(store: Store) -> None:
    """Unread ones stay with the other. A signal that was taken before is not taken again."""
    held = begin(store)
    taken = [is_sent(send(store, held.job_id, payload=str(n), dedupe=str(n))).seq for n in range(3)]
    for n in range(2):
        assert look(store, held, signal(), path=f"w{n}", outcome=step(held, f"w{n}", seq=n + 1)).value == str(n)
    new = forked(fork(store, held.job_id, "w1"))
    (row,) = store.signal_list(new)
    assert (row.seq, row.payload, row.dedupe, row.path) == (taken[0], "0", "0", "w0")
    finish(store, held)
    held = claim_one(store)
    assert not is_sent(send(store, new, payload="0", dedupe="0")).created
    is_sent(send(store, new, payload="9"))
    outcome = step(held, "w1", seq=2)
    assert look(store, held, signal(), path="w1", outcome=outcome).value == "9"
    assert store.verify() == []


def test_replaced_values_must_be_of_copied_steps(store: Store, untouched: Untouched) -> None:
    """F17, F28: the refusal names the step and no value."""
    held = begin(store)
    for n, (path, kind, scope) in enumerate(
        (("a", "call", ""), ("nap", "sleep", ""), ("s/b", "call", "s"), ("s", "scope", ""), ("c", "call", "")), start=1
    ):
        record(store, held, path, seq=n, kind=kind, scope=scope)
    with untouched():
        for path, words in (
            ("c", "not on record before"),
            ("zz", "not on record before"),
            ("nap", "only values of"),
            ("s/b", "inside a scope"),
        ):
            error = refused(fork(store, held.job_id, "c", replaced=((path, '"s3cret"'),)), CopyRefused, step="c")
            found = [one for one in (words, repr(path), "s3cret") if one in str(error)]
            assert found == [words, repr(path)]
    new = forked(fork(store, held.job_id, "c", replaced=(("s", "7"),)))
    assert {row.path: row.value for row in steps_on_record(store, new)}["s"] == "7"


def test_a_recorded_error_may_become_a_value(store: Store) -> None:
    held = begin(store)
    record(store, held, "a", error='{"module":"builtins","name":"ValueError","message":"no"}')
    new = forked(fork(store, held.job_id, replaced=(("a", "7"),)))
    (copy,) = steps_on_record(store, new)
    assert (copy.value, copy.error) == ("7", None)


def test_refusals(store: Store, untouched: Untouched) -> None:
    empty = begin(store).job_id
    held = with_steps(store, "a", "b")
    record(store, held, "book", seq=3, kind="transact")
    with untouched():
        refused(fork(store, 10**9), NotFound)
        assert "recorded nothing" in str(refused(fork(store, empty), CopyRefused))
        assert "not on record" in str(refused(fork(store, held.job_id, "c"), CopyRefused))
        assert "'book'" in str(refused(fork(store, held.job_id, "b"), CopyRefused))
        with pytest.raises(GuardViolation):
            store.workflow_fork(Fork(job_id=held.job_id, new_id=empty, actor="bob", seed=""))
    forked(fork(store, held.job_id, "b", force=True))
    forked(fork(store, held.job_id))


def test_the_children_stay_with_the_other(store: Store, untouched: Untouched) -> None:
    """A fork after the join has its outcome; a fork at the spawn spawns others; in between it is refused."""
    held = begin(store)
    record(store, held, "a")
    spawn(store, held, 1, step=step(held, "kids", seq=2, kind="spawn"))
    spawn(store, held, 1, path="loose", step=step(held, "loose", seq=3, kind="spawn"), detached=True)
    with untouched():
        assert "go back to 'kids'" in str(refused(fork(store, held.job_id, "loose"), CopyRefused))
        assert "go back to 'kids'" in str(refused(fork(store, held.job_id), CopyRefused))
    new = forked(fork(store, held.job_id, "kids"))
    assert store.child_groups(new) == []
    park(store, held, children())
    for child in claim(store, tasks=("mail.child",)):
        finish(store, child)
    (held,) = [one for one in claim(store) if one.job_id == held.job_id]
    look(store, held, children(), outcome=step(held, "kids~join", seq=4))
    after = forked(fork(store, held.job_id))
    assert [row.path for row in steps_on_record(store, after)] == ["a", "kids", "kids~join", "loose"]
    assert store.child_groups(after) == []
    assert store.child_list(after) == []
    with untouched():
        assert "go back to 'kids'" in str(refused(fork(store, after, "loose"), CopyRefused))
    assert store.verify() == []


def test_arguments_of_the_generation(store: Store) -> None:
    held = begin(store)
    record(store, held, "a")
    store.workflow_continue(held.job_id, held.attempt, '{"to":8}', "ana")
    held = claim_one(store)
    record(store, held, "b", generation=2)
    finish(store, held)
    forked(fork(store, held.job_id))
    history = load(store, claim_one(store))
    assert (history.generation, paths(history), history.payload) == (1, ["b"], '{"to":8}')
    forked(fork(store, held.job_id, keeps_payload=False))
    assert load(store, claim_one(store)).payload is None
