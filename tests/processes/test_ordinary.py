"""What a worker does on a good day. One worker for the whole module, and for each database."""

from __future__ import annotations

import signal
from datetime import datetime

import pytest

from detent import Context, Detent, Retry
from detent.testing.stores import dump
from tests.deadlines import scaled
from tests.processes.tasks import add
from tests.processes.worker_processes import Bench, until

_KEPT_BY_SERVICES = {
    *("worker", "watch", "service", "horizon", "alert_look", "alert_tally"),
    # What has ended is added up every ten seconds.
    *("finished_count", "finished_total", "succeeded_batch", "transition_hour", "transition_rate"),
}


def test_all_kinds_of_functions_are_carried_out(shop: Bench) -> None:
    """W1: plain functions in threads, async ones on the loop, `process=True` in a process of their own."""
    kinds = ("add", "add_async", "add_apart", "add_async_apart")
    jobs = {kind: [shop.send(kind, a=number, b=1) for number in range(5)] for kind in kinds}
    for kind, sent in jobs.items():
        assert [shop.rests(job, "succeeded").result for job in sent] == [1, 2, 3, 4, 5], kind
        assert [shop.outcomes(job) for job in sent] == [["done"]] * 5


def test_async_jobs_do_not_see_each_other(shop: Bench) -> None:
    """W1: those that wait and those that do not share a loop; each has context variables of its own, and a task around
    it from its first step on."""
    calls = [shop.app.find_task("remember").call(wait=number % 3 == 0) for number in range(60)]
    jobs = shop.app.enqueue_many(calls)
    assert [shop.rests(job, "succeeded").result for job in jobs] == [[0, 0]] * 60


def test_a_process_apart_is_another_one_and_is_used_again(shop: Bench) -> None:
    near, *apart = (
        shop.rests(shop.send(task), "succeeded").result
        for task in ("which_process", "which_process_apart", "which_process_apart")
    )
    assert len(set(apart)) == 1
    assert near not in apart


def test_results_and_lines_are_on_record(shop: Bench) -> None:
    """J13: a job's result is stored and fetched. Standard logging inside a task becomes events."""
    plain, apart, result = shop.send("chatty"), shop.send("chatty_apart"), shop.send("answer")
    assert shop.rests(result, "succeeded").result == {"list": [1, 2.5, None], "text": "ä\u0001"}
    for job in (plain, apart):
        shop.rests(job, "succeeded")
        assert shop.lines(job) == [("warning", "said aloud"), ("info", "in between")]


@pytest.mark.parametrize(("how", "outcome"), [("snooze", "snoozed"), ("throttle", "throttled")])
def test_not_now_uses_up_no_attempt(shop: Bench, how: str, outcome: str) -> None:
    """J7, J12: a snoozed or throttled attempt is counted apart."""
    job = shop.send("once", how=how)
    assert shop.rests(job, "succeeded").result == "second"
    assert shop.outcomes(job) == [outcome, "done"]
    assert job.row.spared == 1


def test_a_fatal_error_is_not_tried_again_and_the_hook_hears_of_it(shop: Bench) -> None:
    """J9, J10, W6: fatal means quarantined at once, with the error; hooks on quarantine are told."""
    told = shop.directory / "told"
    job = shop.app.enqueue(shop.app.find_task("fail").call(how="fatal"), metadata={"tell": str(told)})
    assert "never again" in str(shop.rests(job, "quarantined").error)
    assert shop.outcomes(job) == ["error"]
    until(told.exists, "the hook")
    assert until(told.read_text) == f"{job.id} quarantined\n"


def test_an_error_is_tried_again_and_then_kept(shop: Bench) -> None:
    """J9, J10: the whole error chain of the last attempt is kept with the quarantined job."""
    job = shop.send("fail_async", how="no luck")
    error = str(shop.rests(job, "quarantined").error)
    assert shop.outcomes(job) == ["error", "error"]
    assert "ValueError: no luck" in error
    assert "in fail" in error


def test_an_alias_carries_out_jobs_of_the_old_name(shop: Bench) -> None:
    """W6: renaming a function strands no job."""
    with Detent(shop.url) as old:
        sent = old.enqueue(old.task(name="old_name")(add).call(a=1, b=2))
    assert shop.rests(shop.app.jobs.get(sent.id), "succeeded").result == 3


def test_a_job_that_nobody_knows_waits_untouched(shop: Bench) -> None:
    with Detent(shop.url) as other:
        stranger = other.enqueue(other.task(name="elsewhere")(add).call(a=1, b=2))
    shop.rests(shop.send("add", a=1, b=1), "succeeded")
    assert shop.app.jobs.get(stranger.id).state == "pending"
    assert stranger.executions() == []


def test_a_payload_that_no_longer_decodes_is_quarantined_at_once(shop: Bench) -> None:
    """J10: more attempts would not help."""

    def add(ctx: Context, a: str) -> None: ...

    with Detent(shop.url) as old:
        sent = old.enqueue(old.task(name="add", retry=Retry(3))(add).call(a="one"))
    found = shop.rests(shop.app.jobs.get(sent.id), "quarantined")
    assert shop.outcomes(found) == ["error"]
    assert "no longer fits: add" in str(found.error)


