"""Batch runs at the database's prompt: no run and no target moves but as declared, with its record and with its job."""

from __future__ import annotations

import pytest

from detent.lifecycle.library import BATCH_RUN, TARGET
from detent.model.batch_records import BatchRunRow
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import (
    APPLY,
    REVERT,
    act,
    applied_run,
    drive,
    previewed_run,
    run,
    targets,
    work,
)
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.guards.prompt import Prompt


def run_in(store: Store, state: str) -> BatchRunRow:
    """A run that came into this state in the ordinary way."""
    match state:
        case "preview":
            made = previewed_run(store)
        case "queued" | "applying":
            made = previewed_run(store)
            act(store, made.id)
            drive(store)
            if state == "applying":
                claim(store, tasks=[APPLY], limit=1)
        case "partial" | "failed":
            made = applied_run(store, ["a", "b"], fails=["a"] if state == "partial" else ["a", "b"])
        case "cancelled":
            made = previewed_run(store)
            store.batch_cancel(made.id, new_job(store, run_id=made.id), "ana", None)
        case _:
            made = applied_run(store)
    if state == "rolled_back":
        act(store, made.id, "roll_back")
        drive(store)
        work(store, REVERT)
    assert run(store, made.id).state == state
    return made


def logged(run_id: int, source: str, target: str, prompt: Prompt) -> str:
    """The line in the log that a move of this pair would need."""
    return (
        "INSERT INTO {transition_log} (entity, entity_id, from_state, to_state, trigger, actor, at) "
        f"VALUES ('batch_run', '{run_id}', '{source}', '{target}', 'force', 'me', {prompt.now()})"
    )


@pytest.mark.parametrize("source", BATCH_RUN.states)
def test_a_run_moves_only_as_declared_and_with_its_record(store: Store, prompt: Prompt, source: str) -> None:
    """B1: a bare SET state is refused, and what is not declared also with a line in the log: among it applied or
    rolled_back to applying, and preview to applying."""
    made = run_in(store, source)
    for target in (target for target in [*BATCH_RUN.states, "melted"] if target != source):
        bare = f"UPDATE {{batch_run}} SET state = '{target}' WHERE id = {made.id}"
        prompt.refuses(bare)
        if target not in BATCH_RUN.allowed(source):
            prompt.refuses(logged(made.id, source, target, prompt), bare)


FORBIDDEN = [("applied", "applying"), ("rolled_back", "applying"), ("preview", "applying")]


@pytest.mark.parametrize(("source", "target"), FORBIDDEN)
def test_the_three_forbidden_moves(store: Store, prompt: Prompt, source: str, target: str) -> None:
    """B1: success is immutable, what is rolled back is not applied again, and nothing is applied that was not queued;
    dressed up as that state would have it, and with its line in the log."""
    made = run_in(store, source)
    dressed = f"state = '{target}', finished_at = NULL, rolled_back_at = NULL, rollback_requested_at = NULL, "
    dressed += "rollback_requested_by = NULL, queued_at = moved_at, started_at = moved_at"
    said = prompt.refuses(
        logged(made.id, source, target, prompt), f"UPDATE {{batch_run}} SET {dressed} WHERE id = {made.id}"
    )
    assert "DT002" in said


@pytest.mark.parametrize("state", ["preview", "queued", "applying", "applied", "failed", "rolled_back"])
def test_a_target_moves_only_with_its_job(store: Store, prompt: Prompt, state: str) -> None:
    """B1: neither a bare SET state nor one with the times that go with it."""
    made = run_in(store, state)
    n = next(target.n for target in targets(store, made.id).values() if target.state == state)
    for target in (target for target in [*TARGET.states, "melted"] if target != state):
        where = f"WHERE run_id = {made.id} AND n = {n}"
        prompt.refuses(f"UPDATE {{target}} SET state = '{target}' {where}")
        applied = "moved_at" if target in ("applied", "rolled_back") else "NULL"
        prompt.refuses(f"UPDATE {{target}} SET state = '{target}', applied_at = {applied} {where}")


def test_what_was_previewed_stays(store: Store, prompt: Prompt) -> None:
    """B2: what is applied is what was read."""
    made = run_in(store, "applied")
    where = f"WHERE run_id = {made.id} AND n = 1"
    for change in ("after = '[]'", "before = NULL", "changed = NULL", "ref = 'z'", "n = 99", "apply_job_id = 1"):
        prompt.refuses(f"UPDATE {{target}} SET {change} {where}")
    for change in ("payload = '[]'", "fingerprint = 'x'", "tenant = 'x'"):
        prompt.refuses(f"UPDATE {{batch_run}} SET {change} WHERE id = {made.id}")


def test_neither_begins_in_the_middle_nor_goes_before_its_time(store: Store, prompt: Prompt) -> None:
    """B1, E1: a run begins in preview, a target with it; both go only by retention."""
    made = run_in(store, "partial")
    now = prompt.now()
    prompt.refuses(
        "INSERT INTO {batch_run} (id, batch, payload, fingerprint, actor, state, created_at, moved_at) "
        f"VALUES (7, 'b', '[]', 'f', 'me', 'queued', {now}, {now})"
    )
    prompt.refuses(
        "INSERT INTO {target} (run_id, n, ref, state, apply_job_id, created_at, moved_at) "
        f"VALUES ({made.id}, 9, 'z', 'queued', 1, {now}, {now})"
    )
    prompt.refuses(f"DELETE FROM {{target}} WHERE run_id = {made.id}")
    prompt.refuses(f"DELETE FROM {{batch_run}} WHERE id = {made.id}")
