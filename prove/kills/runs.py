"""Deeds to runs: of batches, of pipelines, and of ops."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from detent import BatchRun, Change, Context, Page, Partition, PipelineRun, Retry
from detent.errors import InvalidTransition, LeaseLost, PreviewNotReady, RunBusy
from detent.testing.harness import Harness
from prove.kills.deed import Deed, Finding, rows

__all__ = ["BATCHES", "OPS", "PIPELINES", "declare"]

PATIENT = Retry(100, base=1)
REFS = ("a", "b", "c")
KEYS = ("k0", "k1", "k2", "k3", "k4")
_OPS_LEASE = 600.0
_NUMBERS = itertools.count(1)


@dataclass
class Prices:
    """A batch that leaves a row for each call of `apply` and `revert`."""

    root: int

    def targets(self) -> Iterator[str]:
        return iter(REFS)

    def preview(self, ref: str) -> Change[int]:
        return Change(before=0, after=1)

    def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
        self._set(ctx, ref, change.after)

    def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
        self._set(ctx, ref, change.before)

    def _set(self, ctx: Context, ref: str, price: int) -> None:
        with ctx.commit() as tx:
            tx.execute(
                "INSERT INTO changed (root, ref, price) VALUES (:root, :ref, :price)",
                {"root": self.root, "ref": ref, "price": price},
            )


@dataclass
class Mirror:
    """A pipeline of two partitions, of two pages and one, that counts how often each record was consolidated."""

    root: int

    def plan(self, _since: datetime | None) -> list[Partition]:
        return [Partition("first", {"first": 0, "end": 3}), Partition("second", {"first": 3, "end": 5})]

    def page(self, partition: Partition, offset: int) -> Page:
        mine = KEYS[partition.payload["first"] : partition.payload["end"]]
        found, ahead = mine[offset : offset + 2], offset + 2
        return Page(records=[(key, {"key": key}) for key in found], next=ahead if ahead < len(mine) else None)

    def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        for key, _ in records:
            tx.execute(
                "INSERT INTO canonical (id, times) VALUES (:id, 1)"
                " ON CONFLICT (id) DO UPDATE SET times = canonical.times + 1",
                {"id": f"{self.root}/{key}"},
            )


def declare(harness: Harness) -> None:
    """Declare the batch and the pipeline of these deeds."""
    harness.app.batch(name="prices", retry=PATIENT)(Prices)
    harness.app.pipeline(name="mirror", retry=PATIENT)(Mirror)


# -- batches -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Batch:
    root: int
    run: BatchRun


def _previewing(harness: Harness) -> _Batch:
    root = next(_NUMBERS)
    return _Batch(root, harness.app.runs.preview(Prices(root)))


def _previewed(harness: Harness) -> _Batch:
    batch = _previewing(harness)
    harness.work()
    return batch


def _applied(harness: Harness) -> _Batch:
    batch = _previewed(harness)
    batch.run.apply(actor="ana")
    harness.work()
    return batch


def _work_and(act: Callable[[BatchRun], object]) -> Callable[[Harness, _Batch], None]:
    """A person asks for it, again if need be, and a worker does it."""

    def acts(harness: Harness, batch: _Batch) -> None:
        harness.work()
        with suppress(InvalidTransition, RunBusy, PreviewNotReady):
            act(batch.run)
        harness.work()

    return acts


def _look_at_batch(state: str, *prices: int) -> Callable[[Harness, _Batch], Iterator[Finding]]:
    def look(harness: Harness, batch: _Batch) -> Iterator[Finding]:
        run = batch.run.refresh()
        if run.state != state or run.counts != {state: len(REFS)}:
            yield "wrong" if run.rests else "stuck", f"batch run {run.id} is {run.state}: {run.counts}"
        found = Counter(rows(harness, f"SELECT ref, price FROM changed WHERE root = {batch.root}"))
        wanted = {(ref, price) for ref in REFS for price in prices}
        if missing := wanted - found.keys():
            yield "lost", f"batch run {run.id} has not made {sorted(missing)}"
        if extra := {change: count for change, count in found.items() if count > 1 or change not in wanted}:
            yield "doubled", f"batch run {run.id} has made {extra}"

    return look


def _cancel(run: BatchRun) -> None:
    if not run.refresh().rests:
        run.cancel(actor="ana", reason="wrong prices")


def _look_at_cancelled(harness: Harness, batch: _Batch) -> Iterator[Finding]:
    """Each target is applied with one row, or cancelled without one."""
    run = batch.run.refresh()
    if not run.rests:
        yield "stuck", f"batch run {run.id} is {run.state}: {run.counts}"
    found = Counter(rows(harness, f"SELECT ref, price FROM changed WHERE root = {batch.root}"))
    applied = {target.ref for target in run.targets() if target.state == "applied"}
    if any(count > 1 for count in found.values()):
        yield "doubled", f"batch run {run.id} has made {found}"
    if {ref for ref, _ in found} != applied:
        yield "wrong", f"batch run {run.id} has applied {sorted(applied)} and made {sorted(found)}"


def _apply(run: BatchRun) -> None:
    if run.refresh().state == "preview":
        run.apply(actor="ana")


def _roll_back(run: BatchRun) -> None:
    if run.refresh().state == "applied":
        run.roll_back(actor="ana")


def _apply_and_cancel(run: BatchRun) -> None:
    run.apply(actor="ana")
    _cancel(run)


BATCHES = {
    "preview and apply a batch": Deed(_previewing, _work_and(_apply), _look_at_batch("applied", 1), _work_and(_apply)),
    "apply a batch": Deed(_previewed, _work_and(_apply), _look_at_batch("applied", 1), _work_and(_apply)),
    "roll a batch back": Deed(
        _applied, _work_and(_roll_back), _look_at_batch("rolled_back", 1, 0), _work_and(_roll_back)
    ),
    "cancel a batch": Deed(_previewed, _work_and(_apply_and_cancel), _look_at_cancelled, _work_and(_cancel)),
}


# -- pipelines -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pipeline:
    root: int
    run: PipelineRun


def _started(harness: Harness) -> _Pipeline:
    root = next(_NUMBERS)
    return _Pipeline(root, harness.app.runs.start(Mirror(root), full=True))


def _look_at_pipeline(harness: Harness, pipeline: _Pipeline) -> Iterator[Finding]:
    run = pipeline.run.refresh()
    if run.state != "completed":
        yield "wrong" if run.ended else "stuck", f"pipeline run {run.id} is {run.state}: {run.counts} {run.error}"
    elif harness.app.watermarks.get("mirror") != run.captured_at:
        yield "wrong", f"the watermark is not that of pipeline run {run.id}"
    found = dict(rows(harness, f"SELECT id, times FROM canonical WHERE id LIKE '{pipeline.root}/%'"))
    if missing := {f"{pipeline.root}/{key}" for key in KEYS} - found.keys():
        yield "lost", f"pipeline run {run.id} has not consolidated {sorted(missing)}"
    if extra := {key: times for key, times in found.items() if times > 1}:
        yield "doubled", f"pipeline run {run.id} has consolidated {extra}"


PIPELINES = {"run a pipeline": Deed(_started, lambda harness, _: harness.work(), _look_at_pipeline)}


# -- ops -----------------------------------------------------------------------------------------------------------


def _project(_harness: Harness) -> str:
    return f"project{next(_NUMBERS)}"


def _script(harness: Harness, project: str) -> None:
    """A script of the user: it queues a run under a key, claims what was queued first, tells of it and ends it."""
    ops = harness.app.ops
    ops.queue(project, "staging", git_sha="abc", key=project)
    run = ops.claim("script")
    if run is not None:
        with suppress(LeaseLost, InvalidTransition):
            ops.event(run, "building", payload={"step": 1})
            ops.renew(run)
            ops.finish(run, "success", metadata={"exit_code": 0})


def _script_again(harness: Harness, project: str) -> None:
    harness.work()
    _script(harness, project)


def _look_at_ops(harness: Harness, project: str) -> Iterator[Finding]:
    found = harness.app.ops.list(project_id=project)
    if len(found) != 1:
        yield "doubled" if found else "lost", f"{project} has {len(found)} runs: {list(found)}"
    for run in found:
        if not run.rests:
            yield "stuck", f"{run.id} is {run.state}"
        elif run.state != "success" and run.metadata.get("original_worker") != "script":
            yield "wrong", f"{run.id} is {run.state}: {run.metadata}"


OPS = {"work on an ops run": Deed(_project, _script, _look_at_ops, _script_again, pause=_OPS_LEASE + 1)}
