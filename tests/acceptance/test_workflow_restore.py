"""Workflows in a database that was restored from an old copy: what was done since the copy is not on record."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from detent.declare.probe import Probed
from detent.declare.workflow import Step
from detent.declare.workflow_context import WorkflowContext
from detent.errors import WrongToken
from detent.testing.harness import Harness
from detent.testing.postgres import Cluster
from detent.testing.stores import row_violations
from tests.conftest import RUN

Copy = Callable[[str], str]
_numbers = itertools.count(1)


@pytest.fixture(params=["sqlite", "postgres"])
def original(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> Iterator[tuple[str, Copy]]:
    """A database of its own, and a function that copies it while nothing has it open."""
    if request.param == "sqlite":
        path = tmp_path / "original.db"
        shutil.copy(sqlite_template, path)

        def copy_file(url: str) -> str:
            copied = tmp_path / f"copy{next(_numbers)}.db"
            shutil.copy(url.removeprefix("sqlite:///"), copied)
            return f"sqlite:///{copied}"

        yield f"sqlite:///{path}", copy_file
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    made: list[str] = []

    def create(template: str) -> str:
        made.append(f"detent_restore_{RUN}_{next(_numbers)}")
        return cluster.create_database(made[-1], template=template)

    yield create(request.getfixturevalue("postgres_template")), lambda url: create(url.rpartition("/")[2])
    for name in made:
        cluster.drop_database(name)


class Shop:
    """What steps do outside of the database: no restore takes it back."""

    def __init__(self, *, probe: bool) -> None:
        self.calls: list[str] = []
        self.asked: list[str] = []
        self._probe = probe

    def declare(self, harness: Harness) -> Any:
        """Declare a workflow that asks, sleeps for a minute, charges and ships."""

        def act(word: str) -> str:
            self.calls.append(word)
            return word

        def probe(word: str) -> Probed:
            self.asked.append(word)
            return Probed.done(word) if word in self.calls else Probed.not_done()

        @harness.app.workflow(name="order", undo="on_request")
        def order(ctx: WorkflowContext) -> list[str]:
            ctx.step("ask", act, "ask")
            ctx.sleep(60)
            once = [Step[str](word, once=True, probe=probe if self._probe else None) for word in ("charge", "ship")]
            return [ctx.step(step, act, step.name) for step in once]

        return order


@pytest.mark.parametrize("next_wait_only", [False, True])
def test_a_token_of_a_job_that_was_lost_is_not_one_of_another(original: tuple[str, Copy], next_wait_only: bool) -> None:
    """C5: after the restore, another job got the id of the lost one, and its link approved the wrong expense. A link of
    a job in the backup goes on."""
    url, copy = original
    made: dict[str, list[str]] = {}

    def expense(harness: Harness, place: str) -> int:
        @harness.app.workflow(name="expense")
        def declared(ctx: WorkflowContext) -> Any:
            made.setdefault(place, []).append(ctx.token("decision", next_wait_only=next_wait_only))
            return ctx.wait_for("decision")

        job = declared.enqueue()
        harness.work()
        return job.id

    with closing(Harness(url)) as harness:
        kept = expense(harness, "kept")
    backup = copy(url)
    with closing(Harness(url)) as harness:
        harness.store.ids_reserve(100)
        lost = expense(harness, "lost")
    with closing(Harness(backup)) as harness:
        harness.app.identities.renew(reason="restored")
        harness.store.ids_reserve(lost - harness.store.ids_reserve(1) - 1)
        another = expense(harness, "another")
        assert another == lost
        with pytest.raises(WrongToken):
            harness.app.workflows.redeem(made["lost"][0], True)
        assert harness.store.signal_list(another) == []
        assert harness.app.workflows.redeem(made["kept"][0], True).job_id == kept
        assert harness.app.workflows.redeem(made["another"][-1], True).job_id == another


def restored(original: tuple[str, Copy], shop: Shop, *, sleeps: float) -> tuple[Harness, int]:
    """A workflow parks; the database is copied; the workflow goes on for `sleeps` seconds; the copy takes its place."""
    url, copy = original
    with closing(Harness(url)) as harness:
        job = shop.declare(harness).enqueue()
        harness.work()
    backup = copy(url)
    with closing(Harness(url)) as harness:
        shop.declare(harness)
        harness.clock.advance(sleeps)
        harness.work()
    harness = Harness(backup)
    harness.app.identities.renew(actor="ann", reason="restored from last night's copy")
    shop.declare(harness)
    harness.clock.advance(61)
    return harness, job.id


@pytest.mark.parametrize("sleeps", [61, 0], ids=["gone on", "not gone on"])
def test_a_probe_tells_what_was_done_since_the_copy(original: tuple[str, Copy], sleeps: float) -> None:
    """F26: what was done is recorded and not repeated; what was not done is called, once."""
    shop = Shop(probe=True)
    harness, job_id = restored(original, shop, sleeps=sleeps)
    with closing(harness):
        assert shop.calls == (["ask", "charge", "ship"] if sleeps else ["ask"])
        harness.work()
        job = harness.app.jobs.get(job_id)
        assert (job.state, job.result) == ("succeeded", ["charge", "ship"])
        assert shop.calls == ["ask", "charge", "ship"]
        assert shop.asked == ["charge", "ship"]
        assert row_violations(harness.store, harness.url) == []


def test_without_a_probe_a_person_decides(original: tuple[str, Copy]) -> None:
    """F26: the workflow is quarantined by the name of its step before the step is called, and the error says that the
    database was restored. A retry of another cause before that is no answer; one after it answers for all steps."""
    shop = Shop(probe=False)
    harness, job_id = restored(original, shop, sleeps=61)
    with closing(harness):
        job = harness.app.jobs.get(job_id)
        job.cancel(actor="ann", reason="the shop is closed today")
        job.refresh().retry(actor="ann", reason="it is open again")
        harness.work()
        assert job.refresh().state == "quarantined"
        assert job.executions()[-1].outcome == "unknown"
        assert "step 'charge'" in (job.error or "")
        assert "restored" in (job.error or "")
        assert shop.calls == ["ask", "charge", "ship"], "nothing was called again"
        job.retry(actor="ann", reason="the bank knows of no charge")
        harness.work()
        assert job.refresh().result == ["charge", "ship"]
        assert shop.calls == ["ask", "charge", "ship", "charge", "ship"]
        assert row_violations(harness.store, harness.url) == []


def test_workflows_that_begin_after_the_restore_are_not_in_doubt(original: tuple[str, Copy]) -> None:
    """F26: their ids were reserved under the new identity."""
    shop = Shop(probe=False)
    harness, _ = restored(original, shop, sleeps=61)
    with closing(harness):
        new = harness.app.enqueue(harness.app.find_task("order").call())
        harness.work(skip=True)
        assert new.refresh().result == ["charge", "ship"]
