"""The guards of workflows one by one, each with a way to take it out and the tests that must notice."""

from __future__ import annotations

from functools import partial

from prove.defects.defect import Edit
from prove.defects.mutant import Mutant

__all__ = ["WORKFLOW_GUARDS", "WORKFLOW_MUTANTS"]

WORKFLOW_GUARDS = ("holder of steps", "one record of a step", "one wait of a signal", "lock of a wake-up")

_STEPS = "store/workflows/functions/steps.sql"
_WAITS = "store/workflows/functions/waits.sql"
_mutant = partial(Mutant, room="workflows")
_RECORD = "contract/workflows/test_step_record.py::test_"
_RACES = "store/postgres/test_wake_races.py::test_"

WORKFLOW_MUTANTS = (
    _mutant(
        "holder of steps",
        "postgres",
        "a single step under any attempt and lease",
        (
            Edit(
                _STEPS,
                "WHERE j.id = p_job_id AND j.attempt = p_attempt AND j.state = 'running' AND j.committed_at IS NULL\n"
                "       AND (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t\n",
                "WHERE j.id = p_job_id\n",
            ),
        ),
        (
            f"{_RECORD}only_the_holder_records[postgres-True]",
            f"{_RECORD}a_step_never_follows_the_commit[postgres-True]",
        ),
    ),
    _mutant(
        "holder of steps",
        "sqlite",
        "a single step under any attempt and lease",
        (
            Edit(
                "store/workflows/sqlite_steps.py",
                "WHERE j.id = :job_id AND j.attempt = :attempt AND j.state = 'running' AND j.committed_at IS NULL\n"
                "   AND l.expires_at > :now AND",
                "WHERE j.id = :job_id AND",
            ),
        ),
        (f"{_RECORD}only_the_holder_records[sqlite-True]",),
    ),
    _mutant(
        "holder of steps",
        "postgres",
        "several steps under an expired lease",
        (
            Edit(
                _STEPS,
                "WHERE (SELECT l.expires_at FROM detent.lease l WHERE l.id = j.lease_id) > t\n         ORDER BY",
                "ORDER BY",
            ),
        ),
        (f"{_RECORD}only_the_holder_records[postgres-True]",),
    ),
    _mutant(
        "one record of a step",
        "postgres",
        "the key of a step has its time in it",
        (
            Edit(
                "store/postgres/schema/0001_tables.sql",
                "CONSTRAINT workflow_step_pkey PRIMARY KEY (job_id, generation, path),",
                "CONSTRAINT workflow_step_pkey PRIMARY KEY (job_id, generation, path, done_at),",
            ),
        ),
        (f"{_RECORD}the_second_writer_adopts_the_record[postgres]",),
    ),
    _mutant(
        "one wait of a signal",
        "postgres",
        "a signal that was taken is taken again",
        (
            Edit(
                "store/workflows/postgres_triggers.sql",
                "DELETE FROM detent.workflow_unread u WHERE u.job_id = NEW.job_id AND u.name = NEW.signal_name "
                "AND u.seq = NEW.signal_seq;",
                "NULL;",
            ),
        ),
        ("contract/workflows/test_wait_look.py::test_two_signals_two_waits[postgres]",),
    ),
    _mutant(
        "lock of a wake-up",
        "postgres",
        "a sender does not lock the job",
        (
            Edit(
                _WAITS,
                "SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id FOR UPDATE SKIP LOCKED;",
                "SELECT k.* INTO j FROM detent.job k WHERE k.id = p_job_id;",
            ),
        ),
        (
            f"{_RACES}a_signal_to_a_workflow_that_is_parking_does_not_wait",
            f"{_RACES}a_park_waits_for_a_signal_that_was_sent_before",
            f"{_RACES}the_last_child_ends_while_its_parent_parks",
            f"{_RACES}a_parent_parks_while_its_last_child_ends",
        ),
    ),
    _mutant(
        "lock of a wake-up",
        "postgres",
        "a request to wake is not left",
        (
            Edit(
                "store/workflows/functions/signals.sql",
                "INSERT INTO detent.wake_request (job_id) VALUES (item.id);",
                "NULL;",
            ),
        ),
        (
            f"{_RACES}a_signal_to_a_workflow_that_is_parking_does_not_wait",
            f"{_RACES}a_sender_apart_keeps_nobody_waiting",
            f"{_RACES}a_locked_queue_row_is_not_waited_for",
        ),
    ),
    _mutant(
        "lock of a wake-up",
        "postgres",
        "a workflow is woken although nothing has arrived",
        (
            Edit(
                _WAITS,
                "CROSS JOIN LATERAL detent.wait_arrival(p_job_id, w.kinds, w.names, w.settled) a) IS NULL THEN",
                "CROSS JOIN LATERAL detent.wait_arrival(p_job_id, w.kinds, w.names, w.settled) a) = -1 THEN",
            ),
        ),
        ("contract/workflows/test_signal_send.py::test_another_name_wakes_nobody[postgres]",),
    ),
)
