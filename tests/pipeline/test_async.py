"""Pipelines whose methods are coroutines: on a worker's loop, and what can be got wrong with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from detent import Fatal, Page, Partition, Retry
from detent.errors import InvalidSetting
from detent.testing.harness import Harness
from tests.pipeline.raw import AsyncStones, declare
from tests.pipeline.stones import Stones, canonical, worked_off


def test_a_plan_that_is_awaited(harness: Harness) -> None:
    """P1: a coroutine may give the partitions as well as an async generator."""

    @dataclass
    class Awaited(AsyncStones):
        async def plan(self, since: datetime | None) -> list[Partition]:  # type: ignore[override]
            return [part async for part in super().plan(since)]

    source = declare(harness.app, Awaited)
    source.put(range(7), 100, harness.clock.now())
    assert worked_off(harness, Awaited()).state == "completed"
    assert canonical(harness.url) == {f"d{n:04}": (110, 1, 0) for n in range(7)}


def test_a_plan_without_end(harness: Harness) -> None:
    """P1, G6: an async generator that never stops is stopped."""

    @dataclass
    class Endless(AsyncStones):
        async def plan(self, since: datetime | None) -> AsyncIterator[Partition]:
            n = 0
            while True:
                yield Partition(str(n := n + 1))

    declare(harness.app, Endless)
    object.__setattr__(harness.app.settings, "partitions_max", 50)
    run = worked_off(harness, Endless())
    assert (run.state, run.counts["partitions"]) == ("failed", 0)
    assert "more than 50 partitions" in run.error


def test_what_coroutines_raise(harness: Harness) -> None:
    """P2, J9: handled as in a plain method: tried again since the last page, `Fatal` at once for good."""

    @dataclass
    class Fails(AsyncStones):
        async def page(self, partition: Partition, offset: int) -> Page:
            if offset and partition.key == "part-1":
                raise Fatal("this source is closed")
            return await super().page(partition, offset)

    source = declare(harness.app, Fails, retry=Retry(3))
    source.put(range(10), 100, harness.clock.now())
    source.fails_at = {("part-0", 3)}
    run = worked_off(harness, Fails())
    assert run.state == "failed"
    why = {part.key: part.error for part in run.partitions("failed")}
    assert "no answer for part-0 at 3" in why["part-0"]
    assert "this source is closed" in why["part-1"]
    assert (source.asked["part-0", 0], source.asked["part-0", 3]) == (1, 5)


def test_a_statement_that_nobody_awaits(harness: Harness) -> None:
    """C2, P4: to commit without it would lose it without a word; the run fails and says what to write."""

    @dataclass
    class Forgetful(AsyncStones):
        async def consolidate(self, tx: Any, keys: list[Any]) -> None:
            for key in keys:
                tx.execute("UPDATE canonical SET price = 0 WHERE id = :id", {"id": key}).close()

    source = declare(harness.app, Forgetful)
    source.put(range(3), 100, harness.clock.now())
    run = worked_off(harness, Forgetful())
    assert run.state == "failed"
    assert "await tx.execute" in run.error


def test_methods_that_would_not_run(harness: Harness) -> None:
    """U1: a generator is called and nothing of it runs: refused when it is declared. A coroutine out of a plain method
    fails its run, and nothing counts as consolidated."""

    @dataclass
    class Yields(Stones):
        def consolidate(self, tx: Any, records: list[Any]) -> Any:
            yield 7

    with pytest.raises(InvalidSetting, match="consolidate that yields"):
        harness.app.pipeline(Yields)

    @dataclass
    class YieldsPages(Stones):
        async def page(self, partition: Partition, offset: int) -> AsyncIterator[Page]:  # type: ignore[override]
            yield Page([])

    with pytest.raises(InvalidSetting, match="page that yields"):
        harness.app.pipeline(YieldsPages)

    @dataclass
    class Hides(Stones):
        def consolidate(self, tx: Any, records: list[Any]) -> Any:
            async def later() -> None:
                """Nobody awaits it."""

            return later()

    source = declare(harness.app, Hides)
    source.put(range(3), 100, harness.clock.now())
    run = worked_off(harness, Hides())
    assert (run.state, run.counts["consolidated"]) == ("failed", 0)
    assert "async def" in run.error


def test_a_field_of_an_optional_methods_name(harness: Harness) -> None:
    """U1: `stage` and `retire` are methods where they can be called, and fields like any other where they cannot."""

    @dataclass
    class Staged(Stones):
        stage: str = "production"

    source = declare(harness.app, Staged)
    source.put(range(3), 100, harness.clock.now())
    assert worked_off(harness, Staged(stage="test")).state == "completed"
    assert len(canonical(harness.url)) == 3
