"""The preview of an undo equals what then happens, whatever the workflow: random ones, with crashes in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from detent import Fatal, Job, Retry, StepCall
from detent.declare.workflow import Step
from detent.declare.workflow_context import WorkflowContext
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import work

WORKFLOWS = 25


class Undone:
    """What was undone of each job, in order; now and then the worker dies right after a call."""

    def __init__(self, harness: Harness, seed: int) -> None:
        self.calls: dict[int, list[str]] = {}
        self.previews: dict[int, list[str]] = {}
        self._harness = harness
        self._chance = random.Random(seed)

    def undo(self, ctx: Any, word: str) -> None:
        done = self.calls.setdefault(ctx.job_id, [])
        if word not in done:
            done.append(word)
        if self._chance.random() < 0.2:
            self._harness.clock.advance(self._harness.lease + 1)


def say(word: str) -> str:
    return word


def fail(_word: str) -> None:
    raise PermissionError("no")


def body(ctx: WorkflowContext, chance: random.Random, undone: Undone, outer: WorkflowContext, depth: int = 0) -> None:
    """Some steps: with an undo or without, that fail and are caught, in scopes, side by side, with pauses."""
    for n in range(chance.randrange(1, 5)):
        word = f"{depth}-{n}-{chance.randrange(1000)}"
        undo = partial(undone.undo, outer) if chance.random() < 0.6 else None
        step = Step[str]("say", key=word, undo=undo)
        inner = random.Random(chance.random())  # a scope on record is not entered again
        match chance.randrange(6):
            case 0 if depth < 3:
                ctx.scope(f"s{n}", body, inner, undone, outer, depth + 1)
            case 1:
                ctx.gather(StepCall(step, say, word), StepCall(Step("more", key=word), say, word))
            case 2:
                try:
                    ctx.step(Step("fail", key=word, undo=lambda said: undone.undo(outer, "never")), fail, word)
                except PermissionError:
                    ctx.step(step, say, word)
            case 3:
                ctx.sleep(30)
            case _:
                ctx.step(step, say, word)


@pytest.fixture
def sqlite_harness(sqlite_url: str) -> Iterator[Harness]:
    with closing(Harness(sqlite_url)) as made:
        yield made


def planned(job: Job[Any]) -> list[str]:
    return [(one.value or "").strip('"') for one in job.preview_undo() if one.undone_at is None]


@pytest.mark.parametrize("succeeds", [True, False])
def test_the_preview_equals_what_happens(sqlite_harness: Harness, succeeds: bool, whole: bool) -> None:
    """F20: also with a crash after any undo, and whether the workflow undoes its steps itself or another job does."""
    harness, app = sqlite_harness, sqlite_harness.app
    undone = Undone(harness, 7)

    def look(job_id: int) -> None:
        undone.previews[job_id] = planned(app.jobs.get(job_id))
        raise Fatal("no lorry")

    @app.workflow(name="any", retry=Retry(20, base=1))
    def anything(ctx: WorkflowContext, seed: int) -> None:
        body(ctx, random.Random(seed), undone, ctx)
        if not succeeds:
            ctx.step("ship", look, ctx.job_id)

    jobs = [anything.enqueue(seed=seed) for seed in range(WORKFLOWS * (10 if whole else 1))]
    for _ in range(8):
        work(harness, 61)
    for job in jobs:
        if succeeds:
            assert job.refresh().state == "succeeded"
            undone.previews[job.id] = planned(job)
            if undone.previews[job.id]:
                job.undo()
    for _ in range(20):
        work(harness, 61)
    for job in jobs:
        assert undone.calls.get(job.id, []) == undone.previews[job.id], job
        assert planned(job) == []
    assert sum(map(len, undone.calls.values())) > WORKFLOWS
    assert harness.store.verify() == []
