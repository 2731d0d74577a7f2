"""Staged records in a table of the user's own: written with the offset, read by the consolidation, each once."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from detent import Page, Partition
from detent.app.detent import Detent
from detent.errors import WrongPlace
from detent.model.pipeline_records import NewPage
from detent.testing.harness import Harness
from detent.testing.stores import is_sqlite, plain_connection
from tests.pipeline.raw import AsyncStones, RawStones, declare, raw
from tests.pipeline.stones import Stones, canonical, worked_off


@pytest.fixture(params=[RawStones, AsyncStones], ids=["plain", "async"])
def kind(request: pytest.FixtureRequest) -> type[Any]:
    """The pipeline in both colours."""
    found: type[Any] = request.param
    return found


def staged_by_detent(url: str) -> set[str]:
    """What data lies in Detent's own table."""
    table = "detent_staged" if is_sqlite(url) else "detent.staged"
    with closing(plain_connection(url)) as connection:
        return {data for (data,) in connection.execute(f"SELECT DISTINCT data FROM {table}").fetchall()}


def test_a_full_run_an_incremental_one_and_what_is_gone(harness: Harness, kind: type[Any]) -> None:
    """P1, P2, P4, P5, P6: as with Detent's own table; only keys are in it."""
    source = declare(harness.app, kind)
    source.put(range(20), 100, harness.clock.now() - timedelta(days=1))
    object.__setattr__(harness.app.settings, "consolidate_fetch", 8)
    object.__setattr__(harness.app.settings, "consolidate_chunk", 3)
    first = worked_off(harness, kind(margin=5))
    assert (first.state, first.error) == ("completed", None)
    assert (first.counts["pages"], first.counts["staged"], first.counts["consolidated"]) == (8, 20, 20)
    assert raw(harness.url) == {f"d{n:04}": (100, first.id, 1) for n in range(20)}
    assert canonical(harness.url) == {f"d{n:04}": (105, 1, 0) for n in range(20)}
    assert staged_by_detent(harness.url) == {""}
    harness.clock.advance(60)
    source.put(range(3), 200, harness.clock.now())
    second = worked_off(harness, kind(margin=5))
    assert (second.state, second.is_full, second.counts["consolidated"]) == ("completed", False, 3)
    found = canonical(harness.url)
    assert {key: found[key] for key in ("d0000", "d0003")} == {"d0000": (205, 2, 0), "d0003": (105, 1, 0)}
    del source.stones["d0007"]
    harness.clock.advance(60)
    third = worked_off(harness, kind(margin=5), full=True)
    assert (third.state, source.retired) == ("completed", ["d0007"])
    assert harness.app.watermarks.get("stones") == third.captured_at


def test_a_page_that_cannot_be_staged(harness: Harness, kind: type[Any]) -> None:
    """P2, P3: nothing of the page stays, in neither table; tried again like a page that cannot be fetched, then the run
    is skipped and the watermark stays. The next run takes everything over without duplicates."""
    source = declare(harness.app, kind)
    source.put(range(20), 100, harness.clock.now())
    source.stage_fails_on = "d0008"
    run = worked_off(harness, kind())
    (failed,) = run.partitions("failed")
    assert (run.state, failed.key, failed.pages) == ("failed", "part-0", 1)
    assert "no room for d0008" in failed.error
    assert {"d0000", "d0004", "d0006", "d0008"} & set(raw(harness.url)) == {"d0000", "d0004"}
    assert (canonical(harness.url), harness.app.watermarks.get("stones")) == ({}, None)
    source.stage_fails_on = None
    again = worked_off(harness, kind())
    assert again.state == "completed"
    assert canonical(harness.url) == {f"d{n:04}": (110, 1, 0) for n in range(20)}


