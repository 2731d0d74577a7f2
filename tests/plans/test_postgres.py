"""How much a verb touches on PostgreSQL, counted by the server: what lies ahead must not cost anything.

The server keeps, for the transaction that runs, how many rows and index entries each table and index has given out and
how many pages were asked for. The same calls are made in two databases that differ only in the size of the crowd: one
job of each kind, or twenty thousand. Rows must be the same; pages may be a few more for each look into an index,
since a large tree is up to two levels deeper. A verb that walks through the crowd gives out twenty thousand rows.

Each is measured before ANALYZE, when the planner knows nothing, and after it, when it might know better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg
import pytest

from detent.model.alert_records import MEASURES
from detent.model.records import Abort, Commit, Finish, NewEvent
from detent.model.service_records import WalkPlace, WalkStep
from detent.store.contract import Store, Verbs
from detent.store.invariants import load
from detent.store.invariants.stepwise_check import step
from detent.store.open import open_store
from detent.store.postgres.store import WHOLE_TABLES
from detent.testing.postgres import Cluster
from detent.testing.stores import START, plain_connection
from tests.contract.jobs.sample_jobs import claim, enqueue, finish, new_job
from tests.contract.workflows.sample_workflows import begin
from tests.plans.crowd import KNOWN_TASK, PAUSED, SIZE, fill

SMALL = 1
BATCH = 10
ROWS_MORE = 50
"""Rows more at most: where a look meets entries that the other database had already marked as gone. Every measurement
before it left some, since it was rolled back. Whoever walks through the crowd meets all `SIZE` of it."""
DEEPER = 2
"""Times as many pages at most: two levels of a tree, where there is one page in the small database."""
TOUCHED = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0),
       coalesce(sum(pg_stat_get_xact_tuples_fetched(c.oid)), 0),
       coalesce(sum(pg_stat_get_xact_blocks_fetched(c.oid)), 0)
  FROM pg_class c WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind IN ('r', 'i')
"""


UNDISTURBED = """
DO $$ DECLARE one text; BEGIN
  FOR one IN
    SELECT c.oid::regclass FROM pg_class c WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind = 'r'
  LOOP
    EXECUTE 'ALTER TABLE ' || one || ' SET (autovacuum_enabled = false)';
  END LOOP;
END $$
"""
"""Nobody tells the planner of a table, or clears one of the two databases up, between two measurements."""


class Touched(NamedTuple):
    """What a call has touched."""

    returned: int
    """Rows of walks through tables, and entries of indexes."""
    fetched: int
    """Rows fetched by way of an index."""
    pages: int


class Bench:
    """One database, and verbs in it that are rolled back after each measurement."""

    def __init__(self, store: Store, url: str) -> None:
        self._connection: psycopg.Connection[Any] = plain_connection(url)
        # What other processes read on behalf of this one is counted as theirs.
        self._connection.execute("SET max_parallel_workers_per_gather = 0")
        self._connection.commit()
        self._store = store

    @property
    def verbs(self) -> Verbs:
        """In the transaction that `touched` ends."""
        return self._store.on(self._connection)

    def turn_clock(self, by: timedelta) -> None:
        """Forward, for as long as the transaction lasts."""
        self._connection.execute("UPDATE detent.test_clock SET at = at + %s", (by,))

    def touched(self, work: Callable[[Verbs], Any]) -> Touched:
        """What this call touches; then everything is as it was."""
        before = self._look()
        work(self.verbs)
        after = self._look()
        self._connection.rollback()
        return Touched(*(int(late - early) for early, late in zip(before, after, strict=True)))

    def _look(self) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._connection.execute(TOUCHED).fetchone()
        assert row is not None
        return row

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def unanalyzed(postgres_cluster: Cluster, postgres_template: str) -> Iterator[list[str]]:
    """The names of a database with hardly anybody in the way, and of one with a crowd."""
    names = [f"{postgres_template}_{size}" for size in (SMALL, SIZE)]
    for name, size in zip(names, (SMALL, SIZE), strict=True):
        url = postgres_cluster.create_database(name, template=postgres_template)
        _run(url, UNDISTURBED)
        with closing(open_store(url)) as store:
            store.ready()
            fill(url, size)
            store.queue_pause(PAUSED, "ana")
            # Behind all the others: lowest rank, latest time.
            store.job_enqueue([new_job(store, priority=-5, payload=f"[{n}]") for n in range(3 * BATCH)])
    yield names
    for name in names:
        postgres_cluster.drop_database(name)


