"""Planted corruption of batch runs and their targets, and of pipeline runs."""

from __future__ import annotations

from tests.store.invariants.corruption import GHOST, corrupts
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner


def batch_run(_: Owner, life: Life) -> tuple[str, str]:
    """The run."""
    return "batch_run", str(life["batch_run"])


def first_target(_: Owner, life: Life) -> tuple[str, str]:
    """Its first target, which was applied by its second attempt."""
    return "target", f"{life['batch_run']}/1"


@corrupts("batch_counts_equal_targets", batch_run, heals=True)
def one_target_too_many(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{batch_run}} SET total = total + 1 WHERE id = {life['batch_run']}")


@corrupts("batch_counts_equal_targets", batch_run, heals=True)
def a_mismatch_of_nothing(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{batch_run}} SET mismatches = 7 WHERE id = {life['batch_run']}")


@corrupts("batch_state_equals_record", batch_run, heals=False)
def a_failed_run_with_applied_targets(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{batch_run}} SET state = 'failed' WHERE id = {life['batch_run']}")


@corrupts("batch_times_are_in_order", batch_run, heals=False)
def started_before_it_was_queued(owner: Owner, life: Life) -> None:
    earlier = owner.seconds_after("queued_at", -5)
    owner.plant(
        f"UPDATE {{batch_run}} SET started_at = {earlier} WHERE id = {life['batch_run']}",
        without=("batch_run_times_in_order",),
    )


@corrupts("batch_times_are_in_order", first_target, heals=False)
def applied_before_it_was_queued(owner: Owner, life: Life) -> None:
    earlier = owner.seconds_after("queued_at", -5)
    owner.plant(f"UPDATE {{target}} SET applied_at = {earlier} WHERE run_id = {life['batch_run']} AND n = 1")


@corrupts("target_agrees_with_its_job", first_target, heals=False)
def tried_oftener_than_it_may(owner: Owner, life: Life) -> None:
    job = f"SELECT apply_job_id FROM {{target}} WHERE run_id = {life['batch_run']} AND n = 1"
    owner.plant(f"UPDATE {{job}} SET attempts_max = 1 WHERE id = ({job})")


def the_count(_: Owner, __: Life) -> tuple[str, str]:
    """The count of a task that has no jobs."""
    return "finished_count", "/mail/nothing/succeeded"


@corrupts("finished_counts_equal_jobs", the_count, heals=True)
def a_count_of_nothing(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {finished_count} (tenant, queue, task, state, jobs) VALUES ('', 'mail', 'nothing', 'succeeded', 7)"
    )


def a_total(_: Owner, __: Life) -> tuple[str, str]:
    """The total of a task that has no jobs."""
    return "finished_total", "mail/nothing/succeeded"


@corrupts("totals_equal_counts", a_total, heals=True)
def a_total_of_nothing(owner: Owner, life: Life) -> None:
    owner.plant("INSERT INTO {finished_total} (queue, task, state, jobs) VALUES ('mail', 'nothing', 'succeeded', 7)")


def a_rate(_: Owner, __: Life) -> tuple[str, str]:
    """The rate of an hour in which nothing moved."""
    return "transition_rate", "1970-01-01T01:00:00Z/succeeded/done"


@corrupts("rates_equal_figures", a_rate, heals=True)
def a_rate_of_nothing(owner: Owner, life: Life) -> None:
    at = 3_660_000_000 if owner.sqlite else "to_timestamp(3660)"
    values = f"(60, {at}, 'succeeded', 'done', 10, 1, 10, 10)"
    owner.plant(
        f"INSERT INTO {{transition_rate}} (seconds, at, to_state, outcome, bucket, moves, us, us_max) VALUES {values}"
    )


def the_span(owner: Owner, life: Life) -> tuple[str, str]:
    """The span whose row is gone: of the newest job, which was created with no other."""
    ((newest,),) = owner.rows("SELECT max(id) FROM {job}")
    return "job_span", f"{newest} to {newest}"


@corrupts("lists_find_every_job", the_span, heals=True)
def a_span_is_gone(owner: Owner, life: Life) -> None:
    owner.plant("DELETE FROM {job_span} WHERE last_id = (SELECT max(id) FROM {job})")


def listed_wrongly(_: Owner, __: Life) -> tuple[str, str]:
    """A job that is listed as failed, and that there never was."""
    return "unsuccessful", str(GHOST)


@corrupts("lists_find_every_job", listed_wrongly, heals=True)
def listed_and_never_there(owner: Owner, life: Life) -> None:
    owner.plant(f"INSERT INTO {{unsuccessful}} (state, job_id) VALUES ('failed', {GHOST})")


def missing_in_the_list(owner: Owner, life: Life) -> tuple[str, str]:
    """A cancelled job that lists by state do not find."""
    ((cancelled,),) = owner.rows("SELECT max(id) FROM {job} WHERE state = 'cancelled'")
    return "unsuccessful", str(cancelled)


@corrupts("lists_find_every_job", missing_in_the_list, heals=True)
def cancelled_and_not_listed(owner: Owner, life: Life) -> None:
    owner.plant("DELETE FROM {unsuccessful} WHERE state = 'cancelled'")


def ghost_run(_: Owner, __: Life) -> tuple[str, str]:
    """A pipeline run that nobody has made."""
    return "pipeline_run", str(GHOST)


@corrupts("completed_run_is_consolidated", ghost_run, heals=False)
@corrupts("run_counters_equal_parts", ghost_run, heals=False)
@corrupts("run_state_equals_record", ghost_run, heals=False)
@corrupts("watermark_stands_on_its_run", ghost_run, heals=False)
def a_completed_run_of_nothing(owner: Owner, life: Life) -> None:
    """Half of its partitions, five records that nobody consolidated, no line in the log, and no watermark."""
    now = "(SELECT max(at) FROM {transition_log})"
    yes, no = ("1", "0") if owner.sqlite else ("true", "false")
    owner.plant(
        "INSERT INTO {pipeline_run} (id, name, payload, watermark, captured_at, is_full, started_by, queue, replicas, "
        "portion_size, plan_job_id, state, partitions, parts_ended, created_at, started_at, finished_at, moved_at) "
        f"VALUES ({GHOST}, 'p', '[]', 'w', {now}, {no}, 'eve', 'q', 1, 10, 1, 'completed', 2, 2, "
        f"{now}, {now}, {now}, {now})",
        "INSERT INTO {partition} (run_id, n, key, payload, job_id, state, last_page, pages, records, staged, ended_at) "
        f"VALUES ({GHOST}, 1, 'k', '[]', {GHOST}, 'completed', {yes}, 1, 5, 5, {now})",
    )
