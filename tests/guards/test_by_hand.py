"""Typed by hand into the database: what the lifecycle does not declare is refused by the database itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.lifecycle.library import JOB
from detent.model.service_records import TaskTimes
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim_one, commit, enqueue, event, finish, state
from tests.guards.prompt import Prompt

PAIRS = [(source, target) for source in JOB.states for target in JOB.states if source != target]
POSSIBLE = set(JOB.ordinary_pairs()) | set(JOB.logged_pairs())
UNDECLARED = [pair for pair in PAIRS if pair not in POSSIBLE] + [(source, "melted") for source in JOB.states]


def brought_to(store: Store, found: str) -> int:
    """A job that came into this state in the ordinary way."""
    job_id = enqueue(store, dead_letter=found != "failed")
    match found:
        case "running":
            claim_one(store)
        case "succeeded":
            finish(store, claim_one(store))
        case "failed" | "quarantined":
            abort(store, claim_one(store), error="boom", fatal=True)
        case "cancelled":
            store.job_cancel([job_id], "ana")
    assert state(store, job_id) == found
    return job_id


def logged(job_id: int, source: str, target: str, prompt: Prompt, attempt: str = "attempt") -> str:
    """The line in the log that a move of this pair would need."""
    return (
        "INSERT INTO {transition_log} (entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, at) "
        f"SELECT 'job', '{job_id}', id, {attempt}, '{source}', '{target}', 'retry', 'me', {prompt.now()} "
        f"FROM {{job}} WHERE id = {job_id}"
    )


@pytest.mark.parametrize("source", JOB.states)
def test_a_bare_set_state_is_refused(store: Store, prompt: Prompt, source: str) -> None:
    """L2, G4: undeclared, or declared but without its record: no state changes by a bare SET state."""
    job_id = brought_to(store, source)
    for target in [*(target for target in JOB.states if target != source), "melted"]:
        prompt.refuses(f"UPDATE {{job}} SET state = '{target}' WHERE id = {job_id}")
    assert state(store, job_id) == source


@pytest.mark.parametrize("source", JOB.states)
def test_an_undeclared_move_is_refused_however_well_it_is_dressed(store: Store, prompt: Prompt, source: str) -> None:
    """L2: also with a line in the log, and with every other column as that state would have it."""
    job_id = brought_to(store, source)
    for target in (target for found, target in UNDECLARED if found == source):
        for change in dressed_as(target, prompt):
            prompt.refuses(logged(job_id, source, target, prompt), f"UPDATE {{job}} SET {change} WHERE id = {job_id}")
    assert state(store, job_id) == source


def dressed_as(target: str, prompt: Prompt) -> tuple[str, str]:
    """The settings that a job in this state would have: all of them, and those that a careful forger would choose."""
    rests = target not in ("pending", "running")
    columns = {
        "state": f"'{target}'",
        "finished_at": prompt.now() if rests else "NULL",
        "committed_at": f"coalesce(committed_at, {prompt.now()})" if target == "succeeded" else "NULL",
        "lease_id": "coalesce(lease_id, 1)",
        "leased_at": f"coalesce(leased_at, {prompt.now()})",
        "attempt": "attempt + 1" if target == "running" else "attempt",
        "ended": "attempt",
    }
    settings = ", ".join(f"{column} = {value}" for column, value in columns.items())
    only_what_differs = ", ".join(
        f"{column} = {columns[column]}" for column in ("state", "finished_at", "committed_at", "ended")
    )
    return settings, only_what_differs


@pytest.mark.parametrize(("source", "target"), JOB.logged_pairs())
def test_a_line_in_the_log_serves_its_own_move_only(store: Store, prompt: Prompt, source: str, target: str) -> None:
    """G4: a line of another pair, or of another attempt, does not carry a declared move."""
    # Only a graph ends without an attempt.
    is_graph = source == "pending" and target in ("succeeded", "failed")
    job_id = enqueue(store, task="detent.graph") if is_graph else brought_to(store, source)
    finished = prompt.now() if target != "pending" else "NULL"
    committed = prompt.now() if target == "succeeded" else "NULL"
    change = f"state = '{target}', finished_at = {finished}, committed_at = {committed}"
    update = f"UPDATE {{job}} SET {change} WHERE id = {job_id}"
    prompt.refuses(logged(job_id, source, target, prompt, attempt="attempt + 1"), update)
    prompt.refuses(logged(job_id, target, source, prompt), update)
    prompt.refuses(logged(job_id, source, "running", prompt), update)
    prompt.run(logged(job_id, source, target, prompt), update)
    assert state(store, job_id) == target


@pytest.mark.parametrize("target", ["succeeded", "failed"])
def test_a_job_that_is_no_graph_ends_with_an_attempt_only(store: Store, prompt: Prompt, target: str) -> None:
    """G4: a line in the log does not carry a pending job to success, or to failure."""
    job_id = enqueue(store)
    committed = prompt.now() if target == "succeeded" else "NULL"
    change = f"state = '{target}', finished_at = {prompt.now()}, committed_at = {committed}"
    prompt.refuses(logged(job_id, "pending", target, prompt), f"UPDATE {{job}} SET {change} WHERE id = {job_id}")


def test_an_old_line_does_not_serve_again(store: Store, prompt: Prompt) -> None:
    """G4: the line of an earlier retry does not carry a second one, many attempts later."""
    job_id = brought_to(store, "quarantined")
    store.job_retry([job_id], "ana")
    abort(store, claim_one(store), fatal=True)
    prompt.refuses(f"UPDATE {{job}} SET state = 'pending', finished_at = NULL WHERE id = {job_id}")


@pytest.mark.parametrize("found", JOB.states)
def test_times_are_written_once(store: Store, prompt: Prompt, found: str) -> None:
    """G4: a time on record is neither changed nor taken back, in whatever state the job is."""
    job_id = brought_to(store, found)
    if found == "running":
        store.job_start([(job_id, 1)])
        store.job_commit(commit(store.claim_find(_lease_of(store, job_id))[0]))
    for column in ("created_at", "leased_at", "started_at", "committed_at"):
        there = prompt.value(f"SELECT {column} FROM {{job}} WHERE id = {job_id}") is not None
        for forged in (prompt.later(column), "NULL") if there else (prompt.now(),):
            prompt.refuses(f"UPDATE {{job}} SET {column} = {forged} WHERE id = {job_id}")


@pytest.mark.parametrize("found", JOB.states)
def test_numbers_of_the_attempt_belong_to_its_verbs(store: Store, prompt: Prompt, found: str) -> None:
    """J5, J7: the fence cannot be moved by hand."""
    job_id = brought_to(store, found)
    for change in ("attempt = attempt + 1", "attempt = attempt - 1", "ended = ended + 1", "lease_id = 77"):
        prompt.refuses(f"UPDATE {{job}} SET {change} WHERE id = {job_id}")


@pytest.mark.parametrize("found", sorted(JOB.rests))
def test_what_a_job_came_to_is_written_once(store: Store, prompt: Prompt, found: str) -> None:
    """G4: how and when a job came to rest, and how many attempts it had, is not changed by hand."""
    job_id = brought_to(store, found)
    for change in (f"finished_at = {prompt.later('finished_at')}", "result = '1'", "error = 'e'", "attempts_max = 99"):
        prompt.refuses(f"UPDATE {{job}} SET {change} WHERE id = {job_id}")


@pytest.mark.parametrize("found", JOB.states)
def test_who_can_tell_of_an_effect_is_said_by_the_attempt_in_progress(store: Store, prompt: Prompt, found: str) -> None:
    """C5, C7: by hand nobody makes a job one that a probe may bring back, and nobody takes back that it was begun."""
    job_id = brought_to(store, found)
    for evidence in ("'probe'", "'marker'", "'nobody'"):
        prompt.refuses(f"UPDATE {{job}} SET effect_evidence = {evidence} WHERE id = {job_id}")
    if found == "running":
        store.effect_begin(job_id, 1, "marker")
        prompt.refuses(f"UPDATE {{job}} SET effect_evidence = NULL WHERE id = {job_id}")
        abort(store, store.claim_find(_lease_of(store, job_id))[0], "error")
        prompt.refuses(f"UPDATE {{job}} SET effect_evidence = NULL WHERE id = {job_id}")
        prompt.refuses(f"UPDATE {{job}} SET effect_evidence = 'probe' WHERE id = {job_id}")


def test_what_a_job_was_asked_to_do_is_written_once(store: Store, prompt: Prompt) -> None:
    """G4"""
    job_id = enqueue(store)
    for column in ("id", "tenant", "task", "payload", "run_id", "nonce"):
        prompt.refuses(f"UPDATE {{job}} SET {column} = '7' WHERE id = {job_id}")
    for column in ("dead_letter", "idempotent"):
        prompt.refuses(f"UPDATE {{job}} SET {column} = NOT {column} WHERE id = {job_id}")


COLUMNS = "id, task, payload, nonce, due_at, created_at, attempts_max, state, attempt, ended, finished_at, committed_at"


@pytest.mark.parametrize("later", [name for name in JOB.states if name != JOB.initial])
def test_a_job_begins_at_the_beginning(store: Store, prompt: Prompt, later: str) -> None:
    """L2: no INSERT in a later state, however complete."""
    now = prompt.now()
    attempts = "1, 0" if later == "running" else "1, 1"
    finished = "NULL" if later == "running" else now
    committed = now if later == "succeeded" else "NULL"
    prompt.refuses(
        f"INSERT INTO {{job}} ({COLUMNS}, lease_id, leased_at) "
        f"VALUES (99, 't', '1', 1, {now}, {now}, 4, '{later}', {attempts}, {finished}, {committed}, 1, {now})"
    )


@pytest.mark.parametrize("state_now", ["pending", "succeeded"])
def test_a_job_is_not_replaced(store: Store, prompt: Prompt, state_now: str) -> None:
    """L2: neither a REPLACE nor an upsert puts another job in its place."""
    job_id = brought_to(store, "succeeded")
    now = prompt.now()
    finished, committed, attempts = ("NULL", "NULL", "0, 0") if state_now == "pending" else (now, now, "1, 1")
    values = f"VALUES ({job_id}, 't', '1', 1, {now}, {now}, 4, '{state_now}', {attempts}, {finished}, {committed})"
    if prompt.sqlite:
        prompt.refuses(f"INSERT OR REPLACE INTO {{job}} ({COLUMNS}) {values}")
        prompt.refuses(f"REPLACE INTO {{job}} ({COLUMNS}) {values}")
    else:
        prompt.refuses(f"INSERT INTO {{job}} ({COLUMNS}) {values}")
        prompt.refuses(
            f"INSERT INTO {{job}} ({COLUMNS}) {values} ON CONFLICT (id) DO UPDATE SET payload = EXCLUDED.payload"
        )


@pytest.mark.parametrize("found", JOB.states)
def test_a_job_does_not_go_before_the_horizon(store: Store, prompt: Prompt, found: str) -> None:
    """G4: nobody can delete a record at run time."""
    job_id = brought_to(store, found)
    prompt.refuses(f"DELETE FROM {{job}} WHERE id = {job_id}")


def test_a_horizon_does_not_take_what_still_runs(store: Store, prompt: Prompt) -> None:
    """G4: below a horizon only what rests may go."""
    for found in ("running", "pending"):
        job_id = brought_to(store, found)
        prompt.refuses(
            f"INSERT INTO {{horizon}} (before, actor, at) VALUES ({prompt.now()}, 'me', {prompt.now()})",
            f"DELETE FROM {{job}} WHERE id = {job_id}",
        )


@pytest.fixture
def record(store: Store, clock: StoreClock) -> int:
    """A job with a line in every table of the record; a second one is pruned, so there is a horizon too."""
    store.job_cancel([enqueue(store)], "ana")
    clock.advance(1)
    assert store.job_prune(clock.now(), None, 10, "ana").jobs == 1
    job_id = enqueue(store)
    held = claim_one(store)
    store.event_append([event(held, key="k")])
    abort(store, held, error="boom", fatal=True)
    store.job_retry([job_id], "ana", "mended")
    finish(store, claim_one(store))
    return job_id


APPEND_ONLY = {
    "event": "message = 'changed'",
    "execution": "outcome = 'done'",
    "transition_log": "actor = 'nobody'",
    "horizon": "actor = 'nobody'",
    "migration": "checksum = 'x'",
    "identity": "identity = 'another'",
}


@pytest.mark.parametrize("name", APPEND_ONLY)
def test_the_record_is_append_only(record: int, prompt: Prompt, name: str) -> None:
    """E1, G4: UPDATE, DELETE and TRUNCATE are refused by the database itself."""
    assert prompt.value(f"SELECT count(*) FROM {{{name}}}") != 0
    prompt.refuses(f"UPDATE {{{name}}} SET {APPEND_ONLY[name]}")
    prompt.refuses(f"DELETE FROM {{{name}}}")
    if not prompt.sqlite:
        prompt.refuses(f"TRUNCATE {{{name}}}")
        prompt.refuses(f"TRUNCATE {{{name}}} CASCADE")


def test_the_jobs_are_not_truncated(record: int, prompt: Prompt) -> None:
    """G4"""
    prompt.refuses("DELETE FROM {job}" if prompt.sqlite else "TRUNCATE {job}")


@pytest.mark.parametrize("name", APPEND_ONLY)
def test_a_record_is_not_replaced(record: int, prompt: Prompt, name: str) -> None:
    """E1: a line put in the place of another is refused like an update."""
    if prompt.sqlite:
        prompt.refuses(f"INSERT OR REPLACE INTO {{{name}}} SELECT * FROM {{{name}}}")
    else:
        prompt.refuses(f"INSERT INTO {{{name}}} SELECT * FROM {{{name}}}")


def execution(job_id: int, attempt: int, outcome: str, prompt: Prompt) -> str:
    """An INSERT of an ended attempt."""
    now = prompt.now()
    done = outcome == "done"
    ended, rest = (
        ("done_at, committed_at", f"{now}, {now}, 'succeeded'") if done else ("aborted_at", f"{now}, 'pending'")
    )
    return (
        f"INSERT INTO {{execution}} (job_id, attempt, worker, leased_at, outcome, counted, {ended}, next_state) "
        f"VALUES ({job_id}, {attempt}, 'me', {now}, '{outcome}', {1 if prompt.sqlite else 'true'}, {rest})"
    )


def test_a_second_commit_is_refused(record: int, prompt: Prompt) -> None:
    """C1: a unique constraint says so, not only the code."""
    prompt.refuses(execution(record, 3, "done", prompt))
    prompt.refuses(execution(record, 2, "error", prompt))
    prompt.refuses(f"UPDATE {{job}} SET committed_at = {prompt.later('committed_at')} WHERE id = {record}")


def test_a_committed_job_that_runs_is_not_committed_again(store: Store, prompt: Prompt) -> None:
    """C1: nor brought back to pending with the mark taken away."""
    job_id = enqueue(store)
    store.job_commit(commit(claim_one(store)))
    prompt.refuses(f"UPDATE {{job}} SET committed_at = {prompt.later('committed_at')} WHERE id = {job_id}")
    prompt.refuses(f"UPDATE {{job}} SET state = 'pending', ended = attempt WHERE id = {job_id}")
    prompt.refuses(f"UPDATE {{job}} SET state = 'pending', ended = attempt, committed_at = NULL WHERE id = {job_id}")


@pytest.mark.parametrize("forged", ["''", "NULL"])
def test_nobody_acts_without_a_name(store: Store, prompt: Prompt, forged: str) -> None:
    """E4: and a forced move needs its reason."""
    job_id = brought_to(store, "quarantined")
    line = logged(job_id, "quarantined", "pending", prompt)
    prompt.refuses(line.replace("'me'", forged))
    forced = line.replace("actor, at)", "actor, at, forced)").replace(
        f"{prompt.now()} FROM", f"{prompt.now()}, {1 if prompt.sqlite else 'true'} FROM"
    )
    prompt.refuses(forced)


def _lease_of(store: Store, job_id: int) -> int:
    (row,) = store.job_get([job_id])
    assert row is not None
    assert row.lease_id is not None
    return row.lease_id


def test_a_result_goes_through_its_door_and_by_no_other_way(store: Store, prompt: Prompt) -> None:
    """J13, G4: a succeeded job is final but for its result, once, with the mark, and when its task's time is over."""
    job_id = enqueue(store)
    finish(store, claim_one(store), '"kept"')
    drop = f"UPDATE {{job}} SET result = NULL, result_dropped_at = {prompt.now()} WHERE id = {job_id}"
    prompt.refuses(drop)
    store.task_times_put([TaskTimes(task="mail.send", result_ttl=900_000_000.0)])
    prompt.refuses(drop)
    store.task_times_put([TaskTimes(task="mail.send", result_ttl=60.0)])
    for change in (
        "result = NULL",
        "result = '7'",
        f"result_dropped_at = {prompt.now()}",
        f"result = '7', result_dropped_at = {prompt.now()}",
        f"result = NULL, result_dropped_at = {prompt.now()}, error = 'x'",
        f"result = NULL, result_dropped_at = {prompt.now()}, finished_at = {prompt.later('finished_at')}",
        f"result = NULL, result_dropped_at = {prompt.now()}, state = 'cancelled'",
        "result = NULL, result_dropped_at = finished_at",
    ):
        prompt.refuses(f"UPDATE {{job}} SET {change} WHERE id = {job_id}")
    prompt.run(drop)
    prompt.refuses(f"UPDATE {{job}} SET result_dropped_at = NULL WHERE id = {job_id}")
    prompt.refuses(f"UPDATE {{job}} SET result = '7' WHERE id = {job_id}")
    prompt.refuses(f"UPDATE {{job}} SET result = '7', result_dropped_at = NULL WHERE id = {job_id}")
    assert state(store, job_id) == "succeeded"


