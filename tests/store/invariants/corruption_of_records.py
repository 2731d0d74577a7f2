"""More planted corruption, of what is never rewritten: executions, lines of the log, events, and the schema itself.

Importing this module adds its cases to `CASES`.
"""

from __future__ import annotations

from detent.model.service_records import WorkerSeen
from tests.store.invariants.corruption import GHOST, corrupts, execution, line, newest_line
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner


@corrupts("attempts_are_complete", "failed", heals=False)
def execution_lost(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{execution}} WHERE job_id = {life['failed']}")


@corrupts("attempts_are_complete", "succeeded", heals=False)
def hole_among_the_executions(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{execution}} WHERE job_id = {life['succeeded']} AND attempt = 1")


@corrupts("attempts_are_not_negative", execution("returned", 0), heals=False)
def attempt_number_zero(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{execution}} SET attempt = 0 WHERE job_id = {life['returned']}",
        without=["execution_attempt_positive"],
    )


@corrupts("commit_happens_once", "succeeded", heals=False)
def two_commits(owner: Owner, life: Life) -> None:
    owner.drop_unique_index("execution_one_commit")
    owner.plant(
        "UPDATE {execution} SET committed_at = aborted_at, done_at = aborted_at, aborted_at = NULL, outcome = 'done', "
        f"next_state = 'succeeded', next_due_at = NULL WHERE job_id = {life['succeeded']} AND attempt = 1"
    )


@corrupts("states_are_known", execution("returned", 1), heals=False)
def outcome_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{execution}} SET outcome = 'vanished' WHERE job_id = {life['returned']}",
        without=["execution_outcome_known"],
    )


@corrupts("states_are_known", newest_line, heals=False)
def log_line_to_nowhere(owner: Owner, life: Life) -> None:
    owner.plant(line(life, "cancelled", "cancelled>limbo", "retry", attempt=0))


@corrupts("succeeded_is_final", execution("succeeded", 3), heals=False)
def attempt_after_success(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {execution} (job_id, attempt, worker, leased_at, aborted_at, outcome, next_state, counted) "
        f"SELECT job_id, 3, worker, done_at, done_at, 'error', 'failed', counted FROM {{execution}} "
        f"WHERE job_id = {life['succeeded']} AND attempt = 2"
    )


@corrupts("log_moves_are_declared", newest_line, heals=False)
def success_undone_in_the_log(owner: Owner, life: Life) -> None:
    owner.plant(line(life, "succeeded", "succeeded>pending", "retry", attempt=2))


@corrupts("log_moves_are_declared", newest_line, heals=False)
def force_that_is_not_marked(owner: Owner, life: Life) -> None:
    owner.plant(line(life, "failed", "failed>quarantined", "force", forced=False))


@corrupts("log_follows_the_record", newest_line, heals=False)
def move_from_where_it_never_was(owner: Owner, life: Life) -> None:
    owner.plant(line(life, "failed", "quarantined>pending", "retry"))


@corrupts("times_are_in_order", execution("quarantined", 1), heals=False)
def started_before_it_was_leased(owner: Owner, life: Life) -> None:
    time = owner.seconds_after("leased_at", -600)
    owner.plant(f"UPDATE {{execution}} SET started_at = {time} WHERE job_id = {life['quarantined']}")


@corrupts("times_are_in_order", "running", heals=False)
def leased_before_it_was_created(owner: Owner, life: Life) -> None:
    time = owner.seconds_after("created_at", -600)
    owner.plant(f"UPDATE {{job}} SET leased_at = {time} WHERE id = {life['running']}")


@corrupts("execution_fits_its_outcome", execution("returned", 1), heals=False)
def error_that_does_not_count(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{execution}} SET counted = FALSE WHERE job_id = {life['returned']}")


@corrupts("cancelled_was_requested", execution("stopped", 1), heals=False)
def request_of_a_cancel_lost(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{transition_log}} WHERE job_id = {life['stopped']} AND trigger = 'request_cancel'")


@corrupts("events_are_complete", "succeeded", heals=False)
def event_lost(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{event}} WHERE job_id = {life['succeeded']} AND seq = 2")


@corrupts("rows_are_unique", lambda _, life: ("event", f"{life['succeeded']}/1"), heals=False)
def two_events_under_one_key(owner: Owner, life: Life) -> None:
    owner.drop_unique_index("event_one_per_key")
    owner.plant(f"UPDATE {{event}} SET key = 'the key' WHERE job_id = {life['succeeded']} AND seq IN (1, 2)")


@corrupts("no_row_is_orphaned", lambda *_: ("execution", f"{GHOST}/1"), heals=False)
def execution_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{execution}} SET job_id = {GHOST} WHERE job_id = {life['failed']}")


@corrupts("no_row_is_orphaned", lambda *_: ("event", f"{GHOST}/1"), heals=False)
def event_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{event}} SET job_id = {GHOST} WHERE job_id = {life['succeeded']} AND seq = 1")


@corrupts("no_row_is_orphaned", newest_line, heals=False)
def log_line_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {transition_log} (entity, entity_id, job_id, from_state, to_state, trigger, actor, at) "
        f"SELECT 'job', '{GHOST}', {GHOST}, 'pending', 'cancelled', 'cancel', 'eve', max(at) FROM {{transition_log}}"
    )


@corrupts("ops_run_ends_once", "ops_run", heals=False)
def ops_run_without_its_project(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{ops_run}} WHERE job_id = {life['ops_run']}")


@corrupts("ops_run_ends_once", lambda *_: ("ops_run", str(GHOST)), heals=False)
def ops_run_without_its_job(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{ops_run}} SET job_id = {GHOST} WHERE job_id = {life['ops_run']}")


@corrupts("ops_run_ends_once", "ops_run", heals=False)
def ops_run_finished_while_it_waits(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{ops_run}} SET finish_metadata = '{{{{}}}}' WHERE job_id = {life['ops_run']}")


@corrupts("no_job_is_stuck", "running", heals=False)
def nobody_at_work(owner: Owner, life: Life) -> None:
    life.clock.advance(3 * 3600)
    life.store.worker_seen(
        WorkerSeen(id=77, name="ana", host="here", pid=1, queues=None, tasks=("mail.send",), slots=1)
    )


@corrupts("guards_are_in_place", lambda owner, _: ("trigger", f"{owner.prefix}job_guard"), heals=True)
def guard_dropped(owner: Owner, life: Life) -> None:
    owner.run("DROP TRIGGER detent_job_guard" if owner.sqlite else "DROP TRIGGER job_guard ON {job}")


@corrupts(
    "constraints_are_in_place",
    lambda owner, _: ("index", "detent_execution_one_commit" if owner.sqlite else "execution_one_commit"),
    heals=False,
)
def unique_index_dropped(owner: Owner, life: Life) -> None:
    owner.drop_unique_index("execution_one_commit")


@corrupts("database_has_an_identity", lambda _, __: ("database", "identity"), heals=False)
def a_database_without_an_identity(owner: Owner, life: Life) -> None:
    owner.plant("DELETE FROM {identity}")
