"""The writer: few transactions for many callers, and no caller at the mercy of another."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import pytest

from detent.errors import DatabaseBusy, DatabaseUnreachable, IdConflict, OutcomeUnknown
from detent.model.records import Enqueued
from detent.store.contract import Store
from detent.store.enqueue_writer import EnqueueWriter
from detent.store.light_future import LightFuture
from tests.app.shop import until
from tests.contract.jobs.sample_jobs import new_job
from tests.contract.refusals import refused
from tests.store.writing import DEADLINE, Step, held, jobs_of


class Interrupted(BaseException):
    """What a signal handler raises: control-C, or a time limit."""


def in_line(writer: EnqueueWriter) -> int:
    return len(writer._queue)


def test_closing_waits_for_a_lone_caller_and_then_ends(writer: EnqueueWriter, crowd: ThreadPoolExecutor) -> None:
    """Nobody stands in line, so nobody but the one who closes needs to hear of its end."""
    with held(writer, crowd):
        closing = crowd.submit(writer.close)
        until(lambda: writer._closing == 1)
        assert not closing.done()
    closing.result(DEADLINE)


def test_an_idle_writer_writes_on_the_callers_own_thread(store: Store, writer: EnqueueWriter) -> None:
    threads: list[threading.Thread] = []

    job = new_job(store)
    step: Any = Step(lambda: threads.append(threading.current_thread()))
    assert writer.write([job, step]) == [Enqueued(job.id, True), step]
    assert threads == [threading.current_thread()]
    assert jobs_of(store) == [job.id]


def test_what_came_meanwhile_goes_into_one_transaction(
    store: Store, watched: Any, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    """Thirty callers, waiting and not waiting: one COMMIT for all of them, and each gets its own answers."""
    jobs = [[new_job(store, payload=f'{{"n":{n}}}') for _ in range(n % 3 + 1)] for n in range(30)]
    with held(writer, crowd):
        answers: list[Future[list[Any]] | LightFuture[list[Any]]] = [
            crowd.submit(writer.write, own) if n % 2 else writer.submit(own) for n, own in enumerate(jobs)
        ]
        until(lambda: in_line(writer) == 30)
        assert watched.transactions == 1
    for own, answer in zip(jobs, answers, strict=True):
        assert answer.result(DEADLINE) == [Enqueued(job.id, True) for job in own]
    assert watched.transactions == 2
    assert jobs_of(store) == sorted(job.id for own in jobs for job in own)


def test_a_batch_has_a_limit(store: Store, watched: Any, crowd: ThreadPoolExecutor) -> None:
    """G6: write_batch_max items a transaction; a single caller with more goes alone and whole."""
    writer = EnqueueWriter(watched, batch_max=10)
    sizes = [4, 4, 4, 25, 1]
    jobs = [[new_job(store) for _ in range(size)] for size in sizes]
    with held(writer, crowd):
        answers = [writer.submit(own) for own in jobs]
    assert [len(answer.result(DEADLINE)) for answer in answers] == sizes
    writer.close()
    assert watched.transactions == 1 + len([[4, 4], [4], [25], [1]])


def test_first_come_first_written(store: Store, writer: EnqueueWriter, crowd: ThreadPoolExecutor) -> None:
    seen: list[int] = []
    steps: list[Any] = [Step(partial(seen.append, n)) for n in range(20)]
    with held(writer, crowd):
        answers = []
        for n in range(20):
            answers.append(crowd.submit(writer.write, [steps[n]]) if n % 2 else writer.submit([steps[n]]))
            until(lambda: in_line(writer) == len(answers))
    assert [answer.result(DEADLINE) for answer in answers] == [[step] for step in steps]
    assert seen == list(range(20))


def test_a_refusal_is_its_callers_alone(
    store: Store, watched: Any, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    taken = new_job(store)
    writer.write([taken])
    before, good, bad = watched.transactions, new_job(store), new_job(store, id=taken.id, payload='{"to":8}')
    with held(writer, crowd):
        bad_answer = writer.submit([bad])
        good_answer = writer.submit([good])
    (refusal,) = bad_answer.result(DEADLINE)
    refused(refusal, IdConflict, job_id=taken.id)
    assert good_answer.result(DEADLINE) == [Enqueued(good.id, True)]
    assert watched.transactions == before + 2


def test_a_batch_that_raises_is_repeated_caller_by_caller(
    store: Store, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    """The culprit gets its error; everybody else gets what they asked for, once."""

    def spoil() -> None:
        raise ZeroDivisionError("mine")

    spoils: Any = Step(spoil)
    jobs = [new_job(store) for _ in range(5)]
    with held(writer, crowd):
        answers = [writer.submit([job, spoils] if n == 2 else [job]) for n, job in enumerate(jobs)]
    with pytest.raises(ZeroDivisionError, match="mine"):
        answers[2].result(DEADLINE)
    for n in (0, 1, 3, 4):
        assert answers[n].result(DEADLINE) == [Enqueued(jobs[n].id, True)]
    assert jobs_of(store) == [job.id for job in jobs if job is not jobs[2]]


def test_an_error_of_the_database_is_everybodys_and_is_not_repeated(
    store: Store, watched: Any, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    def unreachable() -> None:
        raise DatabaseUnreachable("there", "nobody answers")

    job, fails = new_job(store), cast(Any, Step(unreachable))
    with held(writer, crowd):
        answers = [writer.submit([job]), writer.submit([fails])]
    for answer in answers:
        with pytest.raises(DatabaseUnreachable):
            answer.result(DEADLINE)
    assert watched.transactions == 2
    assert jobs_of(store) == []


@pytest.mark.parametrize("one_writer_only", [True, False])
def test_a_lock_is_one_callers_where_many_may_write(
    store: Store, watched: Any, writer: EnqueueWriter, crowd: ThreadPoolExecutor, one_writer_only: bool
) -> None:
    """A key in a stranger's hands fails whoever asked for it; a lock that keeps everybody out fails all at once."""
    watched.ids_by_transaction = one_writer_only

    def locked() -> None:
        raise DatabaseBusy("there", "a stranger holds the key")

    job, fails = new_job(store), cast(Any, Step(locked))
    with held(writer, crowd):
        theirs, mine = writer.submit([fails]), writer.submit([job])
    with pytest.raises(DatabaseBusy):
        theirs.result(DEADLINE)
    if one_writer_only:
        with pytest.raises(DatabaseBusy):
            mine.result(DEADLINE)
    else:
        assert mine.result(DEADLINE) == [Enqueued(job.id, True)]


