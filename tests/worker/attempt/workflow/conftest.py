"""A harness for workflows, and the functions that their steps call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from detent import Detent
from detent.client.job import Job
from detent.model.workflow_records import NewSignal, StepRow
from detent.testing.harness import Harness
from detent.testing.stores import row_violations

__all__ = ["anote", "calls", "note", "signal", "steps", "work"]

calls: list[str] = []


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    calls.clear()
    with closing(Harness(store_url)) as made:
        yield made
        assert row_violations(made.store, store_url) == []


@pytest.fixture
def app(harness: Harness) -> Detent:
    return harness.app


def note(word: str) -> str:
    calls.append(word)
    return word


async def anote(word: str) -> str:
    await asyncio.sleep(0)
    return note(word)


def steps(harness: Harness, job: Job[Any]) -> dict[str, StepRow]:
    rows = harness.store.step_list(job.id).rows
    return {row.path: row for row in sorted(rows, key=lambda row: row.seq)}


def signal(harness: Harness, job: Job[Any], name: str, payload: str = "null", dedupe: str | None = None) -> object:
    sent = NewSignal(job_id=job.id, name=name, payload=payload, actor="ann", dedupe=dedupe)
    (answer,) = harness.store.signal_send([sent])
    return answer


def work(harness: Harness, seconds: float = 0.0) -> None:
    if seconds:
        harness.clock.advance(seconds)
    harness.work()
