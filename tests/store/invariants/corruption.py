"""One planted corruption after the other: what an owner did, which invariant it breaks, and the row that must be named.

`heals` says whether the records settle what it should be; otherwise repair must leave it to a person. `only` names the
database that can be damaged in this way; None is both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner

FINISHED = ("job_finished_has_time",)
GHOST = 999_999


@dataclass(frozen=True, slots=True)
class Corruption:
    """`named` gives the entity and its id as verify must name them."""

    name: str
    invariant: str
    plant: Callable[[Owner, Life], None]
    named: Callable[[Owner, Life], tuple[str, str]]
    heals: bool
    only: str | None = None


CASES: list[Corruption] = []


def pairs(cases: Iterable[Corruption]) -> list[Any]:
    """Each database with each case that it can have, for `parametrize(("kind", "case"), ..., indirect=["kind"])`."""
    return [
        pytest.param(kind, case, id=f"{kind}-{case.name}")
        for kind in ("sqlite", "postgres")
        for case in cases
        if case.only in (None, kind)
    ]


def corrupts(
    invariant: str, named: str | Callable[[Owner, Life], tuple[str, str]], *, heals: bool, only: str | None = None
) -> Callable[[Callable[[Owner, Life], None]], Callable[[Owner, Life], None]]:
    """Declare a case; `named` is the name of the job that must be found, or gives another row."""

    def name_of_job(owner: Owner, life: Life) -> tuple[str, str]:
        assert isinstance(named, str)
        return "job", str(life[named])

    def declare(plant: Callable[[Owner, Life], None]) -> Callable[[Owner, Life], None]:
        found = name_of_job if isinstance(named, str) else named
        CASES.append(Corruption(plant.__name__, invariant, plant, found, heals, only))
        return plant

    return declare


def execution(name: str, attempt: int) -> Callable[[Owner, Life], tuple[str, str]]:
    return lambda _, life: ("execution", f"{life[name]}/{attempt}")


def newest_line(owner: Owner, life: Life) -> tuple[str, str]:
    return "transition_log", str(owner.value("SELECT max(n) FROM {transition_log}"))


def line(life: Life, name: str, moves: str, trigger: str, attempt: int = 1, forced: bool = False) -> str:
    """The statement for a line in the log that nobody's verb wrote."""
    source, _, target = moves.partition(">")
    return (
        "INSERT INTO {transition_log} (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, "
        f"actor, reason, forced, at) SELECT '', 'job', '{life[name]}', {life[name]}, {attempt}, '{source}', "
        f"'{target}', '{trigger}', 'eve', 'why', {forced}, max(at) FROM {{transition_log}}"
    )


# -- the row of the job ----------------------------------------------------------------------------------------


@corrupts("state_equals_record", "failed", heals=True)
def state_moved_back_to_pending(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET state = 'pending', finished_at = NULL WHERE id = {life['failed']}")


@corrupts("state_equals_record", "succeeded", heals=True)
def success_turned_into_quarantine(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET state = 'quarantined', committed_at = NULL WHERE id = {life['succeeded']}",
    )


@corrupts("state_equals_record", "running", heals=True)
def attempt_in_flight_shown_as_pending(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET state = 'pending' WHERE id = {life['running']}", without=["job_running_has_open_attempt"]
    )


@corrupts("state_equals_record", "retried", heals=True)
def retried_job_shown_as_quarantined(owner: Owner, life: Life) -> None:
    time = owner.seconds_after("created_at", 9)
    owner.plant(f"UPDATE {{job}} SET state = 'quarantined', finished_at = {time} WHERE id = {life['retried']}")


@corrupts("state_equals_record", "ready", heals=True)
def fresh_job_shown_as_failed(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET state = 'failed', finished_at = created_at WHERE id = {life['ready']}",
    )


@corrupts("states_are_known", "returned", heals=True)
def state_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET state = 'zombie' WHERE id = {life['returned']}", without=["job_state_known", *FINISHED]
    )


