"""Workflows that workers of two releases of Detent take in turns. Each step notes by which release it was called."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from detent import Context, Detent, Fatal, Retry
from detent.declare.workflow import Step, StepCall
from detent.declare.workflow_context import WorkflowContext
from detent.store.installed_release import this_release
from detent.testing.stores import plain_connection
from tests.processes.workflows import SUPPORTS, VERSION

PATIENT = Retry(100, base=0.05)
BOOK = "INSERT INTO booked (job_id, amount) VALUES (:job_id, :amount)"
TABLES = (
    "CREATE TABLE booked (job_id bigint NOT NULL, amount bigint NOT NULL)",
    "CREATE TABLE noted (job_id bigint NOT NULL, word text NOT NULL, key text NOT NULL, release text NOT NULL)",
)


def note(ctx: Any, word: str) -> str:
    """Leave a row, which no kill takes back."""
    url = os.environ["DETENT_DATABASE_URL"]
    with closing(plain_connection(url)) as connection:
        values = ", ".join(f"'{one}'" for one in (word, ctx.effect_key, this_release()))
        connection.execute(f"INSERT INTO noted (job_id, word, key, release) VALUES ({ctx.job_id}, {values})")
        connection.commit()
    return word


def book(tx: Any, job_id: int, amount: int) -> int:
    tx.execute(BOOK, {"job_id": job_id, "amount": amount})
    return amount


def undoable(ctx: WorkflowContext, name: str) -> Step[str]:
    return Step(name, undo=lambda _: note(ctx, f"undo {name}"))


def make_app(url: str | None = None) -> Detent:
    """Return the application."""
    app = Detent(url)

    @app.task(name="render", retry=PATIENT)
    def render(ctx: Context, n: int) -> int:
        return n

    @app.workflow(name="leaf", retry=PATIENT)
    def leaf(ctx: WorkflowContext) -> str:
        ctx.step("leaf", note, ctx, "leaf")
        return ctx.wait_for("go", str)

    @app.workflow(name="trip", retry=PATIENT, linger=0)
    def trip(ctx: WorkflowContext) -> list[Any]:
        """Four legs, each until the next signal."""
        ctx.step("pack", note, ctx, "pack")
        ctx.transact("first", book, ctx.job_id, 1)
        found: list[Any] = [ctx.wait_for("go", str)]
        child = ctx.spawn(leaf.call())
        photos = ctx.spawn_many("photos", [render.call(n=n) for n in range(5)])
        ctx.step("leave", note, ctx, "leave")
        ctx.sleep(0.3)
        found.append(ctx.wait_for("go", str))
        found.append(sum(photos.join().results()))
        found.append(ctx.scope("inn", inn, ctx))
        found.append(ctx.first(ctx.on("never", str), ctx.on("go", str), timeout=10**6).value)
        found += ctx.gather(*(StepCall(Step("say", key=n), note, ctx, f"say{n}") for n in range(3)))
        found.append(ctx.join(child))
        ctx.transact("last", book, ctx.job_id, 2)
        return found

    def inn(ctx: WorkflowContext, outer: WorkflowContext) -> str:
        return ctx.step("sleep", note, outer, "inn")

    @app.workflow(name="voyage", retry=PATIENT)
    def voyage(ctx: WorkflowContext) -> None:
        """It fails in its third leg, and its steps are undone."""
        ctx.step(undoable(ctx, "reserve"), note, ctx, "reserve")
        ctx.wait_for("go", str)
        ctx.step(undoable(ctx, "charge"), note, ctx, "charge")
        ctx.wait_for("go", str)
        raise Fatal("no ship")

    @app.workflow(name="turns", retry=PATIENT)
    def turns(ctx: WorkflowContext, heard: tuple[str, ...] = ()) -> list[str]:
        """Each leg is a generation."""
        ctx.step("turn", note, ctx, f"turn{len(heard)}")
        heard = (*heard, ctx.wait_for("go", str))
        if len(heard) < 3:
            ctx.continue_as_new(heard=heard)
        return list(heard)

    version = int(os.environ.get(VERSION, "1"))
    supports = tuple(int(one) for one in os.environ.get(SUPPORTS, str(version)).split())

    @app.workflow(name="expense", version=version, supports=supports, retry=PATIENT)
    def expense(ctx: WorkflowContext) -> str:
        ctx.step("ask", note, ctx, "ask")
        if ctx.version >= 2:
            ctx.step("audit", note, ctx, "audit")
        return f"{ctx.wait_for('go', str)} under {ctx.version}"

    @app.workflow(name="nap", retry=PATIENT, linger=0)
    def nap(ctx: WorkflowContext) -> str:
        ctx.sleep(0.3)
        return ctx.step("wake", note, ctx, "wake")

    return app


app = make_app()