class TestLinesOfNoJob:
    """E1, J16: below the horizon a line may go that nobody needs, and no other."""

    LINES = "SELECT count(*) FROM {transition_log} WHERE entity = 'queue'"

    def test_above_the_horizon_every_line_stays(self, store: Store, prompt: Prompt) -> None:
        store.queue_pause("mail", "ana")
        store.queue_resume("mail", "ana")
        prompt.refuses("DELETE FROM {transition_log} WHERE trigger = 'pause'")

    def test_below_it_the_newest_of_an_entity_stays(self, store: Store, prompt: Prompt, clock: StoreClock) -> None:
        store.queue_pause("mail", "ana")
        store.queue_resume("mail", "ana")
        clock.advance(10)
        store.job_prune(clock.now(), None, 1, "ana")
        prompt.refuses("DELETE FROM {transition_log} WHERE trigger = 'resume'")
        prompt.refuses("DELETE FROM {transition_log}")
        prompt.refuses("UPDATE {transition_log} SET actor = 'nobody'")
        prompt.run("DELETE FROM {transition_log} WHERE trigger = 'pause'")
        assert prompt.value(self.LINES) == 1

    def test_the_newest_horizon_stays(self, store: Store, prompt: Prompt, clock: StoreClock) -> None:
        first = clock.advance(10)
        store.job_prune(first, None, 1, "ana")
        prompt.refuses("DELETE FROM {horizon}")
        second = clock.advance(10)
        store.job_prune(second - timedelta(seconds=5), None, 1, "ana")
        prompt.refuses("DELETE FROM {horizon} WHERE before = (SELECT max(before) FROM {horizon})")
        prompt.run("DELETE FROM {horizon} WHERE before = (SELECT min(before) FROM {horizon})")
        assert prompt.value("SELECT count(*) FROM {horizon}") == 1