# -- lost answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_answer_does_not_enqueue_twice(store: Store, watched: Any, writer: EnqueueWriter, lost: int) -> None:
    """J2, G7: the transaction went through, its answer did not; sent again, the job meets itself."""
    watched.answers_to_lose = lost
    keyed, plain = new_job(store, key="once"), new_job(store)
    assert writer.write([keyed, plain]) == [Enqueued(keyed.id, False), Enqueued(plain.id, False)]
    assert watched.transactions == lost + 1
    assert jobs_of(store) == [keyed.id, plain.id]


def test_a_database_that_is_away_for_a_while_is_asked_again(store: Store, watched: Any, writer: EnqueueWriter) -> None:
    """J2, G7: a server that crashed at COMMIT takes some seconds to answer again; the caller never notices."""
    job = new_job(store)
    watched.answers_to_lose = 1

    def away_for_a_while() -> None:
        if 1 < watched.transactions <= 6:
            raise DatabaseUnreachable("there", "nobody answers")

    step: Any = Step(away_for_a_while)
    assert writer.write([job, step]) == [Enqueued(job.id, False), step]
    assert jobs_of(store) == [job.id]


def test_when_nobody_can_tell_the_outcome_stays_unknown(store: Store, watched: Any, writer: EnqueueWriter) -> None:
    """G7: it is not called unreachable, which would mean that nothing was written."""
    job = new_job(store)
    watched.answers_to_lose = 1

    def once_and_never_again() -> None:
        if watched.transactions > 1:
            raise DatabaseUnreachable("there", "nobody answers")

    step: Any = Step(once_and_never_again)
    with pytest.raises(OutcomeUnknown) as unknown:
        writer.write([job, step])
    assert isinstance(unknown.value.__cause__, DatabaseUnreachable)
    assert jobs_of(store) == [job.id]


def test_looking_for_the_outcome_has_an_end(store: Store, watched: Any, writer: EnqueueWriter) -> None:
    watched.answers_to_lose = 1_000
    with pytest.raises(OutcomeUnknown):
        writer.write([new_job(store)])
    assert watched.transactions < 10


