"""How much the verbs of batch runs touch: a portion of a large run costs what a portion of a small one does.

On PostgreSQL the server counts rows and pages, before ANALYZE and after it; on SQLite the steps of its machine are
counted. The two databases differ only in the number of the run's targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from detent.model.batch_records import ActionPortion, BatchFilter, Holder, NewAction, NewBatchRun, Previewed, Stepped
from detent.model.clock import TurnableClock
from detent.store.contract import Store, Verbs
from detent.store.open import open_store
from detent.testing.postgres import Cluster
from detent.testing.stores import START, plain_connection
from tests.contract.batches.sample_batch_runs import APPLY, DRIVE, PLAN, PREVIEW, stepping
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.plans import test_postgres, test_sqlite

SIZES = (60, 6_000)
PORTION = 10
PIECE = 500


class Run(NamedTuple):
    """A run whose first targets are queued, and who holds its jobs."""

    id: int
    action: int
    driver: Holder
    previewer: Holder


def filled(store: Store, size: int) -> Run:
    """A run of this size, previewed but for its last targets of another run, with an apply that has begun."""
    made = []
    for number in range(2):
        run_id = store.ids_reserve(1)
        item = NewBatchRun(id=run_id, batch="b", payload="{}", fingerprint="f", actor="ana")
        store.batch_create(item, new_job(store, task=PLAN, run_id=run_id))
        plan = _held(store, PLAN)
        for first in range(1, size + 1, PIECE):
            refs = [f"ref-{n}" for n in range(first, min(first + PIECE, size + 1))]
            preview = new_job(store, task=f"{PREVIEW}{number}", run_id=run_id)
            store.target_add(plan, run_id, first, refs, preview, first + PIECE > size)
        made.append((run_id, _held(store, f"{PREVIEW}{number}")))
    (run_id, holder), (_, other) = made
    for first in range(1, size + 1, PIECE):
        items = [Previewed(n=n, before="1", after="2") for n in range(first, min(first + PIECE, size + 1))]
        store.target_previewed(holder, run_id, items)
    action = NewAction(id=store.ids_reserve(1), run_id=run_id, action="apply", actor="ana")
    store.batch_act(action, new_job(store, task=DRIVE, run_id=run_id))
    found = Run(run_id, action.id, _held(store, DRIVE), other)
    step(store, found)
    step(store, found)
    return found


def _held(store: Store, task: str) -> Holder:
    (one,) = claim(store, tasks=[task], limit=1, lease=1e7)
    return one.job_id, one.attempt


def step(verbs: Any, run: Run) -> None:
    """Move a portion of the action's targets."""
    portion = verbs.batch_portion(run.action, PORTION)
    assert isinstance(portion, ActionPortion)
    jobs = stepping(verbs, portion)
    done = verbs.batch_step(run.driver, run.action, portion.action.cursor, portion.to_cursor, jobs, portion.last)
    assert isinstance(done, Stepped)


def page(verbs: Any, run: Run) -> None:
    """A page in the middle."""
    assert len(verbs.target_list(run.id, after_n=30, limit=PORTION)) == PORTION


def by_refs(verbs: Any, run: Run) -> None:
    """Some by name."""
    assert len(verbs.target_list(run.id, refs=[f"ref-{n}" for n in range(40, 50)])) == PORTION


def claimed(verbs: Any, run: Run) -> None:
    """Targets taken up by a worker: they and their run follow."""
    assert len(claim(verbs, tasks=[APPLY], limit=PORTION)) == PORTION


def previewed(verbs: Any, run: Run) -> None:
    """A piece of the preview of a run of the same size."""
    other = next(row.id for row in verbs.batch_list(BatchFilter()) if row.id != run.id)
    verbs.target_previewed(run.previewer, other, [Previewed(n=n, before="1", after="2") for n in range(20, 30)])


WORKS = [step, page, by_refs, claimed, previewed]


@pytest.fixture(scope="module")
def on_postgres(postgres_cluster: Cluster, postgres_template: str) -> Iterator[list[tuple[str, Run]]]:
    """A database with a small run, and one with a large one; nobody has told the planner of either."""
    made = []
    for size in SIZES:
        name = f"{postgres_template}_batch_{size}"
        url = postgres_cluster.create_database(name, template=postgres_template)
        test_postgres._run(url, test_postgres.UNDISTURBED)
        with closing(open_store(url)) as store:
            made.append((url, filled(store, size)))
    yield made
    for size in SIZES:
        postgres_cluster.drop_database(f"{postgres_template}_batch_{size}")


@pytest.mark.parametrize("work", WORKS)
def test_a_portion_of_a_large_run_touches_no_more(
    on_postgres: list[tuple[str, Run]], work: Callable[[Any, Run], None]
) -> None:
    """B3: 100,000 targets are ordinary work, whatever the planner believes."""
    for told in (False, True):
        found = []
        for url, run in on_postgres:
            if told:
                test_postgres._run(url, "ANALYZE")
            with closing(open_store(url)) as store, closing(test_postgres.Bench(store, url)) as bench:

                def measured(verbs: Verbs, run: Run = run) -> None:
                    work(verbs, run)

                found.append(bench.touched(measured))
        small, large = found
        assert large.returned <= small.returned + 10 * PORTION, (told, small, large)
        assert large.fetched <= small.fetched + 10 * PORTION, (told, small, large)
        assert large.pages <= 3 * small.pages, (told, small, large)


@pytest.fixture(scope="module")
def in_files(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Run]]:
    """A file with a small run, and one with a large one."""
    made = []
    for size in SIZES:
        path = tmp_path_factory.mktemp("batches") / f"{size}.db"
        with closing(open_store(f"sqlite:///{path}", clock=TurnableClock(START))) as store:
            store.ready()
            made.append((path, filled(store, size)))
    return made


@pytest.mark.parametrize("work", WORKS)
def test_a_portion_of_a_large_run_takes_no_more_steps(
    in_files: list[tuple[Path, Run]], work: Callable[[Any, Run], None]
) -> None:
    """B3: the same in a file."""
    found = []
    for path, run in in_files:
        with closing(test_sqlite.Bench(path, TurnableClock(START))) as bench:

            def measured(verbs: Any, run: Run = run) -> None:
                work(verbs, run)

            found.append(bench.steps(measured))
    small, large = found
    assert large <= 1.2 * small, found


def test_the_plans_are_read_from_a_real_server(on_postgres: list[tuple[str, Run]]) -> None:
    """What is compared is there: the large run is a hundred times the small one."""
    sizes = []
    for url, run in on_postgres:
        with closing(plain_connection(url)) as connection:
            sizes.append(
                connection.execute(f"SELECT count(*) FROM detent.target WHERE run_id = {run.id}").fetchone()[0]
            )
    assert tuple(sizes) == SIZES
