"""Functions that mean harm. One worker meets them all, and must be there at the end."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from detent import Job
from detent.errors import DatabaseBusy
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, is_alive, until


def counted(bench: Bench, job: Job[Any]) -> list[str | None]:
    """How those attempts ended that used one up."""
    return [outcome for outcome in bench.outcomes(job) if outcome != "released"]


def test_jobs_that_end_their_process_are_quarantined_and_take_nobody_with_them(shop: Bench) -> None:
    """J7: a job that kills its process again and again ends in quarantine; its neighbours lose at most one attempt."""
    gate = shop.gate()
    neighbours = [shop.send(task, gate=str(gate)) for task in ("hold", "hold_async", "hold", "hold_apart")]
    gate.entered(len(neighbours))
    reasons = {
        "kill_process": "SIGKILL",
        "exit_process": "exit code 3",
        "exit_process_async": "exit code 3",
        "kill_process_apart": "SIGKILL",
        "exit_process_apart": "exit code 3",
    }
    poison = {task: shop.send(task) for task in reasons}
    quick = shop.send_many("add", 10, a=1, b=2)
    for task, job in poison.items():
        shop.rests(job, "quarantined")
        assert counted(shop, job) == ["crashed", "crashed"]
        assert "process" in str(job.error), (task, job.error)
    for task in ("kill_process_apart", "exit_process_apart"):
        assert reasons[task] in str(poison[task].error)
    gate.open()
    for job in [*neighbours, *quick]:
        shop.rests(job, "succeeded")
        assert counted(shop, job) in (["done"], ["crashed", "done"])


def test_neighbours_that_have_one_attempt_succeed_all_the_same(bench: Bench) -> None:
    """J7: nobody is blamed for a death among several; whoever dies alone is."""
    gate = bench.gate()
    neighbours = [bench.send("hold_once", gate=str(gate)) for _ in range(3)]
    bench.worker()
    gate.entered(3)
    poison = bench.send("exit_process_once")
    bench.rests(poison, "quarantined")
    assert bench.outcomes(poison) == ["released", "crashed"]
    gate.open()
    for job in neighbours:
        bench.rests(job, "succeeded")
        assert bench.outcomes(job) == ["released", "done"]


def test_the_log_names_the_jobs_of_a_process_that_died(bench: Bench) -> None:
    """J7: whoever reads the log at night knows where to look."""
    job = bench.send("kill_process")
    worker = bench.drain()
    assert f"ended with signal SIGKILL; job {job.id} ran in it." in worker.log
    assert "Stopping: 0 jobs run" in worker.log


@pytest.mark.parametrize("task", ["fail", "fail_async"])
@pytest.mark.parametrize(
    ("how", "readable"),
    [
        ("nul", "a\ufffdb"),
        ("surrogate", "a\ufffdb"),
        ("long", "bytes in all"),
        ("unprintable", "Unprintable"),
        ("self-cancelled", "CancelledError"),
        ("wrong call", "InvalidArguments"),
    ],
)
def test_an_error_with_unspeakable_text_is_recorded_all_the_same(
    shop: Bench, task: str, how: str, readable: str
) -> None:
    """J10: what cannot be stored is made storable; the failure itself is never lost."""
    job = shop.send(task, how=how)
    error = str(shop.rests(job, "quarantined").error)
    assert readable in error
    assert len(error.encode()) <= 16_384
    assert set(shop.outcomes(job)) == {"error"}


def test_what_is_given_up_is_in_the_log(sqlite_bench: Bench) -> None:
    """J10: whoever reads the worker's log at night finds the job."""
    job = sqlite_bench.send("fail", how="fatal")
    worker = sqlite_bench.worker()
    sqlite_bench.rests(job, "quarantined")
    until(lambda: f"Job {job.id} is dead;" in worker.log, "the line")


def test_leaving_the_program_is_an_error_like_others(shop: Bench) -> None:
    job = shop.send("raise_exit")
    assert "SystemExit: enough" in str(shop.rests(job, "quarantined").error)


def test_a_copy_of_the_process_does_not_go_on_as_a_worker(shop: Bench) -> None:
    gate = shop.gate()
    job = shop.send("fork_and_return", gate=str(gate))
    assert shop.rests(job, "succeeded").result == "parent"
    assert shop.outcomes(job) == ["done"]
    until(lambda: sum(is_alive(pid) for pid in gate.entered(2)) <= 1, "the end of the copy")


def test_programs_that_a_task_starts_hear_sigterm(shop: Bench) -> None:
    job = shop.send("terminate_child")
    assert shop.rests(job, "succeeded").result == -15


@pytest.mark.parametrize("task", ["commit_then", "commit_then_apart"])
def test_a_process_that_dies_after_the_commit_has_done_its_job(shop: Bench, task: str) -> None:
    """C1: after the commit the function is never run again."""
    gate = shop.gate()
    job = shop.send(task, gate=str(gate), how="exit")
    assert shop.rests(job, "succeeded").result == "committed"
    assert shop.outcomes(job) == ["done"]
    assert len(gate.entered()) == 1


def test_a_job_that_eats_all_memory_is_quarantined(sqlite_bench: Bench) -> None:
    """J7: under a limit of memory the others go on."""
    bench = sqlite_bench
    greedy = bench.send("eat_memory")
    others = bench.send_many("add", 20, a=1, b=1)
    bench.worker(app="tests.processes.tight:app")
    bench.rests(greedy, "quarantined")
    assert "Memory" in str(greedy.error) or "process" in str(greedy.error)
    for job in others:
        bench.rests(job, "succeeded")
        assert len(counted(bench, job)) <= 2


def test_a_process_of_its_own_that_cannot_start_is_not_the_fault_of_the_job(sqlite_bench: Bench) -> None:
    """J7: short of memory, or in the middle of a deploy. The job used to be charged, and quarantined with it."""
    bench = sqlite_bench
    job = bench.send("add_apart_once", a=1, b=2)
    bench.worker(app="tests.processes.fragile:app")
    assert bench.rests(job, "succeeded").result == 3
    assert bench.outcomes(job) == ["released", "done"]
    assert "could not start" in str(job.executions()[0].error)


def test_nobody_holds_the_database_for_long(sqlite_bench: Bench) -> None:
    """J7: a function that takes the interpreter while its process writes would stop everybody: its process is ended."""
    bench = sqlite_bench
    gate = bench.gate()
    greedy = bench.send("hold_database", gate=str(gate))
    bench.worker(held_up_max=scaled(1.0))
    gate.entered()

    def send() -> Job[Any] | None:
        with suppress(DatabaseBusy):  # an enqueue waits for ten seconds, also on a slow machine
            return bench.send("add", a=1, b=1)
        return None

    other = until(send, "an enqueue")
    assert other is not None
    bench.rests(other, "succeeded")
    assert "held the database" in str(bench.rests(greedy, "quarantined").error)


def test_what_a_function_left_behind_goes_with_its_child(sqlite_bench: Bench) -> None:
    """W1: children that ignore SIGTERM, one of them in a session of its own, do not outlive their job's time-out."""
    bench = sqlite_bench
    gate = bench.gate()
    job = bench.send("fork_deaf_8s", gate=str(gate))
    bench.worker(grace=scaled(0.2))
    bench.rests(job, "quarantined")
    deaf = [int(pid) for pid in Path(f"{gate}.deaf").read_text().split()]
    assert len(deaf) == 2
    until(lambda: not any(map(is_alive, deaf)), "their end")
