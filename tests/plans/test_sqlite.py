"""How much work a verb is on SQLite, counted in steps of its virtual machine: what lies ahead must not cost anything.

The same calls are made on two files that differ in nothing but the size of the crowd: one job of each kind, or twenty
thousand. A step is one instruction, however deep the tree is that it looks into; so a verb that touches a
bounded number of rows takes the same number of steps in both, and one that walks through the crowd takes a hundred
thousand more. What little may differ (how many pages of a scan are left) is allowed for by `ALLOWED`.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from detent.model.alert_records import MEASURES
from detent.model.clock import TurnableClock
from detent.model.records import Abort, Commit, Finish, NewEvent
from detent.model.service_records import WalkPlace, WalkStep
from detent.store.invariants import stepwise_check
from detent.store.open import open_store
from detent.store.sqlite.driver.executor import Params, Row, SqliteExecutor
from detent.store.sqlite.verb_base import ids_json
from detent.store.sqlite.verbs import SqliteVerbs
from detent.testing.stores import START
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.plans.crowd import KNOWN_TASK, PAUSED, SIZE, fill

SMALL = 1
ALLOWED = 1.1
BATCH = 10

# A walk through one of these from end to end is never a plan: they grow with the jobs.
GROWING = ("job", "ready", "waiting", "lease", "execution", "event", "transition_log", "dead", "job_key")
SCAN = re.compile(r"\bSCAN (?:detent_)?(\w+)(?! VIRTUAL)")
ALIAS = re.compile(r"\bdetent_(\w+) (?:AS )?([a-z]\w*)\b")


class Listening:
    """An executor that remembers the plan of every statement."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._executor = SqliteExecutor(connection)
        self.plans: dict[str, list[str]] = {}

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        self._explain(sql, params)
        return self._executor.rows(sql, params)

    def change(self, sql: str, params: Params = ()) -> int:
        self._explain(sql, params)
        return self._executor.change(sql, params)

    def change_many(self, sql: str, params: Iterable[Sequence[Any]]) -> int:
        listed = [tuple(row) for row in params]
        for row in listed[:1]:
            self._explain(sql, row)
        return self._executor.change_many(sql, listed)

    def create_function(self, name: str, function: Callable[[Any], Any]) -> None:
        self._executor.create_function(name, function)

    def _explain(self, sql: str, params: Params) -> None:
        if sql not in self.plans:
            self.plans[sql] = [str(row[3]) for row in self._executor.rows(f"EXPLAIN QUERY PLAN {sql}", params)]

    def walks(self) -> list[tuple[str, str]]:
        """Every step of a plan that goes through a growing table from end to end."""
        found = []
        for sql, plan in self.plans.items():
            names = {alias: table for table, alias in ALIAS.findall(sql)}
            for step in plan:
                scanned = SCAN.match(step)
                if scanned and names.get(scanned[1], scanned[1]) in GROWING:
                    found.append((" ".join(sql.split()), step))
        return found


