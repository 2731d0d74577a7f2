"""The code that the simulated workers run, and what it does to the world outside the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from detent import Detent, Probed, Retry, WaitTimeout, WorkflowContext
from detent.errors import AlreadyCommitted, OutcomeUnknown
from prove.simulation.world import world

__all__ = ["Outside", "build_app", "outside"]

Rows = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
_UNKNOWN = "SELECT attempt FROM detent_execution WHERE job_id = ? AND attempt < ? AND outcome = 'unknown'"
_RECORDED = "SELECT attempt FROM detent_workflow_step WHERE job_id = ? AND attempt < ? AND path = ?"
_INSERT = "INSERT INTO effect (job_id, attempt, what) VALUES (:job_id, :attempt, :what)"


class Outside:
    """What functions have done outside the database, and what they found."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        """Reads the database outside the simulation."""
        self.calls: Counter[tuple[int, str]] = Counter()
        self.failures: Counter[tuple[int, str]] = Counter()
        self.charged: dict[str, int] = {}
        """Charges by the key that tells the other side which of them are one."""
        self.probed: set[tuple[int, int]] = set()
        """Attempts that have asked the other side."""


_outside = [Outside(lambda _sql, _params: [])]


def outside() -> Outside:
    """Return the world outside, as it is in this schedule."""
    return _outside[-1]


def forget(rows: Rows) -> None:
    """Begin with a world in which nothing has happened."""
    _outside[:] = [Outside(rows)]


def _must_be_false(found: list[tuple[Any, ...]], what: str) -> None:
    """Note a broken promise, if something was found. It is not raised: the code that is tested would handle it."""
    if found:
        world().tell(f"found: {what}")
        world().defects.append(AssertionError(what))


def _works(job_id: int, what: str, fails: float = 0.1) -> None:
    """Do something that takes time and may fail."""
    here = world()
    outside().calls[job_id, what] += 1
    here.tell(f"job {job_id}: {what}")
    here.block(None, (0.0, 0.0, 0.5, 4.0)[here.choices.below(4)] or None)
    if here.has_faults and here.choices.happens(fails):
        outside().failures[job_id, what] += 1
        here.injected["function that fails"] += 1
        here.tell(f"job {job_id}: {what} fails")
        raise RuntimeError(what)


def build_app() -> Detent:
    """Return an application with a task of each kind."""
    app = Detent("sqlite:///simulated.db")
    retry = Retry(3, base=1.0)

    @app.task(name="plain", retry=retry)
    def plain(ctx: Any, number: int) -> int:
        _works(ctx.job_id, "plain")
        return number

    @app.task(name="async", retry=retry)
    async def on_loop(ctx: Any, number: int) -> int:
        import asyncio

        outside().calls[ctx.job_id, "async"] += 1
        await asyncio.sleep((0.0, 0.5, 3.0)[world().choices.below(3)])
        return number

    @app.task(name="commits", retry=retry)
    def commits(ctx: Any, number: int) -> int:
        def commit() -> None:
            with ctx.commit() as tx:
                tx.execute(_INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt, "what": "commit"})
                if number % 2:
                    tx.intend(plain.call(number=number))

        _works(ctx.job_id, "before the commit")
        is_forgetful = world().has_faults and world().choices.happens(0.1)
        try:
            commit()
        except OutcomeUnknown:
            is_forgetful = True
        if is_forgetful:
            world().injected["function that commits again"] += 1
            with suppress(AlreadyCommitted):
                commit()
        _works(ctx.job_id, "after the commit")
        return number

    def charge_probe(ctx: Any, number: int) -> Probed:
        outside().probed.add((ctx.job_id, ctx.attempt))
        return Probed.done() if ctx.effect_key in outside().charged else Probed.not_done()

    @app.task(name="charges", retry=retry, idempotent=False, probe=charge_probe)
    def charges(ctx: Any, number: int) -> None:
        if (ctx.job_id, ctx.attempt) not in outside().probed:
            unknown = outside().rows(_UNKNOWN, (ctx.job_id, ctx.attempt))
            _must_be_false(unknown, f"job {ctx.job_id} charges without asking what became of an earlier charge")
        world().block(None)
        outside().charged[ctx.effect_key] = ctx.job_id
        world().tell(f"job {ctx.job_id}: charged")
        _works(ctx.job_id, "after the charge", 0.3)

    @app.task(name="fires", retry=retry, idempotent=False)
    def fires(ctx: Any, number: int) -> None:
        _works(ctx.job_id, "fires", 0.1)

    @app.workflow(name="order", retry=retry)
    def order(ctx: WorkflowContext, number: int) -> str:
        first = ctx.step("pick", _step, ctx, "pick")
        ctx.transact("book", _book, ctx.job_id, ctx.attempt)
        if number % 3 == 0:
            ctx.sleep(5.0)
        if number % 3 == 1:
            try:
                ctx.wait_for("go", int, timeout=8.0)
            except WaitTimeout:
                ctx.step("late", _step, ctx, "late")
        if number % 2:
            group = ctx.spawn_many("parts", [plain.call(number=n) for n in range(2)])
            done = group.join(tolerate=2)
            first = f"{first} {done.total}"
        ctx.step("ship", _step, ctx, "ship")
        return first

    return app


def _step(ctx: Any, what: str) -> str:
    recorded = outside().rows(_RECORDED, (ctx.job_id, ctx.attempt, what))
    _must_be_false(recorded, f"job {ctx.job_id} does the step {what} again, which an earlier attempt has recorded")
    _works(ctx.job_id, what, 0.15)
    return what


def _book(tx: Any, job_id: int, attempt: int) -> None:
    tx.execute(_INSERT, {"job_id": job_id, "attempt": attempt, "what": "book"})