def test_a_page_that_was_stored_meanwhile_leaves_nothing(harness: Harness) -> None:
    """P2: the offset has moved on: what the late page wrote is undone, and the partition goes on where it stands."""
    store = harness.store

    @dataclass
    class Late(RawStones):
        def page(self, partition: Partition, offset: int) -> Page:
            if offset:
                return Page([("later", (7, None))])
            (job,) = harness.app.jobs.list(task="detent.pipeline.page/stones", state="running")
            stored = store.page_store(
                NewPage(run_id=run.id, n=1, job_id=job.id, attempt=job.attempt, offset="0", next_offset="3")
            )
            assert stored.stored  # type: ignore[union-attr]
            return Page([("late", (1, None))], next=3)

    source = declare(harness.app, Late)
    source.parts = 1
    run = harness.app.runs.start(Late())
    harness.work()
    assert run.refresh().state == "completed"
    assert set(raw(harness.url)) == set(canonical(harness.url)) == {"later"}
    assert run.counts["consolidated"] == 1


def test_records_are_staged_in_the_order_of_their_keys(harness: Harness) -> None:
    """P2: two pages with the same stones, written at the same time, would wait crosswise for each other's rows."""
    staged: list[list[str]] = []

    @dataclass
    class Ordered(RawStones):
        def stage(self, tx: Any, records: list[tuple[str, Any]]) -> None:
            staged.append([key for key, _ in records])
            super().stage(tx, records)

    source = declare(harness.app, Ordered)
    source.odd_page = lambda partition, offset: Page([(key, {"price": 1}) for key in ("c", "a", "é", "b", "a")])
    assert worked_off(harness, Ordered()).state == "completed"
    assert staged == [["a", "b", "c", "é"]] * 2


@pytest.mark.parametrize(("before", "after"), [(RawStones, Stones), (Stones, RawStones)], ids=["theirs", "ours"])
def test_code_that_changes_its_mind_in_the_middle_of_a_run(
    harness: Harness, before: type[Any], after: type[Any]
) -> None:
    """P4: records that lie where the new code does not look are not passed over in silence: the run fails, with an
    alert, and the next one fetches them again."""
    source = declare(harness.app, before)
    source.put(range(4), 100, harness.clock.now())
    run = harness.app.runs.start(before())
    with suppress(WrongPlace):
        harness.work(most=5)  # two tables, the plan and two partitions; whoever has the consolidation in hand is gone
    assert run.refresh().state == "consolidating"
    harness.clock.advance(harness.lease + 1)
    stones = source.stones
    source = declare(harness.use(Detent(harness.url)), after)
    source.stones = stones
    harness.work()
    assert run.refresh().state == "failed"
    assert "was staged in" in (run.error or "")
    assert canonical(harness.url) == {}
    assert [alert.policy for alert in harness.store.alert_list("firing")] == ["consolidation_failed"]
    assert worked_off(harness, after()).state == "completed"
    assert len(canonical(harness.url)) == 4


def test_methods_of_both_colours(harness: Harness) -> None:
    """U1: one pipeline may have plain and async methods; each writes with the transaction of its colour."""

    @dataclass
    class Mixed(Stones):
        async def page(self, partition: Partition, offset: int) -> Page:  # type: ignore[override]
            return Stones.page(self, partition, offset)

        def stage(self, tx: Any, records: list[tuple[str, Any]]) -> None:
            for key, stone in records:
                tx.execute(
                    "INSERT INTO raw VALUES (:id, :price, 0, 1) ON CONFLICT (id) DO NOTHING",
                    {"id": key, "price": stone["price"]},
                )

        async def consolidate(self, tx: Any, keys: list[Any]) -> None:  # type: ignore[override]
            for key in keys:
                await tx.execute(
                    "INSERT INTO canonical SELECT id, price, times, 0 FROM raw WHERE id = :id "
                    "ON CONFLICT (id) DO UPDATE SET times = canonical.times + 1",
                    {"id": key},
                )

    source = declare(harness.app, Mixed)
    source.put(range(10), 100, harness.clock.now())
    assert worked_off(harness, Mixed()).state == "completed"
    assert canonical(harness.url) == {f"d{n:04}": (100, 1, 0) for n in range(10)}
    source.stones.clear()
    source.put(range(20, 21), 100, harness.clock.now())
    run = worked_off(harness, Mixed(), full=True)
    assert (run.state, run.counts["retired"]) == ("completed", 10)