class Bench:
    """One file, and verbs on it that are rolled back after each measurement."""

    def __init__(self, path: Path, clock: TurnableClock) -> None:
        self.clock = clock
        self._connection = sqlite3.connect(path, isolation_level=None)
        # The first statement of a connection reads the whole schema, in steps of the same machine.
        self._connection.execute("SELECT count(*) FROM detent_lane").fetchall()
        self.listening = Listening(self._connection)
        self.verbs = SqliteVerbs(SqliteExecutor(self._connection), clock, "bench")
        self.explained = SqliteVerbs(self.listening, clock, "bench")

    def prepare(self, work: Callable[[SqliteVerbs], Any]) -> Any:
        """Do something that stays until the measurement is over."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        return work(self.verbs)

    def steps(self, work: Callable[[SqliteVerbs], Any]) -> int:
        """How many steps this is; then everything is as it was, and its plans are known."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        count = 0

        def step() -> int:
            nonlocal count
            count += 1
            return 0

        self._connection.execute("SAVEPOINT measured")
        self._connection.set_progress_handler(step, 1)
        work(self.verbs)
        self._connection.set_progress_handler(None, 1)
        self._connection.execute("ROLLBACK TO measured")
        work(self.explained)
        self._connection.execute("ROLLBACK")
        return count

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file with hardly anybody in the way, and one with a crowd."""
    directory = tmp_path_factory.mktemp("plans")
    made = []
    for size in (SMALL, SIZE):
        path = directory / f"{size}.db"
        with closing(open_store(f"sqlite:///{path}", clock=TurnableClock(START))) as store:
            store.ready()
            fill(f"sqlite:///{path}", size)
            store.queue_pause(PAUSED, "ana")
            # Behind all the others: lowest rank, latest time.
            store.job_enqueue([new_job(store, priority=-5, payload=f"[{n}]") for n in range(3 * BATCH)])
        made.append(path)
    return made[0], made[1]


@pytest.fixture
def benches(files: tuple[Path, Path]) -> Iterator[list[Bench]]:
    made = [Bench(path, TurnableClock(START)) for path in files]
    yield made
    for bench in made:
        bench.close()


def compared(
    benches: Sequence[Bench],
    work: Callable[[SqliteVerbs, Any], Any],
    before: Callable[[SqliteVerbs], Any] | None = None,
) -> tuple[int, int]:
    """The steps of `work`, given what `before` gave, alone and in the crowd. No growing table is walked through."""
    counts = []
    for bench in benches:
        given = bench.prepare(before) if before else None
        counts.append(bench.steps(partial(_given_last, work, given)))
        assert bench.listening.plans
        assert bench.listening.walks() == []
    return counts[0], counts[1]


def _given_last(work: Callable[[SqliteVerbs, Any], Any], given: Any, verbs: SqliteVerbs) -> Any:
    return work(verbs, given)


def ten_claimed(verbs: SqliteVerbs) -> Any:
    held = claim(verbs, limit=BATCH)
    assert [(job.task, job.queue) for job in held] == [(KNOWN_TASK, "default")] * BATCH
    return held


def finish_all(verbs: SqliteVerbs, held: Any) -> None:
    verbs.job_finish([Finish(job.job_id, job.attempt, None) for job in held], "ana")


def abort_all(verbs: SqliteVerbs, held: Any) -> None:
    verbs.job_abort([Abort(job_id=job.job_id, attempt=job.attempt, outcome="error") for job in held], "ana")


def append_all(verbs: SqliteVerbs, held: Any) -> None:
    verbs.event_append([NewEvent(job_id=job.job_id, attempt=job.attempt, level="info", message="x") for job in held])


def commit_one(verbs: SqliteVerbs, held: Any) -> None:
    verbs.job_commit(Commit(job_id=held[0].job_id, attempt=held[0].attempt))


@pytest.mark.parametrize("limit", [1, BATCH])
def test_a_claim_costs_the_same_whatever_lies_ahead(benches: Sequence[Bench], limit: int) -> None:
    """J4: 300,000 future, unknown and paused jobs in front of it, and the claim does not meet one of them."""
    alone, crowded = compared(benches, lambda verbs, _: claim(verbs, limit=limit))
    assert crowded <= alone * ALLOWED


def test_a_claim_that_finds_nothing_costs_the_same(benches: Sequence[Bench]) -> None:
    """J4: to learn that there is nothing to do is cheap too."""
    alone, crowded = compared(benches, lambda verbs, _: claim(verbs, tasks=["other"]))
    assert crowded <= alone * ALLOWED


@pytest.mark.parametrize("work", [finish_all, abort_all, append_all, commit_one])
def test_the_holders_verbs_cost_the_same(benches: Sequence[Bench], work: Callable[[SqliteVerbs, Any], None]) -> None:
    alone, crowded = compared(benches, work, ten_claimed)
    assert crowded <= alone * ALLOWED


def test_a_renewal_costs_the_same(benches: Sequence[Bench]) -> None:
    """J5: one row a claim, and a look at the jobs that it names."""
    leases: dict[int, list[int]] = {}

    def claimed(verbs: SqliteVerbs) -> list[int]:
        lease = verbs.ids_reserve(1)
        leases[lease] = [job.job_id for job in claim(verbs, limit=BATCH, lease_id=lease)]
        return [lease]

    alone, crowded = compared(
        benches, lambda verbs, held: verbs.lease_renew(held, 30.0, dict.fromkeys(leases[held[0]], 0.5)), claimed
    )
    assert crowded <= alone * ALLOWED


def test_the_reaper_looks_only_at_leases(benches: Sequence[Bench]) -> None:
    """J6: what nobody holds does not delay it."""

    def expired(verbs: SqliteVerbs) -> None:
        ten_claimed(verbs)

    for bench in benches:
        bench.prepare(expired)
        bench.clock.advance(31)
    alone, crowded = compared(benches, lambda verbs, _: verbs.lease_reap(100))
    assert crowded <= alone * ALLOWED


@pytest.mark.parametrize("verb", ["job_promote", "job_expire"])
def test_services_find_nothing_to_do_at_once(benches: Sequence[Bench], verb: str) -> None:
    """J12: whose time has not come is not looked at."""
    alone, crowded = compared(benches, lambda verbs, _: getattr(verbs, verb)(100))
    assert crowded <= alone * ALLOWED
    assert crowded < 100


@pytest.mark.parametrize(("verb", "days", "each"), [("job_promote", 1.5, 120), ("job_expire", 3, 1200)])
def test_services_take_their_portion_and_no_more(benches: Sequence[Bench], verb: str, days: float, each: int) -> None:
    """J12: twenty thousand have come due, ten are taken: the work is that of ten."""
    crowded = benches[1]
    crowded.clock.advance(timedelta(days=days))
    assert crowded.steps(lambda verbs: getattr(verbs, verb)(BATCH)) <= each * BATCH
    assert crowded.listening.walks() == []


def test_an_enqueue_costs_the_same(benches: Sequence[Bench]) -> None:
    """J2: also with a key, and with one that is taken."""

    def with_key(verbs: SqliteVerbs) -> Any:
        first = new_job(verbs, key="k", priority=-5)
        verbs.job_enqueue([first])
        return [new_job(verbs, key="k", priority=-5), new_job(verbs, key="l", priority=-5), new_job(verbs, priority=-5)]

    alone, crowded = compared(benches, lambda verbs, items: verbs.job_enqueue(items), with_key)
    assert crowded <= alone * ALLOWED


READ: dict[str, Callable[[SqliteVerbs, int], object]] = {
    "history": lambda verbs, job_id: verbs.transitions("job", str(job_id)),
    "history of an attempt": lambda verbs, job_id: verbs.transitions("execution", f"{job_id}/1"),
    "history of a queue": lambda verbs, _: verbs.transitions("queue", PAUSED),
    "state at a time": lambda verbs, job_id: verbs.state_as_of("job", str(job_id), START),
    "attempts": lambda verbs, job_id: verbs.job_executions(job_id),
    "events": lambda verbs, job_id: verbs.job_events(job_id),
    "the job": lambda verbs, job_id: verbs.job_get([job_id]),
    "its details": lambda verbs, job_id: verbs.job_details([job_id]),
    "what is new about it": lambda verbs, job_id: verbs.job_marks([job_id]),
    "silent jobs": lambda verbs, _: verbs.job_silent(None, 0.0, 0.0, 100, None),
    "ops runs": lambda verbs, _: verbs.ops_list(),
    "workers": lambda verbs, _: verbs.worker_list(10.0),
}


@pytest.mark.parametrize("what", READ)
def test_reading_about_one_job_costs_the_same(benches: Sequence[Bench], what: str) -> None:
    """E2: a page about one job reads the rows of that job. Its history once read every job there was."""
    alone, crowded = compared(
        benches, lambda verbs, job_id: READ[what](verbs, job_id), lambda verbs: ten_claimed(verbs)[0].job_id
    )
    assert 0 < crowded <= alone * ALLOWED


def look_for_alerts(verbs: SqliteVerbs) -> None:
    verbs.alert_tally(BATCH)
    for measure in MEASURES:
        verbs.alert_figures(measure, "limit" if measure == "breaker_open" else "queue", 900.0)


def test_what_alerts_look_at_is_bounded(benches: Sequence[Bench]) -> None:
    """M2: sixty thousand jobs are no more work for the judge than three."""
    for bench in benches:
        bench.prepare(lambda verbs: verbs.alert_tally(BATCH))
        bench.clock.advance(1)
        bench.prepare(lambda verbs: finish_all(verbs, ten_claimed(verbs)))
    alone, crowded = (bench.steps(look_for_alerts) for bench in benches)
    assert 0 < crowded <= alone * ALLOWED


def newest(_verbs: SqliteVerbs) -> WalkPlace:
    return WalkPlace(part="jobs")


def amid_the_crowd(_verbs: SqliteVerbs) -> WalkPlace:
    return WalkPlace(part="jobs", below=3 * SIZE // 2)


def front_of_the_queue(_verbs: SqliteVerbs) -> WalkPlace:
    return WalkPlace(part="queue")


def amid_the_queue(verbs: SqliteVerbs) -> WalkPlace:
    sql = "SELECT lane_id, ready_at, job_id FROM detent_ready WHERE job_id = ?"
    ((lane_id, ready_at, job_id),) = verbs._db.rows(sql, (3 * SIZE // 2,))
    return WalkPlace(part="queue", after=(lane_id, ready_at, job_id))


@pytest.mark.parametrize("where", [newest, amid_the_crowd, front_of_the_queue, amid_the_queue])
def test_a_step_of_the_walk_takes_its_portion_and_no_more(
    benches: Sequence[Bench], where: Callable[[SqliteVerbs], WalkPlace]
) -> None:
    """R2: the invariants for ten jobs among sixty thousand are the work of ten."""
    crowded = benches[1]
    place = crowded.prepare(where)
    found: list[WalkStep] = []
    steps = crowded.steps(lambda verbs: found.append(_step(verbs, place)))
    assert [one.violations for one in found] == [(), ()]
    assert 0 < steps <= 2000 * BATCH


def _step(verbs: SqliteVerbs, place: WalkPlace) -> WalkStep:
    return stepwise_check.step(
        "sqlite",
        lambda sql, params: verbs._db.rows(sql, {**params, "now": 0}),
        place,
        BATCH,
        before_all=0,
        listed=ids_json,
    )


def test_a_small_crowd_is_a_healthy_record(tmp_path: Path) -> None:
    """R2: the crowd is made of rows that enqueues would have made."""
    url = f"sqlite:///{tmp_path}/t.db"
    with closing(open_store(url, clock=TurnableClock(START))) as store:
        store.ready()
        fill(url, 3)
        assert store.verify() == []


def test_a_walk_would_be_seen(files: tuple[Path, Path], tmp_path: Path) -> None:
    """A plan that walks through a growing table is reported, and its steps are many: the measure measures."""
    copy = tmp_path / "copy.db"
    shutil.copy(files[1], copy)
    bench = Bench(copy, TurnableClock(START))
    looking = "SELECT count(*) FROM detent_job j WHERE j.task = 'nobody.knows'"
    assert bench.steps(lambda verbs: verbs._db.rows(looking)) > SIZE
    assert [sql for sql, _ in bench.listening.walks()] == [looking]
    bench.close()
