"""The pipeline with a watermark: the whole story of a supplier's stones through the public doors, on both databases.

A run is created, fans out over partitions, fetches them page by page, fans in to one consolidation and moves the
watermark; partitions fail, workers die, people force. Time is turned by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from detent import Detent, Page, Partition, Retry, split_by_count
from detent.app.pipeline_run import PipelineRun
from detent.errors import RunInProgress, WrongPlace
from detent.testing.harness import Harness
from detent.views.pipeline_progress import pipeline_view

PAGE = 30
PARTS = 30


@dataclass
class Supplier:
    """Stones by id: price in cents, and when it was last changed."""

    stones: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    broken_at: int | None = None  # the partition with this price fails
    calls: Counter[str] = field(default_factory=Counter)
    during: Callable[[], None] | None = None

    def within(self, low: int, high: int, since: datetime | None) -> list[tuple[str, int]]:
        self.calls["asked"] += 1
        found = [
            (key, price)
            for key, (price, at) in sorted(self.stones.items())
            if low <= price < high and (since is None or at >= since)
        ]
        if self.during is not None:
            happens, self.during = self.during, None
            happens()
        return found


def make(app: Detent, supplier: Supplier, *, own_table: bool = False, **options: Any) -> type[Any]:
    """The application as a user would write it; perhaps with a table of its own for what pages bring."""

    @dataclass
    class Diamonds:
        margin: int = 20

        def plan(self, since: datetime | None) -> Iterator[Partition]:
            stamp = None if since is None else since.isoformat()
            ranges = split_by_count(lambda low, high: len(supplier.within(low, high, since)), 0, 4096, parts=PARTS)
            for part in ranges:
                yield Partition(part.key, part.payload | {"since": stamp})

        def page(self, partition: Partition, offset: int) -> Page:
            asked = partition.payload
            if supplier.broken_at in range(asked["low"], asked["high"]):
                raise ConnectionError("502 from the supplier")
            since = None if asked["since"] is None else datetime.fromisoformat(asked["since"])
            found = supplier.within(asked["low"], asked["high"], since)
            ahead = offset + PAGE
            return Page(
                records=[(key, {"cost": price}) for key, price in found[offset:ahead]],
                next=ahead if ahead < len(found) else None,
            )

        def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
            for key, stone in records:
                tx.execute(
                    "INSERT INTO diamonds (id, price, writes, gone) VALUES (:id, :price, 1, 0) "
                    "ON CONFLICT (id) DO UPDATE SET price = excluded.price, writes = diamonds.writes + 1, gone = 0",
                    {"id": key, "price": stone["cost"] * (100 + self.margin) // 100},
                )

        def retire(self, tx: Any, keys: list[str]) -> None:
            for key in keys:
                tx.execute("UPDATE diamonds SET gone = 1 WHERE id = :id", {"id": key})

    @dataclass
    class InOwnTable(Diamonds):
        async def stage(self, tx: Any, records: list[tuple[str, Any]]) -> None:
            for key, stone in records:
                await tx.execute(
                    "INSERT INTO raw_diamonds (id, cost, run) VALUES (:id, :cost, :run) "
                    "ON CONFLICT (id) DO UPDATE SET cost = excluded.cost, run = excluded.run",
                    {"id": key, "cost": stone["cost"], "run": tx.run_id},
                )

        async def consolidate(self, tx: Any, keys: list[Any]) -> None:  # type: ignore[override]
            names = {f"k{n}": key for n, key in enumerate(keys)}
            await tx.execute(
                "INSERT INTO diamonds (id, price, writes, gone) "
                f"SELECT id, cost * :percent / 100, 1, 0 FROM raw_diamonds WHERE id IN (:{', :'.join(names)}) "
                "ON CONFLICT (id) DO UPDATE SET price = excluded.price, writes = diamonds.writes + 1, gone = 0",
                names | {"percent": 100 + self.margin},
            )

    @app.task(name="prepare")
    def prepare(ctx: Any) -> None:
        with ctx.commit() as tx:
            tx.execute("CREATE TABLE diamonds (id TEXT PRIMARY KEY, price INTEGER, writes INTEGER, gone INTEGER)")
            tx.execute("CREATE TABLE raw_diamonds (id TEXT PRIMARY KEY, cost INTEGER, run BIGINT)")

    @app.task(name="look")
    def look(ctx: Any) -> dict[str, list[int]]:
        with ctx.commit() as tx:
            rows, _ = tx.execute("SELECT id, price, writes, gone FROM diamonds")
        return {key: list(rest) for key, *rest in rows}

    prepare.enqueue()
    kind = InOwnTable if own_table else Diamonds
    app.pipeline(name="diamonds", watermark="diamonds", retry=Retry(3), **options)(kind)
    return kind


class Story:
    """A supplier of 900 stones, and an application that mirrors them."""

    def __init__(self, detent: Harness, **options: Any) -> None:
        self.detent = detent
        self.app = detent.app
        self.supplier = Supplier()
        self.diamonds = make(self.app, self.supplier, **options)
        yesterday = detent.clock.now() - timedelta(days=1)
        self.supplier.stones = {f"D{n:04}": ((n * n) % 4093, yesterday) for n in range(900)}

    def works(self, run: PipelineRun) -> PipelineRun:
        """Until the run has ended, however long backoffs take; every invariant holds."""
        for _ in range(20):
            self.detent.work()
            if run.refresh().ended:
                break
            self.detent.clock.advance(64)
        assert self.app.record.verify() == []
        return run

    def steps(self, attempts: int) -> None:
        """Run this number of attempts. The worker dies after it has claimed the next one."""
        with suppress(WrongPlace):
            self.detent.work(most=attempts)

    def table(self) -> dict[str, list[int]]:
        """The canonical table: price, how often it was written, whether it is gone."""
        job = self.app.find_task("look").enqueue()
        self.detent.work()
        found: dict[str, list[int]] = job.refresh().result
        return found


@pytest.fixture
def story(detent: Harness) -> Story:
    return Story(detent)


@pytest.fixture(params=[False, True], ids=["detents table", "own table"])
def either_story(detent: Harness, request: pytest.FixtureRequest) -> Story:
    """What pages bring lies in Detent's table, or in one of the application's own."""
    return Story(detent, own_table=request.param)


def test_full_first_incremental_after_and_nothing_is_missed(either_story: Story) -> None:
    """P1, P2, P4, P5, P6: thirty balanced partitions, pages of thirty, one consolidation; what changes during the first
    run is in the second, and nothing else is; what is gone is retired after a full run."""
    story = either_story
    app, supplier, clock = story.app, story.supplier, story.detent.clock
    first = app.runs.start(story.diamonds())
    assert (first.state, first.is_full, first.since) == ("created", True, None)
    with pytest.raises(RunInProgress):
        app.runs.start(story.diamonds())
    story.detent.clock.advance(10)
    supplier.during = lambda: supplier.stones.update({"D0007": (11, clock.now()), "NEW": (12, clock.now())})
    story.works(first)
    counts = first.counts
    assert first.state == "completed"
    assert (counts["partitions"], counts["ended"], counts["failed"]) == (len(list(first.partitions())), 30, 0)
    assert counts["staged"] == counts["consolidated"] == len(story.table())
    assert app.watermarks.get("diamonds") == first.captured_at < clock.now()
    states = [line.to_state for line in first.history()]
    assert states == ["created", "workers_running", "consolidation_triggered", "consolidating", "completed"]
    weights = sorted(part.records for part in first.partitions())
    assert weights[-1] <= 3 * (sum(weights) / len(weights)), "balanced"

    clock.advance(3600)
    second = story.works(app.runs.start(story.diamonds()))
    assert (second.state, second.is_full, second.since) == ("completed", False, first.captured_at)
    assert second.counts["records"] == 2
    table = story.table()
    assert {key: price for key, (price, _, _) in table.items()} == {
        key: price * 120 // 100 for key, (price, _) in supplier.stones.items()
    }
    for key in ("D0001", "D0002"):
        del supplier.stones[key]
    clock.advance(3600)
    third = story.works(app.runs.start(story.diamonds(), full=True))
    assert (third.state, third.is_full, third.counts["retired"]) == ("completed", True, 2)
    assert {key for key, (_, _, gone) in story.table().items() if gone} == {"D0001", "D0002"}


def test_a_partition_fails_for_good(either_story: Story) -> None:
    """P3: skipped, an alert, watermark unmoved; the next run processes the same again without duplicates."""
    story = either_story
    app, supplier = story.app, story.supplier
    supplier.broken_at = 1000
    run = story.works(app.runs.start(story.diamonds()))
    assert (run.state, run.counts["failed"]) == ("failed", 1)
    assert app.watermarks.get("diamonds") is None
    assert story.table() == {}
    (alert,) = [alert for alert in app.alerts.list() if alert.state == "firing"]
    assert (alert.policy, "502 from the supplier" in alert.message) == ("consolidation_skipped", True)
    view = pipeline_view(app.store, run.id)
    (bad,) = run.partitions("failed")
    assert [(failure.key, failure.partitions) for failure in view.failures] == [(bad.key, 1)]
    assert "502 from the supplier" in view.failures[0].error
    assert view.states == {"completed": run.counts["partitions"] - 1, "failed": 1}
    assert [line.to_state for line in run.history()][-2:] == ["consolidation_skipped", "failed"]

    supplier.broken_at = None
    again = story.works(app.runs.start(story.diamonds()))
    assert (again.state, again.is_full) == ("completed", True)
    assert {writes for _, writes, _ in story.table().values()} == {1}
    assert [alert for alert in app.alerts.list() if alert.state == "firing"] == []


def test_a_person_forces_what_was_skipped(detent: Harness) -> None:
    """P3, E4: while a skipped run is held; with who and why, marked on record. What the failed partition would have
    brought comes with the next full run."""
    story = Story(detent, hold=timedelta(hours=1))
    app, supplier = story.app, story.supplier
    supplier.broken_at = 1000
    run = app.runs.start(story.diamonds())
    for _ in range(6):
        story.detent.work()
        story.detent.clock.advance(64)
    assert run.refresh().state == "consolidation_skipped"
    run.force(actor="ana", reason="the shop opens at nine")
    story.works(run)
    assert run.state == "completed"
    (line,) = [line for line in run.history() if line.forced]
    assert (line.trigger, line.actor, line.reason) == ("force", "ana", "the shop opens at nine")
    missing = 900 - len(story.table())
    assert missing > 0
    supplier.broken_at = None
    story.detent.clock.advance(60)
    story.works(app.runs.start(story.diamonds(), full=True))
    assert len(story.table()) == 900


def test_workers_die_in_the_middle(either_story: Story) -> None:
    """P2, P4: at every stage a worker dies with the job in its hands; another goes on where it stopped, and every stone
    is written once."""
    story = either_story
    app, detent = story.app, story.detent
    run = app.runs.start(story.diamonds())
    (plan,) = app.jobs.list(task="detent.pipeline.plan/diamonds")
    detent.crash(plan, at="returned")
    story.steps(2)  # the table and the plan, whose worker dies after it; then one dies with a partition in its hands
    assert run.refresh().state == "workers_running"
    detent.clock.advance(detent.lease + 1)
    story.steps(run.counts["partitions"] + 1)  # and one with the consolidation
    assert run.refresh().state == "consolidating"
    detent.clock.advance(detent.lease + 1)
    story.works(run)
    assert run.state == "completed"
    table = story.table()
    assert len(table) == 900
    assert {writes for _, writes, _ in table.values()} == {1}
    assert [line.to_state for line in run.history()].count("consolidation_triggered") == 1


def test_progress_while_it_runs(story: Story) -> None:
    """P7: how far, how long, which partitions: for people."""
    app, detent = story.app, story.detent
    run = app.runs.start(story.diamonds())
    assert pipeline_view(app.store, run.id).done == 0.0
    story.steps(12)
    detent.clock.advance(5)
    view = pipeline_view(app.store, run.id)
    assert 0 < view.done < 1
    assert view.elapsed == 5.0
    assert sum(view.states.values()) == view.run.partitions
    assert view.records_per_second == view.run.records / 5
    story.works(run)
    assert pipeline_view(app.store, run.id).done == 1.0
    assert app.runs.get(run.id).state == "completed"
