"""What is refused before anything is written, and a move that is interrupted, repeated, raced or cancelled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from detent.errors import MoveRefused, SchemaMissing
from detent.model.clock import SystemClock
from detent.model.move_records import MoveProgress
from detent.model.records import Finish
from detent.store.contract import Store
from detent.store.move.mover import Mover, cancel_move, portions
from detent.store.move.tables import all_tables
from detent.testing.stores import dump, is_sqlite, plain_connection, table
from tests.contract.jobs.sample_jobs import claim_one, enqueue
from tests.contract.workers.sample_workers import worker
from tests.store.move.conftest import Databases
from tests.store.move.moving import KINDS, Stopped, begun, other, stopped_at
from tests.store.move.whole_life import everything

Watch = Callable[[MoveProgress], None]


def mover(
    source: Store, target: Store, watch: Watch = lambda _: None, *, rows_max: int = 9, force: bool = False
) -> Mover:
    return Mover(source, target, SystemClock(), actor="ana", watch=watch, rows_max=rows_max, force=force)


def refusal(source: Store, target: Store, *, force: bool = False) -> str:
    with pytest.raises(MoveRefused) as refused:
        mover(source, target, force=force).run()
    return str(refused.value)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_running_jobs_and_live_workers_are_refused(databases: Databases, kind: str) -> None:
    """J15: nothing is written, and the sentence says what to do."""
    url, empty = databases.with_life(kind), databases.empty(other(kind))
    source, target = databases.open(url), databases.open(empty)
    source.ready()
    enqueue(source, task="now")
    held = claim_one(source, tasks=["now"])
    before = dump(url)
    assert f"job {held.job_id} is running; drain the workers" in refusal(source, target)
    assert dump(url) == before
    source.job_finish([Finish(held.job_id, held.attempt)], "ana")
    source.worker_seen(worker(name="w1"))
    assert "1 worker of" in (said := refusal(source, target))
    assert "(w1)" in said
    assert "detent workers drain" in said
    source.worker_gone(7)
    mover(source, target).run()


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_begins_meanwhile_is_found_when_the_source_closes(databases: Databases, kind: str) -> None:
    url = databases.with_life(kind)
    source, target = databases.open(url), databases.open(databases.empty(other(kind)))
    source.ready()
    enqueue(source, task="now")
    began: list[object] = []

    def begin(progress: MoveProgress) -> None:
        if not began and progress.step.startswith("check the source"):
            began.append(claim_one(databases.open(url), tasks=["now"]))

    with pytest.raises(MoveRefused, match="is running"):
        mover(source, target, begin).run()
    assert source.queue_pause("mail", "ana", None)
    assert source.database_moves() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_has_rows_is_refused(databases: Databases, kind: str) -> None:
    source, url = databases.open(databases.with_life(other(kind))), databases.empty(kind)
    target = databases.open(url)
    target.ready()
    target.queue_pause("default", "ana")
    before = dump(url)
    said = f"{target.name} is not empty: its table queue has rows; give a target that is empty"
    assert said in refusal(source, target)
    assert dump(url) == before
    assert source.database_moves() == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_database_and_one_that_is_not_there_are_refused(databases: Databases, kind: str) -> None:
    url = databases.with_life(kind)
    assert "the target is the same database" in refusal(databases.open(url), databases.open(url))
    with pytest.raises(SchemaMissing):
        mover(databases.open(databases.empty("sqlite")), databases.open(databases.empty(kind))).run()


@pytest.mark.parametrize("kind", KINDS)
def test_another_release_is_refused(databases: Databases, kind: str) -> None:
    """J15: on either side."""
    url = databases.with_life(kind)
    source, empty = databases.open(url), databases.empty(other(kind))
    target = databases.open(empty)
    target.ready()
    for place in (url, empty):
        with closing(plain_connection(place)) as connection:
            connection.execute(f"UPDATE {table(place, 'installed')} SET fingerprint = 'another'")
            connection.commit()
    assert "its functions, triggers or views are not those of this version" in refusal(source, target)
    source.migrate()
    assert f"the functions, triggers or views of {target.name} are not" in refusal(source, target)
    target.migrate()
    mover(source, target).run()


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_with_violations_is_moved_with_force_only(databases: Databases, kind: str) -> None:
    """Those that it has are moved; the target may have no others."""
    url = databases.with_life(kind)
    source, target = databases.open(url), databases.open(databases.empty(other(kind)))
    with closing(plain_connection(url)) as connection:
        connection.execute(f"DELETE FROM {table(url, 'waiting')} WHERE job_id = {databases.ids[kind]['later']}")
        connection.commit()
    said = refusal(source, target)
    assert "it violates 1 invariant (pending_is_queued_once); see `detent verify`" in said
    assert source.database_moves() == []
    mover(source, target, force=True).run()
    assert [one.invariant for one in target.verify()] == ["pending_is_queued_once"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_move_to_another_place_is_refused_while_one_has_begun_and_after_it(databases: Databases, kind: str) -> None:
    source, target = databases.open(databases.with_life(kind)), databases.open(databases.empty(other(kind)))
    begun(source, target)
    elsewhere = databases.open(databases.empty(kind))
    assert f"continue with --to {target.name}, or undo that with --cancel" in refusal(source, elsewhere)
    stranger = databases.open(databases.with_life(kind))
    with closing(plain_connection(url := stranger_url(stranger))) as connection:
        guard = f"DROP TRIGGER {'detent_' if is_sqlite(url) else ''}identity_keep"
        connection.execute(guard + ("" if is_sqlite(url) else " ON detent.identity"))
        connection.execute(f"UPDATE {table(url, 'identity')} SET identity = '{'0' * 32}'")
        connection.commit()
    stranger.migrate()
    assert f"{target.name} is being filled from {source.name}" in refusal(stranger, target)
    mover(source, target).run()
    assert f"it was moved to {target.name}" in refusal(source, elsewhere)
    # Once more is harmless.
    assert mover(source, target).run().copied == 0


def stranger_url(store: Store) -> str:
    return str(store.name)


# -- interrupted, raced, cancelled -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_move_continues_where_it_was(databases: Databases, kind: str) -> None:
    """J15: stopped after every portion, and each call copies what is left."""
    url, empty = databases.with_life(kind), databases.empty(other(kind))
    before = everything(url)
    seen: list[str] = []
    total = sum(map(len, before.values()))
    stops = 0

    def stop_once_at_each(progress: MoveProgress) -> None:
        at = f"{progress.step} {progress.rows}"
        if at not in seen and not progress.step.startswith("check"):
            seen.append(at)
            if len(seen) % 11 == 0:
                raise Stopped

    while True:
        try:
            report = mover(databases.open(url), databases.open(empty), stop_once_at_each, rows_max=5).run()
        except Stopped:
            stops += 1
        else:
            break
    assert stops > 5
    assert report.copied < total
    assert everything(empty) == before


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_calls_one_moves(databases: Databases, kind: str) -> None:
    """The other one finds that it is not alone, and writes nothing."""
    url, empty = databases.with_life(kind), databases.empty(other(kind))
    before = everything(url)

    def another_comes(progress: MoveProgress) -> None:
        if progress.step == "copy execution":
            mover(databases.open(url), databases.open(empty)).run()

    with pytest.raises(MoveRefused, match="another call moves it too"):
        mover(databases.open(url), databases.open(empty), another_comes).run()
    assert everything(empty) == before
    assert databases.open(empty).verify() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["count the rows", "compare the counts", "check the target"])
def test_a_cancelled_move_lets_the_source_live_on(databases: Databases, kind: str, when: str) -> None:
    """J15: another move can begin. What was copied before is thrown away, since the source has changed."""
    url, empty = databases.with_life(kind), databases.empty(other(kind))
    source, target = databases.open(url), databases.open(empty)
    cancelled: list[bool] = []

    def cancelled_meanwhile(progress: MoveProgress) -> None:
        if not cancelled and progress.step.startswith(when):
            cancelled.append(cancel_move(databases.open(url), "ben", "too slow"))

    with pytest.raises(MoveRefused, match="cancelled meanwhile"):
        mover(source, target, cancelled_meanwhile).run()
    assert not cancel_move(databases.open(url), "ben")
    assert source.database_moves() == []
    assert not isinstance(enqueue(source, task="later"), Exception)
    (identity,) = source.identity_list()
    moves = [(row.from_state, row.to_state, row.actor) for row in source.transitions("database", identity.identity)]
    assert moves == [("open", "moving", "ana"), ("moving", "open", "ben")]
    assert [row.state for row in target.database_moves()] == ["loading"]
    report = mover(source, target).run()
    assert everything(empty) == everything(url)
    assert report.copied == sum(report.tables.values())
    with pytest.raises(MoveRefused, match="was moved to"):
        cancel_move(source, "ben")


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_was_lost_can_be_made_again(databases: Databases, kind: str) -> None:
    """Another empty database under the same name is filled from the beginning."""
    url, empty = databases.with_life(kind), databases.empty(other(kind))
    source, target = databases.open(url), databases.open(empty)
    begun(source, target)
    with closing(plain_connection(empty)) as connection:
        # As if nothing had come there but the schema.
        connection.execute(f"DELETE FROM {table(empty, 'database_move')}")
        connection.commit()
    assert "is not empty" in refusal(source, target)
    fresh = databases.open(databases.empty(other(kind)))
    with closing(plain_connection(url)) as connection:
        connection.execute(f"UPDATE {table(url, 'database_move')} SET place = '{fresh.name}'")
        connection.commit()
    mover(source, fresh).run()
    assert fresh.verify() == []


@pytest.mark.parametrize("kind", KINDS)
def test_between_the_two_last_steps_both_are_closed(databases: Databases, kind: str) -> None:
    """No crash leaves both open: the source is closed for good before the target opens, and the same call opens it."""
    url, empty = databases.with_life(kind), databases.empty(other(kind))
    source, target = databases.open(url), databases.open(empty)
    with pytest.raises(Stopped):
        mover(source, target, stopped_at("check the target")).run()
    (out,) = source.database_moves()
    assert source.movable().mark_moved(out.move_id)
    assert [row.state for row in (*source.database_moves(), *target.database_moves())] == ["moved", "loading"]
    with pytest.raises(MoveRefused):
        cancel_move(source, "ben")
    mover(source, target).run()
    assert [row.state for row in target.database_moves()] == ["arrived"]
    assert target.queue_pause("default", "ana").changed


def test_rows_that_the_target_refuses_are_named(databases: Databases) -> None:
    url = databases.with_life("sqlite")
    source, target = databases.open(url), databases.open(databases.empty("postgres"))
    with closing(plain_connection(url)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE detent_rate_limit SET burst = 0")
        connection.commit()
    said = refusal(source, target, force=True)
    assert f"{target.name} refuses one of 1 rows of rate_limit from ['shop'] to ['shop']" in said
    assert "rate_limit_is_possible" in said
    assert "detent move --cancel" in said
    assert cancel_move(source, "ana")


def test_portions_are_bounded_in_rows_and_in_bytes() -> None:
    (event,) = [one for one in all_tables() if one.name == "event"]

    def row(seq: int, size: int) -> tuple[object, ...]:
        return (1, seq, 1, "info", "x" * size, None, None, 0)

    def sizes(rows: list[tuple[object, ...]], rows_max: int, bytes_max: int) -> list[tuple[int, bool]]:
        return [(len(portion), last) for portion, last in portions(iter(rows), event, rows_max, bytes_max)]

    assert sizes([], 3, 100) == [(0, True)]
    assert sizes([row(n, 1) for n in range(3)], 3, 100) == [(3, True)]
    assert sizes([row(n, 1) for n in range(7)], 3, 100) == [(3, False), (3, False), (1, True)]
    assert sizes([row(n, 60) for n in range(5)], 3, 100) == [(2, False), (2, False), (1, True)]
    assert sizes([row(n, 1000) for n in range(3)], 3, 100) == [(1, False), (1, False), (1, True)]


def test_reading_asks_for_no_more_than_a_portion(databases: Databases) -> None:
    """A reader that stops half-way leaves the connection usable."""
    for kind in KINDS:
        source = databases.open(databases.with_life(kind))
        source.ready()
        (log,) = [one for one in all_tables() if one.name == "transition_log"]
        with source.movable().rows(log, None) as rows:
            first = next(rows)
        with source.movable().rows(log, log.key_of(first)) as rows:
            assert next(rows)[0] > first[0]
        assert source.job_count is not None
