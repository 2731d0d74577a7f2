"""What workflows cost does not depend on how many others there are, nor on how many steps they have.

The same calls are made on a record with few parked workflows and on one with twenty thousand, and for a workflow with
few steps and with ten thousand. The work is counted: instructions of SQLite's virtual machine, rows and index entries
that PostgreSQL reads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from detent.model.clock import to_micros
from detent.model.records import Claimed
from detent.model.workflow_records import NEVER, NewSignal, WorkflowSearch
from detent.store.contract import Store, Verbs
from detent.testing.stores import START, is_sqlite, plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.contract.workflows.sample_workflows import begin, look, park, record, send, signal, step, wait
from tests.plans.measured import work_of

FEW, MANY = 20, 20_000
STEPS = 10_000
_NUMBERS = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many})"
# Parked workflows: each waits for a signal of its own, and has a step and an old signal.
_CROWD = (
    """
    INSERT INTO {p}job (id, task, due_at, payload, nonce, created_at, attempts_max)
    SELECT {first} + n, 'mail.send', {never}, '{{}}', 1, {now}, 4 FROM number
    """,
    """
    INSERT INTO {p}waiting (job_id, lane_id, due_at, priority)
    SELECT {first} + n, (SELECT min(id) FROM {p}lane), {never}, 0 FROM number
    """,
    """
    INSERT INTO {p}workflow (job_id, version, root_id, depth, parked_attempt, parked_at)
    SELECT {first} + n, 1, {first} + n, 0, 0, {now} FROM number
    """,
    """
    INSERT INTO {p}workflow_step (job_id, generation, path, seq, kind, attempt, began_at, done_at, value)
    SELECT {first} + n, 1, 'a', 1, 'call', 0, {now}, {now}, '1' FROM number
    """,
    """
    INSERT INTO {p}workflow_wait (job_id, n, kind, name, tenant)
    SELECT {first} + n, 0, 'signal', 'crowd', 'crowd' FROM number
    """,
    """
    INSERT INTO {p}workflow_wait (job_id, n, kind, name, tenant)
    SELECT {first} + 100000 + n, 0, 'signal', 'woken', 'crowd' FROM number
    """,
    """
    INSERT INTO {p}workflow_signal (job_id, name, seq, payload, actor, sent_at)
    SELECT {first} + n, 'other', n, '1', 'ana', {now} FROM number
    """,
)
_OF_ONE = """
    INSERT INTO {p}workflow_step (job_id, generation, path, seq, kind, attempt, began_at, done_at, value)
    SELECT {job_id}, 1, 'many:' || n, n, 'call', 0, {now}, {now}, '1' FROM number
