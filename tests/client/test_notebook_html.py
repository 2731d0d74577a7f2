"""How a notebook shows handles and lists: escaped, complete, and without arguments and results."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from detent import Change, Context, Detent, ListPage, Retry
from detent.integrations.notebook import table
from detent.testing.harness import Harness


def html(item: Any) -> str:
    shown = item._repr_html_()
    assert isinstance(shown, str)
    return shown


@pytest.fixture
def app(detent: Harness) -> Detent:
    app = detent.app

    @app.task(name="fails", retry=Retry(0))
    def fails(ctx: Context, secret: str) -> None:
        raise ValueError("<script>alert(1)</script>")

    @app.batch(name="reprice")
    @dataclass
    class Reprice:
        def targets(self) -> list[str]:
            return ["a", "<b>"]

        def preview(self, ref: str) -> Change[dict[str, Any]]:
            return Change(before={"sku": ref, "price": 1}, after={"sku": ref, "price": 2})

        def apply(self, ctx: Context, ref: str, change: Change[Any]) -> None: ...

    return app


def test_a_job_is_shown_escaped_and_without_its_arguments(detent: Harness, app: Detent) -> None:
    job = app.enqueue(app.tasks["fails"].call(secret="swordfish"))
    assert "not read yet" in html(job)
    detent.work()
    job.refresh()
    for shown in (html(job), html(app.jobs.list())):
        assert "&lt;script&gt;" in shown
        assert "<script>" not in shown
        assert "swordfish" not in shown
        assert "quarantined" in shown
        assert "color" not in shown.replace("border-bottom", "")
    assert html(app.jobs.list(state="pending")) == "<p>nothing</p>"
    app.enqueue(app.tasks["fails"].call(secret="again"))
    assert "further pages" in html(app.jobs.list(limit=1))
    assert "further pages" not in html(app.jobs.list())

    async def on_a_loop() -> str:
        return html(await app.aio.jobs.get(job.id))

    assert asyncio.run(on_a_loop()) == html(job)


def test_a_batch_run_shows_progress_and_what_it_would_change(detent: Harness, app: Detent) -> None:
    (batch,) = [one for one in app.batches.values() if one.name == "reprice"]
    run = app.runs.preview(batch.kind())
    assert '<progress value="0" max="1"></progress> 0 of 0' in html(run)
    detent.work()
    assert "previewed" in html(run.refresh())
    assert '<progress value="2" max="2"></progress> 2 of 2' in html(run)
    changes = html(table(run.changes()))
    assert "&lt;b&gt;" in changes
    assert "{&quot;price&quot;:1}" in changes
    assert "sku" not in changes  # is the same before and after
    run.apply()
    detent.work()
    assert "2 applied" in html(run.refresh())


def test_a_long_list_is_cut() -> None:
    shown = html(ListPage(range(150)))
    assert shown.count("<tr>") == 101
    assert "and 50 more" in shown
