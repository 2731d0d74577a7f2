"""Figures: the same from Python, from its async twin and from the views."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from detent import Detent
from detent.errors import InvalidInput
from detent.model.figure_records import AttemptFigures, BatchFigures, OpsFigures, TaskFigures, TransitionFigures
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from detent.testing.stores import START, plain_connection, table
from tests.app.shop import Shop
from tests.contract.batches import sample_batch_runs as batches
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.contract.ops.sample_ops_runs import run_in

DURATIONS = ("mean_seconds", "p50_seconds", "p95_seconds", "max_seconds")


@pytest.fixture
def app(ready_url: str) -> Iterator[Detent]:
    """An application by the clock on the wall: on one of the databases the views have no other."""
    with Detent(ready_url) as app:
        yield app


def lived(store: Store) -> None:
    """Jobs, ops runs and batch runs of every end."""
    for _ in range(4):
        enqueue(store, attempts_max=2)
    one, two, three, four = claim(store)
    store.job_finish([Finish(one.job_id, one.attempt, None, 0.001), Finish(two.job_id, two.attempt)], "ana")
    store.job_abort([Abort(job_id=three.job_id, attempt=1, outcome="error", error="boom", fatal=True)], "ana")
    store.job_abort([Abort(job_id=four.job_id, attempt=1, outcome="throttled")], "ana")
    store.job_retry([three.job_id], "ana")
    for state in ("success", "failed", "cancelled"):
        run_in(store, state)
    made = batches.previewed_run(store, ("a", "b", "c"))
    for action, fails in (("apply", "c"), ("retry_failed", "")):
        batches.act(store, made.id, action)
        batches.drive(store)
        batches.work(store, "reprice.apply", fails=fails)


def rows_of(url: str, kind: type[Any], view: str) -> list[Any]:
    """What a view has, as the records of Python."""
    fields = kind.__struct_fields__
    with closing(plain_connection(url)) as connection:
        found = connection.execute(f"SELECT {', '.join(fields)} FROM {table(url, view)}").fetchall()
    return sorted((kind(**dict(zip(fields, row, strict=True))) for row in found), key=_key)


def _key(row: Any) -> tuple[str, ...]:
    return tuple(value for name in row.__struct_fields__ if isinstance(value := getattr(row, name), str))


def test_python_the_twin_and_the_views_say_the_same(
    app: Detent, ready_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M1: whatever is added up already."""
    monkeypatch.setattr(batches, "APPLY", "reprice.apply")
    lived(app.store)
    for _ in range(2):
        found = app.figures()
        assert asyncio.run(app.aio.figures()).attempts == found.attempts
        for kind, view, records in (
            (TaskFigures, "task_figures", found.tasks),
            (AttemptFigures, "attempt_figures", found.attempts),
            (TransitionFigures, "transition_figures", found.transitions),
            (BatchFigures, "batch_figures", found.batches),
            (OpsFigures, "ops_figures", found.ops),
        ):
            seen = rows_of(ready_url, kind, view)
            assert [_key(one) for one in seen] == [_key(one) for one in sorted(records, key=_key)]
            for one, other in zip(seen, sorted(records, key=_key), strict=True):
                for name in kind.__struct_fields__:
                    said, expected = getattr(one, name), getattr(other, name)
                    assert said == (expected if isinstance(expected, str) else pytest.approx(expected)), (view, name)
        while app.store.counts_fold(1):
            pass
    (mail,) = [one for one in found.tasks if one.task == "mail.send"]
    assert mail == TaskFigures(task="mail.send", succeeded=2, failed=1, success_rate=2 / 3, retries=1, throttled=1)
    assert {one.status: one.runs for one in found.ops} == {"success": 1, "failed": 1, "cancelled": 1}
    assert found.ops_success_rate == 0.5
    (batch,) = found.batches
    assert (batch.applies, batch.runs, batch.applied, batch.failed, batch.retries) == (1, 1, 3, 0, 1)
    only = app.figures(task="mail.send")
    assert ([one.task for one in only.tasks], only.batches, only.ops) == (["mail.send"], [], [])


def test_percentiles_are_near(shop: Shop) -> None:
    """M1: counts, means and maxima are exact; a percentile is off by less than a quarter."""
    store = shop.app.store
    for number in range(1, 101):
        enqueue(store)
        (held,) = claim(store)
        shop.clock.advance(number / 100)
        store.job_finish([Finish(held.job_id, held.attempt, None, 0.0)], "ana")
    found = shop.app.figures(since=store.now() - timedelta(hours=2))
    (one,) = found.attempts
    assert (one.attempts, one.max_seconds) == (100, 1.0)
    assert one.mean_seconds == pytest.approx(0.505)
    assert one.p50_seconds == pytest.approx(0.5, rel=0.25)
    assert one.p95_seconds == pytest.approx(0.95, rel=0.25)
    moved = {(one.from_state, one.to_state): one.moves for one in found.transitions}
    assert moved == {("pending", "running"): 100, ("running", "succeeded"): 100}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"since": datetime(2026, 1, 1)}, "since"),  # noqa: DTZ001
        ({"since": datetime(2026, 1, 1, tzinfo=UTC)}, "since"),
        ({"since": "24h"}, "since"),
        ({"task": ""}, "task"),
    ],
)
def test_what_cannot_be_meant_is_refused(app: Detent, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        app.figures(**asked)
    assert refusal.value.field == field


def test_a_window_begins_with_an_hour(app: Detent) -> None:
    since = app.store.now() - timedelta(days=31)
    found = app.figures(since=since)
    begin = since.replace(minute=0, second=0, microsecond=0)
    assert (found.since, found.tasks, found.ops_success_rate) == (begin, [], None)
    assert app.figures().since <= app.figures().until - timedelta(hours=24)


def test_rates(app: Detent) -> None:
    """M1: a point for each step, and times of the whole period; the same from the async twin."""
    for _ in range(3):
        enqueue(app.store, attempts_max=1)
    one, two, three = claim(app.store)
    app.store.job_finish([Finish(one.job_id, one.attempt), Finish(two.job_id, two.attempt)], "ana")
    app.store.job_abort([Abort(job_id=three.job_id, attempt=1, outcome="error", error="boom")], "ana")
    found = app.rates()
    assert len(found.points) == 61
    assert all(point.at.second == 0 for point in found.points)
    assert (found.since, found.points[-1].at <= found.until) == (found.points[0].at, True)
    moves = [point.moves for point in found.points if point.moves]
    assert sum(one["succeeded"] for one in moves) == 2
    assert sum(one.get("quarantined", 0) for one in moves) == 1
    assert sum(sum(point.outcomes.values()) for point in found.points) == 3
    assert (found.waited.count, found.ran.count) == (3, 2)
    assert found.success_rate == 2 / 3
    assert found.ran.p95_seconds is not None
    by_hour = asyncio.run(app.aio.rates(step="hour"))
    assert (len(by_hour.points), by_hour.ran.count) == (25, 2)


@pytest.mark.parametrize(
    ("since", "step"),
    [
        (START.replace(tzinfo=None), "minute"),
        (datetime.now(UTC) - timedelta(hours=7), "minute"),
        (datetime.now(UTC) - timedelta(days=32), "hour"),
        (None, "day"),
    ],
)
def test_rates_refuse(app: Detent, since: datetime | None, step: Any) -> None:
    with pytest.raises(InvalidInput):
        app.rates(since=since, step=step)


def test_rates_of_the_future_have_one_point(app: Detent) -> None:
    assert len(app.rates(since=datetime.now(UTC) + timedelta(days=1)).points) == 1