def test_a_result_that_cannot_be_stored_is_an_error(shop: Bench) -> None:
    job = shop.send("unstorable")
    assert "result of unstorable" in str(shop.rests(job, "quarantined").error)


def test_a_cap_holds_for_its_queue_alone(shop: Bench) -> None:
    """J12: a queue has a maximum number of jobs that run at once."""
    gate = shop.gate()
    capped = [shop.send("hold_capped", gate=str(gate)) for _ in range(4)]
    gate.entered(2)
    for job in [shop.send("add", a=1, b=number) for number in range(8)]:
        shop.rests(job, "succeeded")
    assert len(gate.entered(2)) == 2
    gate.open()
    for job in capped:
        shop.rests(job, "succeeded")


def test_a_drained_worker_ends_by_itself_and_several_processes_share_the_work(bench: Bench) -> None:
    """W1: N processes; drain ends when nothing is left to do."""
    gates = [bench.gate() for _ in range(2)]
    jobs = [bench.send("hold", gate=str(gate)) for gate in gates]
    worker = bench.worker(processes=2, slots=1, drain=True)
    assert gates[0].entered() != gates[1].entered()
    for gate in gates:
        gate.open()
    assert worker.ends() == 0, worker.log
    assert {bench.app.jobs.get(job.id).state for job in jobs} == {"succeeded"}
    assert "Worker w1: 2 processes of 1 slot.\n" in worker.log
    assert worker.log.endswith("Worker w1 ends, nothing is left to do: 2 succeeded, 0 retried, 0 dead.\n")
    assert bench.is_healthy()


def test_the_health_of_a_worker_can_be_asked_for(sqlite_bench: Bench) -> None:
    """W6: a health command: exit code 0 while a worker of that name lives and takes jobs."""
    bench = sqlite_bench
    gate = bench.gate()
    bench.send("hold", gate=str(gate))
    assert bench.cli("doctor", "--worker", "w1").returncode == 1
    worker = bench.worker(name="w1", grace=600.0)
    gate.entered()
    until(lambda: "1 of 4 slots" in bench.cli("doctor", "--worker", "w1").stdout, "the worker seen at work")
    assert bench.cli("doctor", "--worker", "w2").returncode == 1
    worker.signal(signal.SIGTERM)
    until(lambda: "is stopping" in bench.cli("doctor", "--worker", "w1").stdout, "the worker seen to stop")
    gate.open()
    assert worker.ends() == 0
    ended = bench.cli("doctor", "--worker", "w1")
    assert (ended.returncode, "no worker w1" in ended.stdout) == (1, True)


def test_children_are_replaced_after_so_many_jobs(sqlite_bench: Bench) -> None:
    """W6: children are recycled after N jobs, and nothing is lost by it."""
    bench = sqlite_bench
    bench.worker(slots=1, max_jobs=3)
    pids: set[int] = set()

    def two_processes() -> bool:
        job = bench.send("which_process")
        pids.add(bench.rests(job, "succeeded").result)
        assert bench.outcomes(job)[-1] == "done"
        return len(pids) == 2

    until(two_processes, "a second child")
    assert bench.is_healthy()


def test_a_worker_tells_systemd_how_it_is(sqlite_bench: Bench) -> None:
    """W6: READY when it takes jobs, WATCHDOG while it goes on, STOPPING when it was told to stop."""
    bench = sqlite_bench
    said = bench.listen_as_systemd()
    worker = bench.worker()
    until(lambda: "READY=1" in said(), "READY")
    until(lambda: "WATCHDOG=1" in said(), "WATCHDOG")
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0
    until(lambda: "STOPPING=1" in said(), "STOPPING")
    assert said().count("STOPPING=1") == 1


def test_a_worker_that_has_nothing_to_do_writes_nothing_but_that_it_lives(bench: Bench) -> None:
    """W3: an idle worker leaves jobs and their records alone, and what others do is no reason to claim."""

    def heartbeat() -> datetime | None:
        return next((worker.seen_at for worker in bench.app.workers.list(within=60.0) if worker.tasks), None)

    bench.worker(name="idle")
    until(heartbeat, "the first heartbeat")
    bench.rests(bench.send("add", a=1, b=1), "succeeded")
    until(lambda: not dump(bench.url)["lease"], "the end of the lease")
    before = dump(bench.url)
    for _ in range(3):
        last = heartbeat()
        until(lambda last=last: heartbeat() != last, "the next heartbeat")  # type: ignore[misc]
    after = dump(bench.url)
    assert {name for name in before if before[name] != after[name]} <= _KEPT_BY_SERVICES


def test_leases_of_quick_jobs_end_when_they_do(bench: Bench) -> None:
    """J5: a job may be over before its child has told the supervisor of the lease. One that was told of after that
    would be renewed for as long as the child lives."""
    bench.worker(lease=scaled(1.0))
    for number in range(60):
        bench.rests(bench.send("add_async", a=number, b=1), "succeeded")
    until(lambda: not dump(bench.url)["lease"], "the end of all leases")