@pytest.fixture(scope="module")
def analyzed(postgres_cluster: Cluster, unanalyzed: list[str]) -> Iterator[list[str]]:
    """Copies of both, of which the planner knows what is in them."""
    names = [f"{name}_analyzed" for name in unanalyzed]
    for name, original in zip(names, unanalyzed, strict=True):
        _run(postgres_cluster.create_database(name, template=original), "VACUUM ANALYZE")
    yield names
    for name in names:
        postgres_cluster.drop_database(name)


@pytest.fixture(params=["unanalyzed", "analyzed"])
def urls(request: pytest.FixtureRequest, postgres_cluster: Cluster) -> list[str]:
    names: list[str] = request.getfixturevalue(request.param)
    return [postgres_cluster.url_of(name) for name in names]


def _run(url: str, *statements: str) -> None:
    with closing(plain_connection(url)) as connection:
        connection.autocommit = True
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def benches(urls: list[str]) -> Iterator[list[Bench]]:
    stores = [open_store(url) for url in urls]
    made = [Bench(store, url) for store, url in zip(stores, urls, strict=True)]
    yield made
    for bench, store in zip(made, stores, strict=True):
        bench.close()
        store.close()


def check_bounded(
    benches: Sequence[Bench], work: Callable[[Verbs, Any], Any], before: Callable[[Verbs], Any] | None = None
) -> None:
    """Measure `work`, given what `before` gave, alone and in the crowd: the rows are the same, the pages nearly so."""
    found = []
    for bench in benches:
        given = before(bench.verbs) if before else None
        found.append(bench.touched(lambda verbs, given=given: work(verbs, given)))  # type: ignore[misc]
    alone, crowded = found
    assert alone.pages > 0
    assert crowded.returned <= alone.returned + ROWS_MORE, (alone, crowded)
    assert crowded.fetched <= alone.fetched + ROWS_MORE, (alone, crowded)
    assert crowded.pages <= DEEPER * alone.pages, (alone, crowded)


def ten_claimed(verbs: Verbs) -> Any:
    held = claim(verbs, limit=BATCH)
    assert [(job.task, job.queue) for job in held] == [(KNOWN_TASK, "default")] * BATCH
    return held


def finish_all(verbs: Verbs, held: Any) -> None:
    verbs.job_finish([Finish(job.job_id, job.attempt, None) for job in held], "ana")


def abort_all(verbs: Verbs, held: Any) -> None:
    verbs.job_abort([Abort(job_id=job.job_id, attempt=job.attempt, outcome="error") for job in held], "ana")


def append_all(verbs: Verbs, held: Any) -> None:
    verbs.event_append([NewEvent(job_id=job.job_id, attempt=job.attempt, level="info", message="x") for job in held])


def commit_one(verbs: Verbs, held: Any) -> None:
    verbs.job_commit(Commit(job_id=held[0].job_id, attempt=held[0].attempt))


@pytest.mark.parametrize("limit", [1, BATCH])
def test_a_claim_costs_the_same_whatever_lies_ahead(benches: Sequence[Bench], limit: int) -> None:
    """J4: 300,000 future, unknown and paused jobs in front of it, and the claim does not meet one of them."""
    check_bounded(benches, lambda verbs, _: claim(verbs, limit=limit))


def test_a_claim_out_of_several_lanes_costs_the_same(benches: Sequence[Bench]) -> None:
    """J4: tenants and ranks are lanes of their own; a claim looks at the heads of those it may enter."""

    def more_lanes(verbs: Verbs) -> None:
        verbs.job_enqueue([new_job(verbs, tenant=f"t{n % 3}", priority=n % 2 - 5) for n in range(3 * BATCH)])

    check_bounded(benches, lambda verbs, _: claim(verbs, limit=BATCH), more_lanes)


def test_a_claim_that_finds_nothing_costs_the_same(benches: Sequence[Bench]) -> None:
    """J4: to learn that there is nothing to do is cheap too."""
    check_bounded(benches, lambda verbs, _: claim(verbs, tasks=["other"]))