# -- interrupts -----------------------------------------------------------------------------------------------


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Raises `Interrupted` in the main thread, wherever it is, once."""
    raised = threading.Event()

    def handler(*_: object) -> None:
        if not raised.is_set():
            raised.set()
            raise Interrupted

    before = signal.signal(signal.SIGUSR1, handler)
    main = threading.main_thread().ident
    assert main == threading.get_ident()

    def strike() -> None:
        # One that comes in the moment before a thread begins to wait is noted, and does not end the wait.
        while not raised.is_set():
            signal.pthread_kill(main, signal.SIGUSR1)
            raised.wait(0.01)

    yield strike
    signal.signal(signal.SIGUSR1, before)


def test_a_waiting_caller_that_is_interrupted_stalls_nobody(
    store: Store, writer: EnqueueWriter, crowd: ThreadPoolExecutor, interrupt: Callable[[], None]
) -> None:
    mine, other = new_job(store), new_job(store)
    with held(writer, crowd):

        def others() -> list[Any]:
            until(lambda: in_line(writer) == 1)
            answer = writer.submit([other])
            interrupt()
            return answer.result(DEADLINE)

        theirs = crowd.submit(others)
        with pytest.raises(Interrupted):
            writer.write([mine])
        until(lambda: in_line(writer) == 1)
    assert theirs.result(DEADLINE) == [Enqueued(other.id, True)]
    assert jobs_of(store) == [other.id]
    assert writer.write([mine]) == [Enqueued(mine.id, True)]


@pytest.mark.parametrize("waits", [True, False])
def test_a_leader_that_is_interrupted_stalls_nobody(
    store: Store, writer: EnqueueWriter, crowd: ThreadPoolExecutor, waits: bool
) -> None:
    """In the middle of the transaction that it wrote for all: only its own call is given up."""
    jobs = [new_job(store) for _ in range(4)]
    theirs: list[Future[list[Any]] | LightFuture[list[Any]]] = []

    def interrupted() -> None:
        raise Interrupted

    step: Any = Step(interrupted)
    with held(writer, crowd):
        leader = crowd.submit(writer.write, [jobs[0], step])
        until(lambda: in_line(writer) == 1)
        for job in jobs[1:]:
            send: Any = crowd.submit if waits else lambda call, *args: call(*args)
            theirs.append(send(writer.write if waits else writer.submit, [job]))
        until(lambda: in_line(writer) == 4)
    with pytest.raises(Interrupted):
        leader.result(DEADLINE)
    assert [answer.result(DEADLINE) for answer in theirs] == [[Enqueued(job.id, True)] for job in jobs[1:]]
    assert jobs_of(store) == [job.id for job in jobs[1:]]


def test_an_interrupt_after_the_commit_finds_its_traces(
    store: Store, watched: Any, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    """The transaction went through, then the leader was interrupted: the others are asked for again, not lost."""
    leader_job, other_job = new_job(store), new_job(store)

    def interrupt_once() -> None:
        watched.then = lambda: None
        raise Interrupted

    with held(writer, crowd):
        leader = crowd.submit(writer.write, [leader_job])
        until(lambda: in_line(writer) == 1)
        other = crowd.submit(writer.write, [other_job])
        until(lambda: in_line(writer) == 2)
        watched.then = lambda: setattr(watched, "then", interrupt_once)
    with pytest.raises(Interrupted):
        leader.result(DEADLINE)
    assert other.result(DEADLINE) == [Enqueued(other_job.id, False)]
    assert jobs_of(store) == [leader_job.id, other_job.id]


def test_a_cancelled_answer_is_not_sent_and_stalls_nobody(
    store: Store, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    """A coroutine that is cancelled cancels its answer: before its turn nothing is written for it."""
    jobs = [new_job(store) for _ in range(3)]
    with held(writer, crowd):
        answers = [writer.submit([job]) for job in jobs]
        assert answers[0].cancel()
        assert answers[1].cancel()
    assert answers[2].result(DEADLINE) == [Enqueued(jobs[2].id, True)]
    assert jobs_of(store) == [jobs[2].id]
    assert not answers[2].cancel()


# -- ends -----------------------------------------------------------------------------------------------------


def test_close_writes_what_was_submitted(store: Store, watched: Any, crowd: ThreadPoolExecutor) -> None:
    writer = EnqueueWriter(watched)
    jobs = [new_job(store) for _ in range(10)]
    with held(writer, crowd):
        answers = [writer.submit([job]) for job in jobs]
        thread = writer._thread
        closing = crowd.submit(writer.close)
    closing.result(DEADLINE)
    assert all(answer.done() for answer in answers)
    assert len(jobs_of(store)) == 10
    assert thread is not None
    assert not thread.is_alive()


def test_closed_it_begins_again_when_it_is_used_again(store: Store, writer: EnqueueWriter) -> None:
    for _ in range(3):
        writer.close()
        assert len(writer.submit([new_job(store)]).result(DEADLINE)) == 1
        assert len(writer.write([new_job(store)])) == 1
    writer.close()
    writer.close()
    assert len(jobs_of(store)) == 6


def test_a_forked_child_begins_anew(store: Store, writer: EnqueueWriter, crowd: ThreadPoolExecutor) -> None:
    """What stood in line belongs to the parent; the child's own writes work, and the parent's go on."""
    parents, childs, submitted = new_job(store), new_job(store), new_job(store)
    writer.submit([new_job(store)]).result(DEADLINE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            written = writer.write([childs]) == [Enqueued(childs.id, True)]
            told = writer.submit([submitted]).result(DEADLINE) == [Enqueued(submitted.id, True)]
            writer.close()
            os._exit(0 if written and told else 1)
        finally:
            sys.stderr.flush()
            os._exit(2)
    assert writer.write([parents]) == [Enqueued(parents.id, True)]
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert {parents.id, childs.id, submitted.id} <= set(jobs_of(store))
