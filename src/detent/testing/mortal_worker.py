"""A worker that dies at a step of a workflow: it writes nothing from then on, and its lease expires.

The function of the workflow cannot be stopped in its thread, so `WorkerDied` is raised in it, a BaseException. Every
later write of the same attempt raises it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from detent.errors import DetentError
from detent.model.records import Moved
from detent.model.workflow_records import NewStep, NewWait, Park, Spawn
from detent.store.contract import Store, Tx, Verbs
from detent.store.light_future import LightFuture
from detent.worker.attempt.event_sink import DirectSink
from detent.worker.attempt.workflow.step_writer import Item, StepWriter

__all__ = ["CALLED", "PARKING", "RECORDED", "MortalWorker", "WorkerDied", "is_crash_at_step"]

CALLED, RECORDED, PARKING = "called ", "recorded ", "parking"


class WorkerDied(BaseException):
    """The worker has died, as the test demanded."""


def is_crash_at_step(at: str) -> bool:
    """Whether a crash point belongs to a step or to a park."""
    return at == PARKING or any(at.startswith(one) and at != one for one in (CALLED, RECORDED))


class MortalWorker:
    """Store and sink of one attempt. `at` says where it dies; `has_died` whether it did."""

    def __init__(self, store: Store, at: str, worker: str) -> None:
        self.has_died = False
        self.at = at
        self._plain = store
        self.store = cast(Store, _MortalStore(self))
        self.sink = DirectSink(self.store, worker)
        self.sink.steps = _MortalSteps(self, worker)

    @property
    def plain(self) -> Store:
        """The store, as long as the worker lives."""
        if self.has_died:
            raise WorkerDied
        return self._plain

    def die(self) -> None:
        """Die now."""
        self.has_died = True
        raise WorkerDied

    def before(self, items: Sequence[object]) -> None:
        """Die if one of these writes is the one before which the worker dies."""
        if any(isinstance(one, Park) for one in items) and self.at == PARKING:
            self.die()
        if any(self.at == CALLED + path for path in _paths(items)):
            self.die()

    def after(self, items: Sequence[object]) -> None:
        """Die if one of these writes is the one after which the worker dies."""
        if any(self.at == RECORDED + path for path in _paths(items)):
            self.die()


def _paths(items: Sequence[object]) -> Iterator[str]:
    """Return the paths of the steps that are written."""
    for one in items:
        match one:
            case NewStep():
                yield one.path
            case Spawn():
                yield one.step.path
            case NewWait():
                yield from (step.path for step in (*one.steps, one.outcome, one.holds) if step is not None)


class _MortalSteps(StepWriter):
    """Writes records of workflows, until the worker dies."""

    def __init__(self, mortal: MortalWorker, worker: str) -> None:
        super().__init__(mortal.store, worker)
        self._mortal = mortal

    def write(self, items: Sequence[Item]) -> list[Any]:
        self._mortal.before(items)
        answers = super().write(items)
        self._mortal.after(items)
        return answers

    def submit(self, items: Sequence[Item]) -> LightFuture[list[Any]]:
        future: LightFuture[list[Any]] = LightFuture()
        future.set_result(self.write(items))
        return future


class _MortalStore:
    """The store, until the worker dies."""

    def __init__(self, mortal: MortalWorker) -> None:
        self._mortal = mortal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mortal.plain, name)

    def workflow_spawn(self, item: Spawn) -> Any:
        self._mortal.before([item])
        answer = self._mortal.plain.workflow_spawn(item)
        self._mortal.after([item])
        return answer

    def holders_block(
        self, job_id: int, attempt: int, leave: Callable[[Verbs], DetentError | Moved]
    ) -> AbstractContextManager[Tx]:
        return self._block(job_id, attempt, leave)

    @contextmanager
    def _block(self, job_id: int, attempt: int, leave: Callable[[Verbs], DetentError | Moved]) -> Iterator[Tx]:
        written: list[NewStep] = []

        def leave_mortally(verbs: Verbs) -> DetentError | Moved:
            return leave(cast(Verbs, _MortalVerbs(verbs, self._mortal, written)))

        with self._mortal.plain.holders_block(job_id, attempt, leave_mortally) as tx:
            yield tx
        self._mortal.after(written)


class _MortalVerbs:
    """The verbs of a transaction. What it records is on record when it has been committed."""

    def __init__(self, verbs: Verbs, mortal: MortalWorker, written: list[NewStep]) -> None:
        self._verbs = verbs
        self._mortal = mortal
        self._written = written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verbs, name)

    def step_record(self, items: Sequence[NewStep]) -> Any:
        self._mortal.before(items)
        self._written.extend(items)
        return self._verbs.step_record(items)