@pytest.mark.parametrize("work", [finish_all, abort_all, append_all, commit_one])
def test_the_holders_verbs_cost_the_same(benches: Sequence[Bench], work: Callable[[Verbs, Any], None]) -> None:
    check_bounded(benches, work, ten_claimed)


def test_a_cancel_finds_its_place_in_the_queue(benches: Sequence[Bench]) -> None:
    """J8: of a job that is ready, from the job itself, whatever waits beside it."""
    check_bounded(benches, lambda verbs, job_id: verbs.job_cancel([job_id], "ana"), before=enqueue)


def test_a_renewal_costs_the_same(benches: Sequence[Bench]) -> None:
    """J5: one row a claim, and a look at the jobs that it names."""

    def claimed(verbs: Verbs) -> tuple[int, list[int]]:
        lease = verbs.ids_reserve(1)
        return lease, [job.job_id for job in claim(verbs, limit=BATCH, lease_id=lease)]

    check_bounded(benches, lambda verbs, held: verbs.lease_renew([held[0]], 30.0, dict.fromkeys(held[1], 0.5)), claimed)


def test_the_reaper_looks_only_at_leases(benches: Sequence[Bench]) -> None:
    """J6: what nobody holds does not delay it."""
    for bench in benches:
        ten_claimed(bench.verbs)
        bench.turn_clock(timedelta(seconds=31))
    check_bounded(benches, lambda verbs, _: verbs.lease_reap(100))


@pytest.mark.parametrize("verb", ["job_promote", "job_expire"])
def test_services_find_nothing_to_do_at_once(benches: Sequence[Bench], verb: str) -> None:
    """J12: whose time has not come is not looked at."""
    check_bounded(benches, lambda verbs, _: getattr(verbs, verb)(100))


@pytest.mark.parametrize(("verb", "days"), [("job_promote", 1.5), ("job_expire", 3)])
def test_services_take_their_portion_and_no_more(benches: Sequence[Bench], verb: str, days: float) -> None:
    """J12: twenty thousand have come due, ten are taken: the work is that of ten."""
    crowded = benches[1]
    crowded.turn_clock(timedelta(days=days))
    touched = crowded.touched(lambda verbs: getattr(verbs, verb)(BATCH))
    # Each is met in its queue row, its job, its log and the guard's look at that, in index and table.
    assert touched.returned + touched.fetched <= 30 * BATCH, touched


def test_an_enqueue_costs_the_same(benches: Sequence[Bench]) -> None:
    """J2: also with a key, and with one that is taken."""

    def with_key(verbs: Verbs) -> Any:
        verbs.job_enqueue([new_job(verbs, key="k", priority=-5)])
        return [new_job(verbs, key=key, priority=-5) for key in ("k", "l", None)]

    check_bounded(benches, lambda verbs, items: verbs.job_enqueue(items), with_key)


def look_for_alerts(verbs: Verbs, _: Any) -> None:
    verbs.alert_tally(BATCH)
    verbs.alert_measure([(measure, "limit" if measure == "breaker_open" else "queue", 900.0) for measure in MEASURES])


def test_what_alerts_look_at_is_bounded(benches: Sequence[Bench]) -> None:
    """M2: sixty thousand jobs are no more work for the judge than three."""

    def rested(verbs: Verbs) -> None:
        finish_all(verbs, ten_claimed(verbs))

    for bench in benches:
        bench.verbs.alert_tally(BATCH)
        bench.turn_clock(timedelta(seconds=1))
    check_bounded(benches, look_for_alerts, rested)


def newest(_connection: psycopg.Connection[Any]) -> WalkPlace:
    return WalkPlace(part="jobs")


