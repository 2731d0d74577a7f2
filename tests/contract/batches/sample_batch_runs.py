"""Batch runs for tests, in each of their states, and short calls that take a run through its life."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

from detent.errors import DetentError
from detent.model.batch_records import (
    ActionPortion,
    BatchRunRow,
    Holder,
    NewAction,
    NewBatchRun,
    Previewed,
    ReconciliationRow,
    Stepped,
    TargetJob,
    TargetRow,
)
from detent.model.records import Abort, Claimed, Finish, Finished, Violation
from detent.store.contract import Store
from detent.testing.stores import row_violations
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.reused_databases import ReusedDatabase

__all__ = [
    "act",
    "add",
    "applied_run",
    "begun",
    "broken",
    "cancel",
    "create",
    "drive",
    "finish",
    "held",
    "new_run",
    "planned",
    "previewed_run",
    "run",
    "states",
    "stepping",
    "targets",
    "work",
]

NUMBERS = count(1_000_000_000, 1000)
"""Ids that nobody has reserved: where nothing may change, not even a number may be taken. Between two of them
is room for those that are reserved, which are above all that are in use."""

PLAN, PREVIEW, DRIVE, APPLY, REVERT, LOOK, STOP = (
    f"detent.batch.{name}" for name in ("plan", "preview", "drive", "apply", "revert", "look", "stop")
)


def broken(store: Store, url: str | None = None, database: ReusedDatabase | None = None) -> list[Violation]:
    """Return what `verify` finds, but that the numbers of these tests were never reserved. With a url, only rows are
    checked, which is quicker, and through the open connections of `database` it is quicker still."""
    if database is not None:
        found = database.violations()
    else:
        found = store.verify() if url is None else row_violations(store, url)
    return [one for one in found if one.invariant != "ids_are_ahead"]


def new_run(store: Store, **overrides: Any) -> NewBatchRun:
    """A run as a client would describe it."""
    fields: dict[str, Any] = {"batch": "reprice", "payload": '{"category":"rings"}', "fingerprint": "f1"}
    fields |= {"actor": "ana", "id": next(NUMBERS)} | overrides
    return NewBatchRun(**fields)


def create(store: Store, **overrides: Any) -> BatchRunRow:
    """A run without targets yet."""
    item = new_run(store, **overrides)
    row = store.batch_create(item, new_job(store, task=PLAN, run_id=item.id))
    assert isinstance(row, BatchRunRow), row
    return row


def held(store: Store, task: str) -> Holder:
    """Claim one job of a task: what its holder says of itself."""
    (claimed,) = claim(store, tasks=[task], limit=1)
    return claimed.job_id, claimed.attempt


def finish(store: Store, holder: Holder) -> None:
    """The job has done its work."""
    assert store.job_finish([Finish(*holder)], "ana") == [Finished(*holder)]


def add(
    store: Store, holder: Holder, run_id: int, first_n: int, refs: Sequence[str], *, last: bool = False
) -> BatchRunRow | DetentError:
    """Add targets, with a job for their preview."""
    return store.target_add(
        holder, run_id, first_n, refs, new_job(store, id=next(NUMBERS), task=PREVIEW, run_id=run_id), last
    )


def planned(store: Store, refs: Sequence[str], **overrides: Any) -> BatchRunRow:
    """A run whose targets are known, and not previewed."""
    made = create(store, **overrides)
    holder = held(store, PLAN)
    row = add(store, holder, made.id, 1, refs, last=True)
    finish(store, holder)
    assert isinstance(row, BatchRunRow), row
    return row


def previewed_run(
    store: Store, refs: Sequence[str] = ("a", "b", "c"), *, same: Collection[str] = (), bad: Collection[str] = ()
) -> BatchRunRow:
    """A run whose preview is complete: `same` would stay as they are, `bad` could not be previewed."""
    made = planned(store, refs)
    holder = held(store, PREVIEW)
    items = [
        Previewed(n=n, error="no such thing")
        if ref in bad
        else Previewed(n=n, before='{"p":1}', after='{"p":1}' if ref in same else '{"p":2}', changed=ref not in same)
        for n, ref in enumerate(refs, start=1)
    ]
    row = store.target_previewed(holder, made.id, items)
    finish(store, holder)
    assert isinstance(row, BatchRunRow), row
    return row


def act(store: Store, run_id: int, action: Any = "apply", **overrides: Any) -> Any:
    """Begin an action; the answer."""
    item = NewAction(**({"id": next(NUMBERS), "run_id": run_id, "action": action, "actor": "ben"} | overrides))
    driver = new_job(store, id=next(NUMBERS), task=DRIVE, run_id=run_id, payload=f'{{"action":{item.id}}}')
    return store.batch_act(item, driver)


def cancel(store: Store, run_id: int, actor: str = "cy", reason: str | None = "a wrong list") -> Any:
    """Cancel a run; the answer."""
    return store.batch_cancel(run_id, new_job(store, id=next(NUMBERS), task=STOP, run_id=run_id), actor, reason)


def stepping(store: Store, portion: ActionPortion) -> list[TargetJob]:
    """The jobs that the targets of a portion need."""
    action = portion.action
    task = APPLY if action.action == "apply" else REVERT
    need = {
        "apply": portion.targets,
        "retry_failed": (),
        "roll_back": tuple(target for target in portion.targets if target.revert_job_id is None),
    }[action.action]
    jobs = [new_job(store, task=task, run_id=action.run_id, payload=f'{{"n":{t.n}}}', attempts_max=2) for t in need]
    return [TargetJob(target.n, job) for target, job in zip(need, jobs, strict=True)]


def drive(store: Store, *, limit: int = 100) -> Stepped:
    """Carry out the action whose job waits, as its driver would."""
    (claimed,) = claim(store, tasks=[DRIVE], limit=1)
    holder = claimed.job_id, claimed.attempt
    action_id = int(claimed.payload.removeprefix('{"action":').removesuffix("}"))
    while True:
        portion = store.batch_portion(action_id, limit)
        assert isinstance(portion, ActionPortion), portion
        answer = store.batch_step(
            holder, action_id, portion.action.cursor, portion.to_cursor, stepping(store, portion), portion.last
        )
        assert isinstance(answer, Stepped), answer
        if answer.done:
            finish(store, holder)
            return answer


def work(store: Store, task: str = APPLY, *, fails: Collection[str] = (), run_id: int | None = None) -> int:
    """Do the jobs of targets that are due, as a worker would; those of the refs in `fails` fail for good."""
    done = 0
    while batch := claim(store, tasks=[task]):
        for one in batch:
            ref = _ref_of(store, one)
            if ref in fails:
                store.job_abort(
                    [Abort(job_id=one.job_id, attempt=one.attempt, outcome="error", error="boom", fatal=True)], "ana"
                )
            else:
                finish(store, (one.job_id, one.attempt))
            done += 1
    return done


def _ref_of(store: Store, one: Claimed) -> str:
    assert one.run_id is not None
    (found,) = (t for t in store.target_list(one.run_id) if one.job_id in (t.apply_job_id, t.revert_job_id))
    return found.ref


def applied_run(store: Store, refs: Sequence[str] = ("a", "b", "c"), *, fails: Collection[str] = ()) -> BatchRunRow:
    """A run that has come to rest; `fails` could not be applied."""
    made = previewed_run(store, refs)
    assert isinstance(act(store, made.id), BatchRunRow)
    drive(store)
    work(store, fails=fails)
    return run(store, made.id)


def run(store: Store, run_id: int) -> BatchRunRow:
    """The run, which must be there."""
    row = store.batch_get(run_id)
    assert row is not None
    return row


def targets(store: Store, run_id: int) -> dict[str, TargetRow]:
    """Its targets by ref."""
    return {target.ref: target for target in store.target_list(run_id)}


def states(store: Store, run_id: int) -> dict[str, str]:
    """The states of its targets by ref."""
    return {target.ref: target.state for target in store.target_list(run_id)}


def begun(store: Store, run_id: int) -> tuple[Holder, int]:
    """A look by hand, and who holds its job."""
    look = store.reconcile_begin(run_id, None, new_job(store, task=LOOK, run_id=run_id), "ana")
    assert isinstance(look, ReconciliationRow)
    return held(store, LOOK), look.no
