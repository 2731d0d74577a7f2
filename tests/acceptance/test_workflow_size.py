"""Long workflows: the ten-thousandth step costs what the first one cost, and what has ended is not read again.

Costs are counted: statements, rows or instructions of the database, lines of Python. `make test` takes a slice.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any

import psycopg
import pytest

from detent.declare.workflow import Step
from detent.declare.workflow_context import WorkflowContext
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.store.postgres.driver.direct_statements import DirectStatements
from detent.testing.harness import Harness
from detent.testing.stores import is_sqlite, plain_connection
from tests.contract.jobs.sample_jobs import claim_one
from tests.contract.workflows.sample_workflows import begin, is_sent, park, record, send, signal, step

PORTION = 1000
_ROWS = "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"


class Lines:
    """Counts the lines of Python that run."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, what: str, arg: Any) -> Lines:
        self.count += what == "line"
        return self

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count inside the block."""
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(None)


@contextmanager
def statements_counted(patch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the statements that are sent to PostgreSQL."""
    found = [0]

    def counting(plain: Callable[..., Any]) -> Callable[..., Any]:
        def send(*args: Any, **named: Any) -> Any:
            found[0] += 1
            return plain(*args, **named)

        return send

    with patch.context() as inside:
        for kind, names in (
            (DirectStatements, ("_round_trip",)),
            (psycopg.Cursor, ("execute",)),
        ):
            for name in names:
                inside.setattr(kind, name, counting(getattr(kind, name)))
        yield found


@pytest.mark.timeout(900)
def test_the_last_step_costs_what_the_first_one_cost(
    detent: Harness, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F14: in statements, and in lines of Python, a step near the limit of 10,000 is at most a tenth dearer."""
    steps, some = 9_990 if whole else 600, 10
    costs: dict[str, tuple[int, int]] = {}

    def measured(ctx: WorkflowContext, first: int, word: str) -> None:
        lines = Lines()
        with statements_counted(monkeypatch) as statements, lines.counted():
            for n in range(first, first + some):
                ctx.step(Step("act", key=n), int, n)
        costs[word] = (statements[0], lines.count)

    @detent.app.workflow(name="long")
    def long(ctx: WorkflowContext) -> None:
        ctx.step("begin", int)
        ctx.step("warm up", int)
        measured(ctx, 0, "first")
        for n in range(some, steps - some):
            ctx.step(Step("act", key=n), int, n)
        measured(ctx, steps - some, "last")

    job = long.enqueue()
    detent.work()
    assert job.refresh().state == "succeeded", job.error
    first, last = costs["first"], costs["last"]
    if not is_sqlite(detent.url):  # SQLite is called in this process, so its lines count
        assert first[0] >= some, "every step is written before the next one"
        assert last[0] <= first[0]
    assert last[1] <= 1.1 * first[1]


def database_cost(store: Store, url: str, held: Claimed, act: Callable[[Any], object]) -> int:
    """What a call costs the database: rows read on PostgreSQL, instructions on SQLite. It is rolled back."""
    with closing(plain_connection(url)) as connection:
        verbs = store.on(connection)
        if not is_sqlite(url):
            act(verbs)
            ((read,),) = connection.execute(_ROWS).fetchall()
            connection.rollback()
            return int(read)
        done = [0]

        def instruction() -> int:
            done[0] += 1
            return 0

        connection.set_progress_handler(instruction, 1)
        act(verbs)
        connection.set_progress_handler(None, 1)
        connection.rollback()
        return done[0]


def recorded_in_portions(store: Store, held: Claimed, seqs: Iterator[int], paths: list[tuple[str, str, str]]) -> None:
    """Record steps: path, scope and kind of each."""
    for start in range(0, len(paths), PORTION):
        portion = paths[start : start + PORTION]
        store.step_record([step(held, path, seq=next(seqs), scope=scope, kind=kind) for path, scope, kind in portion])


def test_the_database_reads_as_much_for_the_last_step_as_for_the_first(
    store: Store, store_url: str, whole: bool
) -> None:
    """F14: with 10,000 steps on record, and those of other generations and workflows beside them."""
    count = 9_998 if whole else 1_500
    held = begin(store)
    record(store, held, "begin")

    def one_more(verbs: Any) -> None:
        assert record(verbs, held, "one more", seq=20_000).created

    first = database_cost(store, store_url, held, one_more)
    recorded_in_portions(store, held, itertools.count(2), [(f"act:{n}", "", "call") for n in range(count)])
    assert database_cost(store, store_url, held, one_more) <= 1.1 * first


def test_finished_scopes_are_neither_loaded_nor_read(store: Store, store_url: str, whole: bool) -> None:
    """F14: 1,000 scopes of 100 steps load 1,000 rows; what is inside of them is passed over."""
    scopes, inside = (1_000, 100) if whole else (40, 100)
    held = begin(store)
    record(store, held, "begin")
    seqs = itertools.count(2)
    for n in range(0, scopes, 10):
        ten = range(n, min(n + 10, scopes))
        paths = [(f"part:{m:04}/act:{k}", f"part:{m:04}", "call") for m in ten for k in range(inside)]
        recorded_in_portions(store, held, seqs, [*paths, *((f"part:{m:04}", "", "scope") for m in ten)])
    park(store, held, signal())
    is_sent(send(store, held.job_id))
    again = claim_one(store)
    loaded: list[str] = []

    def load(verbs: Any) -> None:
        after = None
        while True:
            page = verbs.workflow_load(again.job_id, again.attempt, after=after, limit=PORTION)
            loaded.extend(one.path for one in page.steps)
            if (after := page.next) is None:
                return

    read = database_cost(store, store_url, again, load)
    assert sorted(loaded) == ["begin", *(f"part:{n:04}" for n in range(scopes))]
    most = 1_000 if is_sqlite(store_url) else 30  # instructions, or rows
    assert read <= most * len(loaded)
