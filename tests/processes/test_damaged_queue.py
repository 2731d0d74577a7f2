"""A worker meets damaged rows in the queue: it carries out every other job, runs nothing twice and reports the rows."""

from __future__ import annotations

from contextlib import closing

from tests.processes.worker_processes import Bench
from tests.store.invariants.owner import Owner

NOWHERE = 9_999_999


def test_every_other_job_runs_and_a_committed_one_does_not_run_again(bench: Bench) -> None:
    """R3, C1: rows without a job, of a job at rest, twice, in an unknown state, and of a job that has committed."""
    done = [bench.send("add", a=1, b=1) for _ in range(2)]
    bench.drain()
    others = [bench.send("add", a=n, b=1) for n in range(30)]
    twice, unknown = others[3], others[7]
    with closing(Owner(bench.url)) as owner:
        earlier = owner.seconds_after("ready_at", -60)
        owner.plant(
            f"INSERT INTO {{ready}} (lane_id, ready_at, job_id) SELECT lane_id, {earlier}, {NOWHERE} FROM {{ready}} "
            f"WHERE job_id = {others[0].id}",
            f"INSERT INTO {{ready}} (lane_id, ready_at, job_id) SELECT lane_id, {earlier}, job_id FROM {{ready}} "
            f"WHERE job_id = {twice.id}",
            f"UPDATE {{job}} SET state = 'pending', finished_at = NULL, committed_at = NULL WHERE id = {done[0].id}",
            *(
                "INSERT INTO {ready} (lane_id, ready_at, job_id) SELECT r.lane_id, j.due_at, j.id "
                f"FROM {{job}} j, {{ready}} r WHERE j.id = {one.id} AND r.job_id = {others[0].id}"
                for one in done
            ),
            f"UPDATE {{job}} SET state = 'resting' WHERE id = {unknown.id}",
            without=("job_state_known", "job_finished_has_time", "job_running_has_open_attempt"),
        )
    worker = bench.drain()
    for one in others:
        if one != unknown:
            bench.rests(one, "succeeded")
    assert [bench.outcomes(one) for one in (*done, twice)] == [["done"]] * 3
    assert bench.app.jobs.get(done[0].id).state == "succeeded"
    (alert,) = [row for row in bench.app.store.alert_list("firing", 100) if row.policy == "row_damaged"]
    assert alert.scope == "service:claim"
    assert "service claim cannot handle job" in worker.log
    assert "ended with" not in worker.log