@corrupts("attempts_are_complete", "failed", heals=True)
def end_of_an_attempt_forgotten(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET ended = 0 WHERE id = {life['failed']}", without=["job_running_has_open_attempt"])


@corrupts("attempts_are_not_negative", "failed", heals=True)
def negative_attempts(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET attempt = -1, ended = -1, spared = -1 WHERE id = {life['failed']}",
        without=["job_attempts_in_order"],
    )


@corrupts("spared_equals_record", "released", heals=True)
def spared_attempt_taken_away(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET spared = 0 WHERE id = {life['released']}")


@corrupts("spared_equals_record", "retried", heals=True)
def fresh_attempts_of_a_retry_taken_away(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET spared = 0 WHERE id = {life['retried']}")


@corrupts("spared_equals_record", "quarantined", heals=False)
def spared_attempt_given(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET spared = 1 WHERE id = {life['quarantined']}")


@corrupts("finished_time_equals_record", "cancelled", heals=True)
def finished_long_ago(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET finished_at = {owner.at('1999-01-01')} WHERE id = {life['cancelled']}")


@corrupts("due_time_equals_record", "let_go", heals=True)
def due_at_another_time(owner: Owner, life: Life) -> None:
    owner.run(f"UPDATE {{job}} SET due_at = {owner.seconds_after('due_at', 60)} WHERE id = {life['let_go']}")


@corrupts("succeeded_is_committed", "succeeded", heals=True)
def commit_taken_off_the_row(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET committed_at = NULL WHERE id = {life['succeeded']}", without=["job_succeeded_is_committed"]
    )


@corrupts("succeeded_is_committed", "succeeded", heals=False)
def commit_at_another_time(owner: Owner, life: Life) -> None:
    time = owner.seconds_after("committed_at", -1)
    owner.plant(f"UPDATE {{job}} SET committed_at = {time} WHERE id = {life['succeeded']}")


@corrupts("succeeded_is_committed", "quarantined", heals=False)
def commit_that_no_execution_knows(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET state = 'succeeded', committed_at = finished_at WHERE id = {life['quarantined']}")


# -- the queue, the dead letters, leases and keys --------------------------------------------------------------


@corrupts("pending_is_queued_once", "ready", heals=True)
def place_in_the_queue_lost(owner: Owner, life: Life) -> None:
    owner.run(f"DELETE FROM {{ready}} WHERE job_id = {life['ready']}")


@corrupts("pending_is_queued_once", "later", heals=True)
def timer_lost(owner: Owner, life: Life) -> None:
    owner.run(f"DELETE FROM {{waiting}} WHERE job_id = {life['later']}")


@corrupts("pending_is_queued_once", "ready", heals=True)
def two_places_in_the_queue(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {waiting} (job_id, lane_id, due_at, expires_at, priority) "
        f"SELECT job_id, lane_id, ready_at, expires_at, 3 FROM {{ready}} WHERE job_id = {life['ready']}"
    )


@corrupts("pending_is_queued_once", "ready", heals=True)
def place_in_a_strangers_lane(owner: Owner, life: Life) -> None:
    owner.run(
        "UPDATE {ready} SET lane_id = (SELECT lane_id FROM {ready} WHERE job_id = "
        f"{life['returned']}) WHERE job_id = {life['ready']}"
    )


@corrupts("pending_is_queued_once", "ready", heals=True)
def place_at_another_time(owner: Owner, life: Life) -> None:
    time = owner.seconds_after("ready_at", -60)
    owner.run(f"UPDATE {{ready}} SET ready_at = {time} WHERE job_id = {life['ready']}")


@corrupts("pending_is_queued_once", "ready", heals=True)
def place_that_never_expires(owner: Owner, life: Life) -> None:
    owner.run(f"UPDATE {{ready}} SET expires_at = NULL WHERE job_id = {life['ready']}")


@corrupts("pending_is_queued_once", "later", heals=True)
def place_of_another_priority(owner: Owner, life: Life) -> None:
    owner.run(f"UPDATE {{waiting}} SET priority = 9 WHERE job_id = {life['later']}")


@corrupts("pending_is_queued_once", "succeeded", heals=True)
def finished_job_offered_again(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {ready} (lane_id, ready_at, job_id) "
        f"SELECT 1, due_at, id FROM {{job}} WHERE id = {life['succeeded']}"
    )


@corrupts("quarantined_is_dead", "quarantined", heals=True)
def dead_letter_lost(owner: Owner, life: Life) -> None:
    owner.run(f"DELETE FROM {{dead}} WHERE job_id = {life['quarantined']}")


@corrupts("quarantined_is_dead", "unknown", heals=True)
def dead_letter_of_the_unknown_lost(owner: Owner, life: Life) -> None:
    owner.run(f"DELETE FROM {{dead}} WHERE job_id = {life['unknown']}")


@corrupts("quarantined_is_dead", "set_aside", heals=True)
def forced_dead_letter_shown_to_another_tenant(owner: Owner, life: Life) -> None:
    owner.run(f"UPDATE {{dead}} SET tenant = 'eve' WHERE job_id = {life['set_aside']}")


@corrupts("quarantined_is_dead", "failed", heals=True)
def dead_letter_of_a_job_that_has_none(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {dead} (job_id, tenant, queue, task, reason, quarantined_at) "
        f"SELECT id, tenant, queue, task, 'fatal', finished_at FROM {{job}} WHERE id = {life['failed']}"
    )


@corrupts("running_is_leased", "running", heals=True)
def lease_lost(owner: Owner, life: Life) -> None:
    owner.run(f"DELETE FROM {{lease}} WHERE id = (SELECT lease_id FROM {{job}} WHERE id = {life['running']})")


@corrupts("running_is_leased", "committed", heals=True)
def lease_that_names_somebody_else(owner: Owner, life: Life) -> None:
    others = "'[1]'" if owner.sqlite else "ARRAY[1]"
    owner.run(
        f"UPDATE {{lease}} SET job_ids = {others} "
        f"WHERE id = (SELECT lease_id FROM {{job}} WHERE id = {life['committed']})"
    )


@corrupts("running_is_leased", "running", heals=True)
def running_without_any_lease(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET lease_id = NULL WHERE id = {life['running']}", without=["job_running_has_lease"])


@corrupts("key_until_claim_is_of_a_pending_job", lambda *_: ("job_key", "/stuck"), heals=True)
def key_never_given_back(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {job_key} (tenant, key, job_id, fingerprint, until_claim) "
        f"VALUES ('', 'stuck', {life['succeeded']}, 'x', TRUE)"
    )


@corrupts("key_until_claim_is_of_a_pending_job", lambda *_: ("job_key", "/ghost"), heals=True)
def key_of_a_job_that_is_gone(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {job_key} (tenant, key, job_id, fingerprint, until_claim) "
        f"VALUES ('', 'ghost', {GHOST}, 'x', TRUE)"
    )


@corrupts("key_until_claim_is_of_a_pending_job", lambda *_: ("job_key", "/held"), heals=True)
def key_that_no_claim_would_give_back(owner: Owner, life: Life) -> None:
    owner.run(f"UPDATE {{ready}} SET holds_key = FALSE WHERE job_id = {life['held']}")


@corrupts("no_row_is_orphaned", lambda *_: ("ready", str(GHOST)), heals=True)
def place_in_the_queue_of_nobody(owner: Owner, life: Life) -> None:
    owner.run(
        f"INSERT INTO {{ready}} (lane_id, ready_at, job_id) SELECT lane_id, ready_at, {GHOST} FROM {{ready}} LIMIT 1"
    )


@corrupts("no_row_is_orphaned", lambda *_: ("waiting", str(GHOST)), heals=True)
def timer_of_nobody(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {waiting} (job_id, lane_id, due_at, priority) "
        f"SELECT {GHOST}, lane_id, due_at, priority FROM {{waiting}} LIMIT 1"
    )


@corrupts("no_row_is_orphaned", lambda *_: ("dead", str(GHOST)), heals=True)
def dead_letter_of_nobody(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {dead} (job_id, tenant, queue, task, reason, quarantined_at) "
        f"SELECT {GHOST}, '', 'default', 'x', 'fatal', quarantined_at FROM {{dead}} LIMIT 1"
    )
