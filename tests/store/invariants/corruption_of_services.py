"""Planted corruption of what stands beside jobs: schedules, limits, alerts, operations, workers, numbers.

Importing this module adds its cases to `CASES`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.store.invariants.corruption import GHOST, corrupts
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner

Named = Callable[[Owner, Life], tuple[str, str]]
FAR = "2999-01-01"


def row(entity: str, entity_id: str) -> Named:
    return lambda *_: (entity, entity_id)


def of(entity: str, name: str, after: str = "") -> Named:
    return lambda _, life: (entity, f"{life[name]}{after}")


# -- rows that break a CHECK -----------------------------------------------------------------------------------


@corrupts("checks_hold", "ready", heals=False)
def job_that_may_be_tried_never(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET attempts_max = 0 WHERE id = {life['ready']}", without=["job_attempts_max_positive"]
    )


@corrupts("checks_hold", "later", heals=False)
def job_that_costs_less_than_nothing(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{job}} SET cost = -1 WHERE id = {life['later']}", without=["job_cost_is_possible"])


@corrupts("checks_hold", "running", heals=False)
def effect_told_by_a_stranger(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{job}} SET effect_evidence = 'eve' WHERE id = {life['running']}",
        without=["job_effect_evidence_known"],
    )


@corrupts("checks_hold", of("execution", "quarantined", "/1"), heals=False)
def attempt_that_ended_in_two_ways(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{execution}} SET done_at = aborted_at WHERE job_id = {life['quarantined']}",
        without=["execution_ended_one_way"],
    )


@corrupts("checks_hold", row("schedule", "nightly"), heals=False)
def schedule_that_catches_up_in_a_strange_way(owner: Owner, life: Life) -> None:
    """It is due, so that workers meet it."""
    due = owner.at("2026-01-02")
    owner.plant(f"UPDATE {{schedule}} SET catch_up = 'sometimes', next_at = {due}", without=["schedule_catch_up_known"])


@corrupts("checks_hold", row("rate_limit", "shop"), heals=False)
def limit_with_a_rate_below_nothing(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {rate_limit} SET rate = -5, per = 0", without=["rate_limit_is_possible"])


@corrupts("checks_hold", lambda owner, life: ("limit_slot", f"shop/{life['limited']}"), heals=False)
def slot_that_costs_less_than_nothing(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {limit_slot} SET cost = -3", without=["limit_slot_cost_is_possible"])


@corrupts("limit_slots_are_current", lambda *_: ("limit_slot", f"shop/{GHOST}"), heals=True)
def slot_of_a_job_that_is_gone(owner: Owner, life: Life) -> None:
    owner.run(f"INSERT INTO {{limit_slot}} (limit_key, job_id, attempt, cost) VALUES ('shop', {GHOST}, 1, 1)")


@corrupts("limit_slots_are_current", lambda _, life: ("limit_slot", f"a/b/{life['ready']}"), heals=True)
def slot_of_an_attempt_that_never_was(owner: Owner, life: Life) -> None:
    """A claim of the job would make it count."""
    owner.run(f"INSERT INTO {{limit_slot}} (limit_key, job_id, attempt, cost) VALUES ('a/b', {life['ready']}, 1, 1)")


@corrupts("limit_slots_are_current", lambda _, life: ("limit_slot", f"shop/{life['succeeded']}"), heals=True)
def slot_of_a_job_that_ended_long_ago(owner: Owner, life: Life) -> None:
    """A worker has lived long enough since to have deleted it."""
    ended = f"(SELECT finished_at FROM {{job}} WHERE id = {life['succeeded']})"
    owner.run(
        f"INSERT INTO {{limit_slot}} (limit_key, job_id, attempt, cost) VALUES ('shop', {life['succeeded']}, 2, 1)",
        "INSERT INTO {worker} (id, name, host, pid, tasks, slots, running, started_at, seen_at) "
        f"VALUES (77, 'w', 'h', 1, '[]', 1, 0, {ended}, {owner.seconds_after(ended, 7201)})",
    )


@corrupts("checks_hold", row("limit_member", "galaxy/limited"), heals=False)
def limit_of_a_strange_kind(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {limit_member} SET kind = 'galaxy'", without=["limit_member_kind_known"])


@corrupts("checks_hold", of("operation", "operation"), heals=False)
def operation_in_a_state_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        "UPDATE {operation} SET state = 'lost'", without=["operation_state_known", "operation_finished_has_time"]
    )


@corrupts("checks_hold", of("operation", "operation"), heals=False)
def operation_that_does_what_nobody_knows(owner: Owner, life: Life) -> None:
    """It runs, so that workers meet it."""
    owner.plant(
        "UPDATE {operation} SET action = 'explode', state = 'running', finished_at = NULL",
        without=["operation_action_known"],
    )


@corrupts("checks_hold", row("alert", "dead_letters/whole"), heals=False)
def alert_in_a_state_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        "UPDATE {alert} SET state = 'odd' WHERE policy = 'dead_letters'",
        without=["alert_state_known", "alert_resolved_has_time"],
    )


@corrupts("checks_hold", row("alert", "dead_letters/whole"), heals=False)
def alert_of_a_severity_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {alert} SET severity = 'odd' WHERE policy = 'dead_letters'", without=["alert_severity_known"])


@corrupts("checks_hold", row("alert_policy", "dead_letters"), heals=False)
def policy_for_each_of_nothing(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {alert_policy} SET each = 'galaxy'", without=["alert_policy_each_known"])


@corrupts("checks_hold", row("alert_policy", "dead_letters"), heals=False)
def policy_of_a_severity_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {alert_policy} SET severity = 'odd'", without=["alert_policy_severity_known"])


def first_notice(owner: Owner, _: Life) -> tuple[str, str]:
    return "alert_notice", str(owner.value("SELECT min(n) FROM {alert_notice}"))


@corrupts("checks_hold", first_notice, heals=False)
def notice_of_a_strange_kind(owner: Owner, life: Life) -> None:
    first = "(SELECT min(n) FROM {alert_notice})"
    owner.plant(
        f"UPDATE {{alert_notice}} SET kind = 'odd', spread = FALSE WHERE n = {first}",
        without=["alert_notice_kind_known"],
    )


@corrupts("checks_hold", lambda owner, _: ("alert_delivery", f"{first_notice(owner, _)[1]}/log"), heals=False)
def message_in_a_state_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        "UPDATE {alert_delivery} SET state = 'odd' WHERE notice_n = (SELECT min(n) FROM {alert_notice})",
        without=["alert_delivery_state_known", "alert_delivery_sent_has_time"],
    )


@corrupts("checks_hold", row("declaration", "poem/nightly/1"), heals=False)
def declaration_of_a_strange_kind(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {declaration} SET kind = 'poem'", without=["declaration_kind_known"])


@corrupts("checks_hold", row("recovery", "mail"), heals=False)
def recovery_of_nothing(owner: Owner, life: Life) -> None:
    owner.plant("UPDATE {recovery} SET stale_after = NULL, stalled_after = NULL", without=["recovery_of_something"])


@corrupts("checks_hold", row("task_times", "summary"), heals=False)
def task_that_says_nothing_of_its_times(owner: Owner, life: Life) -> None:
    owner.plant(
        "UPDATE {task_times} SET stale_after = -1, stalled_after = -1, result_ttl = -1",
        without=["task_times_say_something"],
    )


@corrupts("checks_hold", of("pipeline_run", "pipeline_run"), heals=False)
def pipeline_run_in_a_state_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        "UPDATE {pipeline_run} SET state = 'odd'",
        without=[
            "pipeline_run_state_known",
            "pipeline_run_finished_has_time",
            "pipeline_run_consolidates_when_all_ended",
        ],
    )


@corrupts("checks_hold", of("partition", "pipeline_run", "/1"), heals=False)
def partition_in_a_state_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        "UPDATE {partition} SET state = 'odd'",
        without=[
            *("partition_state_known", "partition_completed_has_its_last_page", "partition_ended_has_time"),
            "partition_pages_are_fetched",
        ],
    )


@corrupts("run_counters_equal_parts", of("pipeline_run", "pipeline_run"), heals=False)
def partition_lost(owner: Owner, life: Life) -> None:
    owner.plant("DELETE FROM {partition}")


@corrupts("watermark_stands_on_its_run", of("pipeline_run", "pipeline_run"), heals=False)
def watermark_lost(owner: Owner, life: Life) -> None:
    owner.plant("DELETE FROM {watermark}")


@corrupts("checks_hold", of("batch_run", "batch_run"), heals=False)
def batch_run_in_a_state_that_nobody_knows(owner: Owner, life: Life) -> None:
    states = ["known", "queued_has_time", "started_has_time", "rest_has_time"]
    owner.plant(
        "UPDATE {batch_run} SET state = 'odd'",
        without=["batch_run_state_known", *(f"batch_run_{name}" for name in states[1:])],
    )


@corrupts("checks_hold", of("target", "batch_run", "/1"), heals=False)
def target_in_a_state_that_nobody_knows(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{target}} SET state = 'odd' WHERE run_id = {life['batch_run']} AND n = 1",
        without=["target_state_known", "target_applied_has_time"],
    )


@corrupts("batch_counts_equal_targets", of("batch_run", "batch_run"), heals=True)
def target_lost(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{target}} WHERE run_id = {life['batch_run']} AND n = 3")


# -- times that keep something from everybody ------------------------------------------------------------------


@corrupts("times_are_near", row("service", "retention"), heals=False)
def service_held_for_ever(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {service} (name, holder, term, expires_at) "
        f"VALUES ('retention', 1, 1, {owner.at(FAR)}) ON CONFLICT (name) DO UPDATE SET expires_at = {owner.at(FAR)}"
    )


@corrupts(
    "times_are_near",
    lambda owner, life: ("lease", str(owner.value(f"SELECT lease_id FROM {{job}} WHERE id = {life['running']}"))),
    heals=False,
)
def lease_held_for_ever(owner: Owner, life: Life) -> None:
    lease = f"SELECT lease_id FROM {{job}} WHERE id = {life['running']}"
    owner.run(f"UPDATE {{lease}} SET expires_at = {owner.at(FAR)} WHERE id = ({lease})")


@corrupts("times_are_near", row("worker", "4711"), heals=False)
def worker_seen_in_the_future(owner: Owner, life: Life) -> None:
    tasks = "'[]'" if owner.sqlite else "ARRAY[]::text[]"
    owner.run(
        "INSERT INTO {worker} (id, name, host, pid, tasks, slots, running, stopping, started_at, seen_at) "
        f"VALUES (4711, 'eve', 'here', 1, {tasks}, 1, 0, FALSE, {owner.at('2026-01-01')}, {owner.at(FAR)})"
    )


@corrupts("times_are_near", row("rate_limit", "shop"), heals=False)
def limit_filled_in_the_future(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{rate_limit}} SET refilled_at = {owner.at(FAR)}")


@corrupts("times_are_near", row("alert", "dead_letters/whole"), heals=False)
def alert_of_the_future(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{alert}} SET last_at = {owner.at(FAR)} WHERE policy = 'dead_letters'")


@corrupts("times_are_near", row("alert_look", "tally"), heals=False)
def look_of_the_future(owner: Owner, life: Life) -> None:
    owner.run(
        f"INSERT INTO {{alert_look}} (name, at) VALUES ('tally', {owner.at(FAR)}) "
        f"ON CONFLICT (name) DO UPDATE SET at = {owner.at(FAR)}"
    )


@corrupts("times_are_near", lambda owner, _: ("alert_delivery", f"{first_notice(owner, _)[1]}/log"), heals=False)
def message_taken_for_ever(owner: Owner, life: Life) -> None:
    owner.plant(
        f"UPDATE {{alert_delivery}} SET taken_until = {owner.at(FAR)} "
        "WHERE notice_n = (SELECT min(n) FROM {alert_notice})"
    )


# -- numbers ---------------------------------------------------------------------------------------------------


@corrupts("ids_are_ahead", lambda owner, _: ("sequence", "ids" if owner.sqlite else "id_seq"), heals=True)
def numbers_of_jobs_begin_again(owner: Owner, life: Life) -> None:
    owner.run("UPDATE detent_ids SET next = 1" if owner.sqlite else "SELECT setval('detent.id_seq', 1)")


@corrupts("ids_are_ahead", row("sequence", "ids"), heals=True, only="sqlite")
def numbers_of_jobs_lost(owner: Owner, life: Life) -> None:
    owner.run("DELETE FROM detent_ids")


@corrupts("ids_are_ahead", row("sequence", "transition_log_n_seq"), heals=True, only="postgres")
def numbers_of_lines_begin_again(owner: Owner, life: Life) -> None:
    owner.run("SELECT setval('detent.transition_log_n_seq', 1)")


@corrupts("ids_are_ahead", row("sequence", "lane_id_seq"), heals=True, only="postgres")
def numbers_of_lanes_begin_again(owner: Owner, life: Life) -> None:
    owner.run("SELECT setval('detent.lane_id_seq', 1)")


@corrupts("ids_are_ahead", row("sequence", "alert_notice_n_seq"), heals=True, only="postgres")
def numbers_of_notices_begin_again(owner: Owner, life: Life) -> None:
    owner.run("SELECT setval('detent.alert_notice_n_seq', 1, false)")
