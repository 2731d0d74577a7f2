"""A run from its plan to its watermark, by a worker that works when it is told to."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from detent import Page, Partition, Retry
from detent.errors import InvalidInput, InvalidTransition, NotFound, RunInProgress, RunTimeout, WrongPlace
from detent.testing.harness import Harness
from detent.views.pipeline_progress import pipeline_view
from tests.pipeline.stones import SOURCE, Stones, canonical, declare


def test_a_first_run_takes_everything_over(harness: Harness) -> None:
    """P1, P2, P4, P5: every stone once, priced; the watermark is the time before the first fetch."""
    source = declare(harness.app)
    source.put(range(20), 100, harness.clock.now())
    began = harness.clock.now()
    run = harness.app.runs.start(Stones(margin=5))
    assert (run.state, run.is_full, run.pipeline) == ("created", True, "tests.pipeline.stones.Stones")
    assert run.payload == {"margin": 5}
    harness.work()
    run.refresh()
    assert (run.state, run.error) == ("completed", None)
    assert run.counts == {
        "partitions": 2,
        "ended": 2,
        "failed": 0,
        "pages": 8,
        "records": 20,
        "staged": 20,
        "consolidated": 20,
        "retired": 0,
    }
    assert canonical(harness.url) == {f"d{n:04}": (105, 1, 0) for n in range(20)}
    assert harness.app.watermarks.get("stones") == began == run.captured_at
    assert source.plans == [None]
    assert set(source.asked.values()) == {1}
    assert [line.to_state for line in run.history()] == [
        *("created", "workers_running", "consolidation_triggered", "consolidating", "completed")
    ]


def test_a_second_run_takes_over_what_changed_also_during_the_first(harness: Harness) -> None:
    """P1, P5, Z-13: what changes while a run is on is not missed by the next one, and nothing else is fetched again."""
    source = declare(harness.app)
    source.put(range(10), 100, harness.clock.now() - timedelta(days=1))
    first = harness.app.runs.start(Stones())
    harness.clock.advance(5)
    during = harness.clock.now()
    plan = source.plan

    def and_changes(since: object) -> object:
        planned = list(plan(since))  # type: ignore[arg-type]
        source.put(range(3), 777, during)
        source.stones["d0003"] = (888, during)
        return iter(planned)

    source.plan = and_changes  # type: ignore[method-assign,assignment]
    harness.work()
    source.plan = plan  # type: ignore[method-assign]
    harness.clock.advance(60)
    second = harness.app.runs.start(Stones())
    assert (second.is_full, second.since) == (False, first.captured_at)
    harness.work()
    assert second.refresh().state == "completed"
    assert second.counts["records"] == 4
    found = canonical(harness.url)
    assert found["d0000"][0] == 787
    assert found["d0003"][0] == 898
    assert found["d0009"] == (110, 1, 0)


def test_a_run_begins_the_overlap_before_the_watermark(harness: Harness) -> None:
    """P5: for a source whose clock is not the database's."""
    source = declare(harness.app, overlap=timedelta(seconds=30))
    harness.app.runs.start(Stones())
    harness.work()
    mark = harness.app.watermarks.get("stones")
    assert mark is not None
    harness.clock.advance(60)
    harness.app.runs.start(Stones())
    harness.work()
    assert source.plans == [None, mark - timedelta(seconds=30)]


def test_what_is_gone_is_retired_after_a_full_run(harness: Harness) -> None:
    """P6: by the pipeline's own statements, in the transaction that forgets it; an incremental run retires nothing."""
    source = declare(harness.app)
    source.put(range(10), 100, harness.clock.now())
    harness.app.runs.start(Stones())
    harness.work()
    for key in ("d0002", "d0005"):
        del source.stones[key]
    harness.clock.advance(60)
    harness.app.runs.start(Stones())
    harness.work()
    assert source.retired == []
    harness.clock.advance(60)
    run = harness.app.runs.start(Stones(), full=True)
    harness.work()
    assert source.retired == ["d0002", "d0005"]
    assert run.refresh().counts["retired"] == 2
    gone = {key for key, (_, _, gone) in canonical(harness.url).items() if gone}
    assert gone == {"d0002", "d0005"}


def test_portions_chunks_and_several_jobs(harness: Harness) -> None:
    """P4: fetched in portions, handed over in chunks, by as many jobs as have something to do."""
    source = declare(harness.app)
    source.put(range(25), 100, harness.clock.now())
    object.__setattr__(harness.app.settings, "consolidate_fetch", 8)
    object.__setattr__(harness.app.settings, "consolidate_chunk", 3)
    run = harness.app.runs.start(Stones())
    harness.work()
    assert run.refresh().state == "completed"
    assert sorted(source.chunks) == [1, 2, 2, 2, 3, 3, 3, 3, 3, 3]
    jobs = harness.app.jobs.list(task="detent.pipeline.consolidate/tests.pipeline.stones.Stones")
    assert [job.state for job in jobs] == ["succeeded"] * 4


