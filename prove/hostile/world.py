"""The same small application on a database of each kind, with the same jobs, runs and names in it."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from detent import Change, Context, Detent, Limit, Retry, WorkflowContext
from detent.http.api import build_api
from detent.testing.harness import Harness
from detent.testing.stores import is_sqlite, plain_connection

__all__ = ["World", "declare_all"]

_TARGETS_MAX = 3


def declare_all(app: Detent) -> Detent:
    """Declare two tasks, a batch and a workflow, and return the application."""

    @app.task(name="add")
    def add(ctx: Context, a: int, b: int) -> int:
        return a + b

    @app.task(name="say", retry=Retry(0))
    def say(ctx: Context, text: Any = None) -> Any:
        ctx.event("said", text=text)
        return text

    @app.task(name="fail", retry=Retry(0))
    def fail(ctx: Context, why: str = "as it must") -> None:
        raise RuntimeError(why)

    @app.batch(name="reprice")
    @dataclass
    class Reprice:
        many: int

        def targets(self) -> Iterator[str]:
            return (f"item-{number}" for number in range(min(self.many, _TARGETS_MAX)))

        def preview(self, ref: str) -> Change[int]:
            return Change(before=1, after=2)

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

        def revert(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

    @app.workflow(name="approve")
    def approve(ctx: WorkflowContext, order: str = "1") -> Any:
        return ctx.wait_for("decision")

    return app


class World:
    """One database with the application, its HTTP API and an event loop that serves requests. `ids` has the id of
    something of each sort, the same on both databases."""

    def __init__(self, url: str) -> None:
        self._exits = ExitStack()
        self.url = url
        self.kind = "SQLite" if is_sqlite(url) else "PostgreSQL"
        self.harness = self._exits.enter_context(closing(Harness(url)))
        self.app = self.harness.use(declare_all(Detent(url, actor="ana")))
        self.api = build_api(self.app, actor="ana", tokens_required=False)
        self.loop = asyncio.new_event_loop()
        self._exits.callback(self.loop.close)
        self._watch = self._exits.enter_context(closing(plain_connection(url))) if is_sqlite(url) else None
        self.ids = self._fill()

    def _fill(self) -> dict[str, str]:
        app = self.app
        done = app.enqueue_named("add", '{"a":1,"b":2}', key="done", tenant="acme")
        dead = app.enqueue_named("fail", "{}", key="dead")
        run = app.runs.preview_named("reprice", '{"many":2}')
        waiting = app.enqueue_named("approve", "{}", key="waiting")
        self.harness.work()
        operation = app.jobs.where(state="quarantined", queue="nothing").retry()
        pending = app.enqueue_named("add", '{"a":1,"b":2}', queue="mail")
        app.schedules.set("nightly", "0 2 * * *", app.call_named("say", "{}"))
        app.queues.limit("mail", Limit(concurrency=2))
        ops = app.ops.queue("shop", "prod", git_ref="main")
        rows: dict[str, Any] = {"done": done, "dead": dead, "run": run, "waiting": waiting, "pending": pending}
        rows |= {"operation": operation, "ops": ops}
        return {name: str(row.id) for name, row in rows.items()}

    def version(self) -> Any:
        """Return a number that changes when another connection has committed a change to this file; None on PostgreSQL,
        which has none."""
        return None if self._watch is None else self._watch.execute("PRAGMA data_version").fetchone()[0]

    def close(self) -> None:
        """Close everything."""
        self._exits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with warnings.catch_warnings():
            self.close()
