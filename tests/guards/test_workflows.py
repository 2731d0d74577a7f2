"""Typed by hand into the database: what is on record about a workflow stays as it is."""

from __future__ import annotations

import pytest

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim, finish
from tests.contract.workflows.sample_workflows import begin, look, park, record, send, signal, spawn, step
from tests.guards.prompt import Prompt

APPEND_ONLY = ("workflow_step", "workflow_step_begun", "workflow_signal")


def parked(store: Store) -> int:
    """A workflow with a row in every table, and a child that has ended."""
    held = begin(store)
    store.step_begin([step(held, "x")])
    record(store, held)
    for _ in range(2):
        send(store, held.job_id)
    look(store, held, signal())
    spawn(store, held, 2)
    finish(store, claim(store, tasks=["mail.child"])[0])
    park(store, held, signal("stop"))
    return held.job_id


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_records_are_append_only(store: Store, prompt: Prompt, table: str) -> None:
    """G4: neither changed nor deleted, and not written over."""
    job_id = parked(store)
    prompt.refuses(f"UPDATE {{{table}}} SET job_id = job_id WHERE job_id = {job_id}")
    prompt.refuses(f"DELETE FROM {{{table}}} WHERE job_id = {job_id}")
    prompt.refuses(f"INSERT INTO {{{table}}} SELECT * FROM {{{table}}} WHERE job_id = {job_id}")
    if prompt.sqlite:
        prompt.refuses(f"REPLACE INTO {{{table}}} SELECT * FROM {{{table}}} WHERE job_id = {job_id}")


def test_a_signal_is_taken_once(store: Store, prompt: Prompt) -> None:
    """By one step, and by one copy of it in each generation."""
    job_id = parked(store)
    prompt.refuses(
        "INSERT INTO {workflow_step} (job_id, generation, path, seq, kind, attempt, began_at, done_at, value, "
        "signal_name, signal_seq) SELECT s.job_id, s.generation, p.path, s.seq, s.kind, 0, s.began_at, s.done_at, "
        "s.value, s.signal_name, s.signal_seq FROM {workflow_step} s "
        "CROSS JOIN (SELECT 'a copy' AS path UNION ALL SELECT 'another') p "
        f"WHERE s.job_id = {job_id} AND s.signal_seq IS NOT NULL"
    )


def test_a_step_has_one_answer_of_a_known_kind(store: Store, prompt: Prompt) -> None:
    job_id = parked(store)
    columns = "job_id, generation, seq, attempt, began_at, done_at"
    for column, value in (("value", "NULL"), ("error", "'no'"), ("kind", "'magic'")):
        given = {"path": "'new'", "kind": "'call'", "value": "'1'", "error": "NULL"} | {column: value}
        prompt.refuses(
            f"INSERT INTO {{workflow_step}} ({columns}, {', '.join(given)}) "
            f"SELECT {columns.replace('attempt', '0')}, {', '.join(given.values())} "
            f"FROM {{workflow_step}} WHERE job_id = {job_id} AND path = 'a'"
        )


def test_only_the_running_attempt_records_a_step(store: Store, prompt: Prompt) -> None:
    """Where the check costs nothing. Elsewhere the verb alone checks it, with the holder."""
    job_id = parked(store)
    if prompt.sqlite:
        prompt.refuses(
            "INSERT INTO {workflow_step} (job_id, generation, path, seq, kind, attempt, began_at, done_at, value) "
            "SELECT job_id, generation, 'new', seq, kind, attempt, began_at, done_at, value "
            f"FROM {{workflow_step}} WHERE job_id = {job_id} AND path = 'a'"
        )


def test_what_a_workflow_began_as_is_written_once(store: Store, prompt: Prompt) -> None:
    job_id = parked(store)
    for change in ("version = 7", "root_id = 7", "depth = 7", "forked_from = 7", "generation = 0"):
        prompt.refuses(f"UPDATE {{workflow}} SET {change} WHERE job_id = {job_id}")
    prompt.refuses(f"DELETE FROM {{workflow}} WHERE job_id = {job_id}")


def test_what_a_group_of_children_consists_of_is_written_once(store: Store, prompt: Prompt) -> None:
    job_id = parked(store)
    for change in ("total = 9", "first_id = 9", "path = 'x'", "generation = 2", "succeeded = 3"):
        prompt.refuses(f"UPDATE {{child_group}} SET {change} WHERE parent_id = {job_id}")
    prompt.refuses(f"DELETE FROM {{child_group}} WHERE parent_id = {job_id}")


def test_a_parent_is_written_once(store: Store, prompt: Prompt) -> None:
    job_id = parked(store)
    prompt.refuses(f"UPDATE {{job}} SET parent_id = NULL WHERE parent_id = {job_id}")
    prompt.refuses(f"UPDATE {{job}} SET parent_id = 7 WHERE id = {job_id}")