def test_one_run_at_a_time_and_its_handle(harness: Harness) -> None:
    """P1, P7: a second start is refused; a run is found again by its number."""
    declare(harness.app)
    run = harness.app.runs.start(Stones())
    with pytest.raises(RunInProgress, match=f"run {run.id} of the watermark 'stones' has not ended"):
        harness.app.runs.start(Stones())
    assert harness.app.runs.get(run.id, kind="pipeline") == harness.app.runs.get(run.id) == run
    with pytest.raises(RunTimeout):
        run.wait(timeout=0)
    with pytest.raises(InvalidInput):
        run.wait(until={"applied"})
    harness.work()
    assert run.wait(until={"completed"}).elapsed == timedelta(0)
    with pytest.raises(NotFound):
        harness.app.runs.get(run.id + 999, kind="pipeline")
    assert [found.id for found in harness.app.runs.list(kind="pipeline", state="completed")] == [run.id]
    assert [part.key for part in run.partitions("completed")] == ["part-0", "part-1"]


def test_a_partition_that_fails_for_good(harness: Harness) -> None:
    """P3: skipped, an alert, watermark unmoved; the next run fetches the same again, and there are no duplicates."""
    source = declare(harness.app)
    source.put(range(10), 100, harness.clock.now())
    source.fails_at = {("part-1", 3)}
    run = harness.app.runs.start(Stones())
    for _ in range(10):
        harness.work()
        harness.clock.advance(70)
    assert run.refresh().state == "failed"
    assert run.error == "1 of 2 partitions failed: nothing was consolidated"
    # The first attempt stored a page, so four more in a row were made without any.
    assert source.asked["part-1", 3] == 5
    (failed,) = run.partitions("failed")
    assert "no answer for part-1 at 3" in (failed.error or "")
    assert harness.app.watermarks.get("stones") is None
    assert canonical(harness.url) == {}
    (alert,) = harness.store.alert_list("firing")
    assert (alert.policy, alert.scope) == ("consolidation_skipped", "pipeline:tests.pipeline.stones.Stones")
    assert "1 of 2 partitions failed" in alert.message
    source.fails_at = set()
    again = harness.app.runs.start(Stones())
    harness.work()
    assert again.refresh().state == "completed"
    assert {times for _, times, _ in canonical(harness.url).values()} == {1}
    assert harness.store.alert_list("firing") == []


def test_force(harness: Harness) -> None:
    """P3, E4: said at the start or while a skipped run is held; always with a reason, always on record."""
    source = declare(harness.app, hold=600)
    source.put(range(10), 100, harness.clock.now())
    source.fails_at = {("part-1", 0)}
    with pytest.raises(InvalidInput, match="reason"):
        harness.app.runs.start(Stones(), force=True)
    run = harness.app.runs.start(Stones())
    for _ in range(4):
        harness.work()
        harness.clock.advance(70)
    assert run.refresh().state == "consolidation_skipped"
    run.force(actor="ana", reason="the rest comes tomorrow")
    harness.work()
    assert run.refresh().state == "completed"
    assert len(canonical(harness.url)) == 5
    with pytest.raises(InvalidTransition):
        run.force(actor="ana", reason="again")
    harness.clock.advance(60)
    source.put(range(10), 200, harness.clock.now())
    forced = harness.app.runs.start(Stones(), force=True, actor="ben", reason="partial is fine")
    for _ in range(4):
        harness.work()
        harness.clock.advance(70)
    assert forced.refresh().state == "completed"
    (line,) = [line for line in forced.history() if line.forced]
    assert (line.actor, line.reason, line.trigger) == ("ben", "partial is fine", "fan_in")


def test_a_skipped_run_that_is_held_fails_when_nobody_comes(harness: Harness) -> None:
    """P3: the alert goes out at once, the run waits."""
    source = declare(harness.app, hold=600)
    source.odd_page = lambda partition, offset: None
    run = harness.app.runs.start(Stones())
    harness.work()
    assert run.refresh().state == "consolidation_skipped"
    assert len(harness.store.alert_list("firing")) == 1
    harness.clock.advance(601)
    harness.work()
    assert run.refresh().state == "failed"