def amid_the_crowd(_connection: psycopg.Connection[Any]) -> WalkPlace:
    return WalkPlace(part="jobs", below=3 * SIZE // 2)


def front_of_the_queue(_connection: psycopg.Connection[Any]) -> WalkPlace:
    return WalkPlace(part="queue")


def amid_the_queue(connection: psycopg.Connection[Any]) -> WalkPlace:
    sql = "SELECT lane_id, ready_at, job_id FROM detent.ready WHERE job_id = %s"
    row = connection.execute(sql, (3 * SIZE // 2,)).fetchone()
    assert row is not None
    return WalkPlace(part="queue", after=(row[0], row[1], row[2]))


@pytest.mark.parametrize("where", [newest, amid_the_crowd, front_of_the_queue, amid_the_queue])
def test_a_step_of_the_walk_takes_its_portion_and_no_more(
    urls: list[str], where: Callable[[psycopg.Connection[Any]], WalkPlace]
) -> None:
    """R2: the invariants for ten jobs among sixty thousand are the work of ten."""
    with closing(open_store(urls[1])) as store, closing(Bench(store, urls[1])) as bench:
        place = where(bench._connection)
        found: list[WalkStep] = []
        touched = bench.touched(lambda _: found.append(_step(bench._connection, place)))
        assert [one.violations for one in found] == [()]
        # Each job is met by two dozen invariants, in some of them four times, in index and table.
        assert 0 < touched.returned + touched.fetched <= 150 * BATCH, touched


def _step(connection: psycopg.Connection[Any], place: WalkPlace) -> WalkStep:
    connection.execute(WHOLE_TABLES)
    return step(
        "postgres",
        lambda sql, params: connection.execute(sql.encode(), params or None).fetchall(),
        place,
        BATCH,
        before_all=START,
        listed=list,
    )


@pytest.mark.parametrize("known", ["empty", "few", "crowd"])
def test_an_invariant_goes_through_each_table_a_few_times_whatever_the_planner_believes(
    postgres_template: str, postgres_cluster: Cluster, unanalyzed: list[str], known: str
) -> None:
    """R2: planned over tables that are empty, that had one row when they were analysed, or of which nothing is known,
    and carried out over what they have become since: no look at a growing table is repeated for each row of another."""
    name = f"{postgres_template}_{known}"
    template = unanalyzed[1] if known == "crowd" else postgres_template
    url = postgres_cluster.create_database(name, template=template)
    if known == "few":
        with closing(open_store(url)) as store:
            finish(store, begin(store))
        _run(url, "VACUUM ANALYZE")
    with closing(plain_connection(url)) as connection:
        connection.execute(WHOLE_TABLES)
        for invariant in load("postgres"):
            ((plans,),) = connection.execute(f"EXPLAIN (FORMAT JSON) {invariant.sql}").fetchall()
            assert repeated(plans[0]["Plan"]) == [], invariant.name
    postgres_cluster.drop_database(name)


def test_a_repeated_look_would_be_seen(postgres_store_url: str) -> None:
    """The measure measures: what log_follows_the_record once asked for each job."""
    looking = """
        SELECT id FROM detent.job j
         WHERE attempt > (SELECT coalesce(max(e.attempt), 0) FROM detent.execution e WHERE e.job_id = j.id)
    """
    with closing(plain_connection(postgres_store_url)) as connection:
        ((plans,),) = connection.execute(f"EXPLAIN (FORMAT JSON) {looking}").fetchall()
        assert repeated(plans[0]["Plan"]) == ["execution"]


def repeated(node: dict[str, Any]) -> list[str]:
    """The tables that a plan looks at again for each row of another one."""
    below = node.get("Plans", [])
    found = [
        table for one in below if str(one.get("Subplan Name", "")).startswith("SubPlan") for table in looked_at(one)
    ]
    if node["Node Type"] == "Nested Loop":
        outer, inner = (looked_at(one) for one in below if one["Parent Relationship"] in ("Outer", "Inner"))
        found += inner if outer else []
    return found + [table for one in below for table in repeated(one)]


def looked_at(node: dict[str, Any]) -> list[str]:
    """The tables of Detent's in this part of a plan."""
    here = [node["Relation Name"]] if not str(node.get("Relation Name", "pg_")).startswith("pg_") else []
    return here + [table for one in node.get("Plans", []) for table in looked_at(one)]


def test_a_small_crowd_is_a_healthy_record(postgres_store_url: str) -> None:
    """R2: the crowd is made of rows that enqueues would have made."""
    with closing(open_store(postgres_store_url)) as store:
        store.ready()
        fill(postgres_store_url, 3)
        assert store.verify() == []


def test_a_walk_would_be_seen(urls: list[str]) -> None:
    """A statement that walks through the crowd gives out its rows: the measure measures."""
    with closing(open_store(urls[1])) as store, closing(Bench(store, urls[1])) as bench:
        looking = "SELECT count(*) FROM detent.job WHERE task = 'nobody.knows'"
        assert bench.touched(lambda _: bench._connection.execute(looking)).returned >= SIZE