"""
# Signals that steps have taken: of a name that has none left, of one that has one, and of many names.
_TAKEN = (
    """
    INSERT INTO {p}workflow_signal (job_id, name, seq, payload, actor, sent_at)
    SELECT {job_id}, {name}, {first} + n, '1', 'ana', {now} FROM number
    """,
    """
    INSERT INTO {p}workflow_step
      (job_id, generation, path, seq, kind, attempt, began_at, done_at, value, signal_name, signal_seq)
    SELECT {job_id}, 2, 'took:' || {name} || ({first} + n), {first} + n, 'signal', 0, {now}, {now}, '1', {name},
           {first} + n
      FROM number
    """,
)
# Attempts that have ended, as a workflow has that parks for years.
_ENDED = (
    """
    INSERT INTO {p}execution (job_id, attempt, worker, leased_at, aborted_at, outcome, next_state, next_due_at, counted)
    SELECT {job_id}, {first} + n, 'ana', {now}, {now}, 'parked', 'pending', {now}, {never} IS NULL FROM number
    """,
)


def _run(url: str, texts: tuple[str, ...], many: int, **values: Any) -> None:
    sqlite = is_sqlite(url)
    times = (START, NEVER)
    now, never = (str(to_micros(at, field="at")) if sqlite else f"'{at.isoformat()}'::timestamptz" for at in times)
    prefix = "detent_" if sqlite else "detent."
    with closing(plain_connection(url)) as connection:
        for text in texts:
            insert = text.format(p=prefix, now=now, never=never, **values)
            connection.execute(
                insert.replace("SELECT", _NUMBERS.format(many=many) + " SELECT", 1)
                if sqlite
                else _NUMBERS.format(many=many) + insert
            )
        connection.commit()
        if not sqlite:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


def records_two(verbs: Verbs, held: Claimed) -> None:
    answers = verbs.step_record([step(held, "x", seq=2), step(held, "y", seq=3)])
    assert all(getattr(answer, "created", False) for answer in answers)


def records_one(verbs: Verbs, held: Claimed) -> None:
    assert record(verbs, held, "x", seq=2).created


def begins(verbs: Verbs, held: Claimed) -> None:
    verbs.step_begin([step(held, "x", seq=2)])


def looks(verbs: Verbs, held: Claimed) -> None:
    assert look(verbs, held, signal("none"), path="w", outcome=step(held, "w", kind="signal", value=None))


def looks_at_many(verbs: Verbs, held: Claimed) -> None:
    assert len(verbs.wait_look([wait(held, signal("none"), path=f"w{n}") for n in range(10)])) == 10


def parks(verbs: Verbs, held: Claimed) -> None:
    park(verbs, held, signal("none"), news=None)


def parks_with_news(verbs: Verbs, held: Claimed) -> None:
    park(verbs, held, signal("none"), news="a")


def sends(verbs: Verbs, held: Claimed) -> None:
    assert send(verbs, held.job_id).created


def finds_nothing_to_wake(verbs: Verbs, held: Claimed) -> None:
    assert verbs.workflow_wake(100) == 0


def loads(verbs: Verbs, held: Claimed) -> None:
    verbs.workflow_load(held.job_id, held.attempt, limit=10)


def lists(verbs: Verbs, held: Claimed) -> None:
    verbs.step_list(held.job_id, limit=10)
    verbs.signal_list(held.job_id, limit=10)
    verbs.wait_list(job_id=held.job_id)
    verbs.wait_list(limit=10)
    verbs.workflow_list(WorkflowSearch(version=2, parked=True), limit=10)
    verbs.child_groups(held.job_id)
    verbs.child_list(held.job_id)


def lists_waits(verbs: Verbs, held: Claimed) -> None:
    verbs.wait_list(signal="none")
    verbs.wait_list(tenant="none")
    verbs.wait_list(tenant="none", signal="crowd")
    verbs.wait_list(tenant="crowd", signal="none")
    verbs.wait_list(tenant="crowd", after=(1_000_001, 0), limit=10)


def lists_waits_of_woken(verbs: Verbs, held: Claimed) -> None:
    verbs.wait_list(signal="woken", limit=10)


def looks_for_what_is_left(verbs: Verbs, held: Claimed) -> None:
    assert not verbs.job_left(["mail.other"], None, {}, limit=10).found


def claims(verbs: Verbs, held: Claimed) -> None:
    assert len(claim(verbs, limit=1)) == 1


WORK = (
    *(
        records_one,
        records_two,
        begins,
        looks,
        looks_at_many,
        parks,
        parks_with_news,
        sends,
        finds_nothing_to_wake,
        loads,
        lists,
    ),
    *(lists_waits, lists_waits_of_woken, looks_for_what_is_left, claims),
)


def _held(store: Store) -> Claimed:
    held = begin(store)
    record(store, held)
    store.job_enqueue([new_job(store)])
    return held


def test_they_cost_the_same_however_many_workflows_are_parked(store_url: str) -> None:
    """20,000 parked workflows are rows and nothing else."""
    with turnable_store(store_url) as (store, _):
        held = _held(store)
    _run(store_url, _CROWD, FEW, first=1_000_000)
    small = _costs(store_url, held, WORK)
    _run(store_url, _CROWD, MANY, first=2_000_000)
    large = _costs(store_url, held, WORK)
    assert {name: cost for name, cost in large.items() if cost > 2 * small[name] + 100} == {}, small


def test_they_cost_the_same_however_many_steps_there_are(store_url: str) -> None:
    """The last of ten thousand steps costs what the first did, and so does a park."""
    with turnable_store(store_url) as (store, _):
        held = _held(store)
    _run(store_url, (_OF_ONE.replace("many:", "few:"),), FEW, job_id=held.job_id)
    small = _costs(store_url, held, WORK)
    _run(store_url, (_OF_ONE,), STEPS, job_id=held.job_id)
    large = _costs(store_url, held, WORK)
    assert {name: cost for name, cost in large.items() if cost > 2 * small[name] + 100} == {}, small


def reads_the_next(verbs: Verbs, held: Claimed) -> None:
    assert look(verbs, held, signal("some"), path="v").value == '"unread"'


def lists_unread(verbs: Verbs, held: Claimed) -> None:
    assert [one.name for one in verbs.signal_list(held.job_id, unread=True)] == ["some"]


def test_they_cost_the_same_however_many_signals_were_taken(store_url: str) -> None:
    """A mailbox costs what is unread in it: looks, sends and parks read none of the signals that were taken before."""
    work = (looks, parks, sends, reads_the_next, lists_unread)
    names = ("'none'", "'some'", "'name' || n")
    with turnable_store(store_url) as (store, _):
        held = _held(store)
        store.signal_send([NewSignal(job_id=held.job_id, name="some", payload='"unread"', actor="ana")])
    for place, name in enumerate(names):
        _run(store_url, _TAKEN, FEW, job_id=held.job_id, name=name, first=1_000_000 + place * 100)
    small = _costs(store_url, held, work)
    for place, name in enumerate(names):
        _run(store_url, _TAKEN, STEPS, job_id=held.job_id, name=name, first=2_000_000 + place * 100_000)
    large = _costs(store_url, held, work)
    assert {name: cost for name, cost in large.items() if cost > 2 * small[name] + 100} == {}, small


def test_they_cost_the_same_however_often_it_has_parked(store_url: str) -> None:
    """A workflow that loops for ever, with `continue_as_new`, has one ended attempt for each of its waits."""
    with turnable_store(store_url) as (store, _):
        held = _held(store)
    _run(store_url, _ENDED, FEW, job_id=held.job_id, first=1_000_000)
    small = _costs(store_url, held, WORK)
    _run(store_url, _ENDED, MANY, job_id=held.job_id, first=2_000_000)
    large = _costs(store_url, held, WORK)
    assert {name: cost for name, cost in large.items() if cost > 2 * small[name] + 100} == {}, small


def _costs(url: str, held: Claimed, work: tuple[Callable[[Verbs, Claimed], None], ...]) -> dict[str, int]:
    return {one.__name__: work_of(url, lambda verbs, _, one=one: one(verbs, held)) for one in work}  # type: ignore[misc]