def test_tolerated_failures(harness: Harness) -> None:
    """P3: up to `tolerate` partitions may fail, and the run completes."""
    source = declare(harness.app, tolerate=1)
    source.put(range(10), 100, harness.clock.now())
    source.odd_page = lambda partition, offset: None if partition.key == "part-0" else _plain(partition, offset)

    def _plain(partition: object, offset: object) -> object:
        source.odd_page, odd = None, source.odd_page
        try:
            return source.page(partition, offset)  # type: ignore[arg-type]
        finally:
            source.odd_page = odd

    run = harness.app.runs.start(Stones())
    harness.work()
    assert run.refresh().state == "completed"
    assert (run.counts["failed"], run.counts["consolidated"]) == (1, 5)
    assert SOURCE[0] is source


def test_a_restart_goes_on_mid_partition(harness: Harness) -> None:
    """P2: a worker dies in the middle; pages that were stored are not fetched again."""
    source = declare(harness.app)
    source.put(range(20), 100, harness.clock.now())
    source.fails_at = {("part-0", 6)}
    run = harness.app.runs.start(Stones())
    harness.work()
    source.fails_at = set()
    jobs = list(harness.app.jobs.list(task="detent.pipeline.page/tests.pipeline.stones.Stones", state="pending"))
    harness.crash(jobs[0], at="started")
    harness.clock.advance(70)
    harness.work()
    harness.clock.advance(70)
    harness.work()
    assert run.refresh().state == "completed"
    assert source.asked["part-0", 0] == source.asked["part-0", 3] == 1
    assert canonical(harness.url) == {f"d{n:04}": (110, 1, 0) for n in range(20)}


def test_a_page_that_kills_its_worker_says_what_became_of_it(harness: Harness) -> None:
    """P2, P7: attempts that had no time to say why they ended are used up too, and the last is named."""
    source = declare(harness.app, retry=Retry(1))
    source.put(range(4), 100, harness.clock.now())
    run = harness.app.runs.start(Stones())
    with suppress(WrongPlace):
        harness.work(most=2)  # the table and the plan; whoever takes a partition dies with it
    (job,) = harness.app.jobs.list(task="detent.pipeline.page/tests.pipeline.stones.Stones", state="running")
    for _ in range(1 + 5):  # five attempts that expired do not count
        harness.clock.advance(harness.lease + 1)
        harness.crash(job)
        harness.work()
    harness.clock.advance(harness.lease + 1)
    harness.work()
    (failed,) = pipeline_view(harness.store, run.id).failures
    assert failed.error.startswith("Its attempts are used up: 2 in a row ended without a page, the last was expired")
    assert (run.refresh().state, source.asked["part-0", 0], source.asked["part-1", 0]) == ("failed", 0, 1)


def test_a_partition_goes_on_until_its_slice_is_over(harness: Harness) -> None:
    """P2: page by page in one attempt; when its time is over others have the slot, which costs no attempt."""
    source = declare(harness.app, retry=Retry(0))
    source.put(range(12), 100, harness.clock.now())
    harness.app.runs.start(Stones())
    harness.work()
    assert list(source.asked) == [("part-0", 0), ("part-0", 3), ("part-1", 0), ("part-1", 3)]
    source.asked.clear()
    fetch = source.page

    def slowly(partition: Partition, offset: int) -> Page:
        harness.clock.advance(harness.app.settings.page_slice)
        return fetch(partition, offset)

    source.page = slowly  # type: ignore[method-assign]
    run = harness.app.runs.start(Stones(), full=True)
    harness.work()
    assert run.refresh().state == "completed"
    assert list(source.asked) == [("part-0", 0), ("part-1", 0), ("part-0", 3), ("part-1", 3)]
    assert set(source.asked.values()) == {1}
    for part in run.partitions():
        ends = [(one.outcome, one.counted) for one in harness.store.job_executions(part.job_id)]
        assert ends == [("snoozed", False), ("done", True)]


def test_a_consolidation_that_raises_is_tried_three_times(harness: Harness) -> None:
    """P4: nothing of the portion stays, the others do; then the run fails with an alert, and the watermark stays."""
    source = declare(harness.app)
    source.put(range(12), 100, harness.clock.now())
    object.__setattr__(harness.app.settings, "consolidate_fetch", 4)
    source.consolidate_fails_on = "d0005"
    run = harness.app.runs.start(Stones())
    for _ in range(6):
        harness.work()
        harness.clock.advance(70)
    assert run.refresh().state == "failed"
    assert "no price for d0005" in (run.error or "")
    assert harness.app.watermarks.get("stones") is None
    assert "d0005" not in canonical(harness.url)
    (alert,) = harness.store.alert_list("firing")
    assert alert.policy == "consolidation_failed"
    source.consolidate_fails_on = None
    again = harness.app.runs.start(Stones())
    harness.work()
    assert again.refresh().state == "completed"
    assert len(canonical(harness.url)) == 12
