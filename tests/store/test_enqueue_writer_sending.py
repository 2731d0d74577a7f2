"""What comes alone is on its way before it has a turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from detent.errors import DetentError, OutcomeUnknown
from detent.model.records import Enqueued, NewJob
from detent.store.contract import Store
from detent.store.enqueue_writer import EnqueueWriter
from tests.contract.jobs.sample_jobs import new_job
from tests.store.writing import DEADLINE, Step, held, jobs_of


class Sender:
    """Sends what comes alone, and says what it has sent."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.sent: list[NewJob] = []
        self.loses_answers = False

    def __call__(self, items: Sequence[NewJob]) -> Callable[[], Sequence[Enqueued | DetentError]]:
        answers = self.store.job_enqueue(items)
        self.sent += items

        def received() -> Sequence[Enqueued | DetentError]:
            if self.loses_answers:
                raise OutcomeUnknown(self.store.name, "the cable was pulled")
            return answers

        return received


def test_one_that_comes_alone_is_on_its_way_at_once(store: Store, watched: Any, writer: EnqueueWriter) -> None:
    jobs = [new_job(store) for _ in range(3)]
    watched.send = sender = Sender(store)
    for job in jobs:
        assert writer.submit([job]).result(DEADLINE) == [Enqueued(job.id, True)]
    assert sender.sent == jobs
    assert watched.transactions == 0


def test_those_who_come_together_go_together(
    store: Store, watched: Any, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    """Sent each by itself, as they come, they would not share a sync; after them, one alone goes alone again."""
    jobs = [new_job(store) for _ in range(12)]
    watched.send = sender = Sender(store)
    with held(writer, crowd):
        before = watched.transactions
        answers = [writer.submit([job]) for job in jobs[:10]]
    assert [answer.result(DEADLINE) for answer in answers] == [[Enqueued(job.id, True)] for job in jobs[:10]]
    assert (sender.sent, watched.transactions) == ([], before + 1)
    for job in jobs[10:]:
        assert writer.submit([job]).result(DEADLINE) == [Enqueued(job.id, True)]
    assert sender.sent == jobs[11:]


def test_one_that_cannot_be_sent_at_once_has_its_turn(store: Store, watched: Any, writer: EnqueueWriter) -> None:
    job = new_job(store)
    assert writer.submit([job]).result(DEADLINE) == [Enqueued(job.id, True)]
    assert watched.transactions == 1


def test_an_answer_that_is_lost_after_sending_is_looked_for(store: Store, watched: Any, writer: EnqueueWriter) -> None:
    """C6: the job is there already, and is met."""
    watched.send = sender = Sender(store)
    job = new_job(store)
    sender.loses_answers = True
    assert writer.submit([job]).result(DEADLINE) == [Enqueued(job.id, False)]
    assert jobs_of(store) == [job.id]
    assert watched.transactions == 1


def test_what_is_on_its_way_cannot_be_cancelled(store: Store, watched: Any, writer: EnqueueWriter) -> None:
    sender, job = Sender(store), new_job(store)
    go = threading.Event()

    def slowly(items: Sequence[NewJob]) -> Callable[[], Sequence[Enqueued | DetentError]]:
        received = sender(items)
        return lambda: received() if go.wait(DEADLINE) else []

    watched.send = slowly
    answer = writer.submit([job])
    assert not answer.cancel()
    go.set()
    assert answer.result(DEADLINE) == [Enqueued(job.id, True)]


def test_nobody_comes_between_what_is_sent_and_its_place_in_line(
    store: Store, watched: Any, writer: EnqueueWriter, crowd: ThreadPoolExecutor
) -> None:
    """One who did would lead, wait for the connection that this one has, and keep it from its answer."""
    sender, (first, second) = Sender(store), [new_job(store), new_job(store)]
    led, came = threading.Event(), list[Future[Any]]()

    step: Any = Step(led.set)

    def meanwhile(items: Sequence[NewJob]) -> Callable[[], Sequence[Enqueued | DetentError]]:
        came.append(crowd.submit(writer.write, [second, step]))
        assert not led.wait(0.5)
        return sender(items)

    watched.send = meanwhile
    assert writer.submit([first]).result(DEADLINE) == [Enqueued(first.id, True)]
    assert came[0].result(DEADLINE) == [Enqueued(second.id, True), step]
