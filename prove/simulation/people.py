"""Clients who enqueue, and operators who interfere at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from detent.app.detent import Detent
from detent.client.engine import Engine
from detent.errors import DetentError
from detent.errors.database import OUTAGES
from prove.simulation.database import Database, ProcessStore
from prove.simulation.world import Process, world

__all__ = ["People"]

_TASKS = ("plain", "async", "commits", "charges", "fires", "order")


class People:
    """One process from which jobs are enqueued and changed. `accepted` are the jobs whose enqueue was answered."""

    def __init__(self, database: Database, app: Detent, stores: list[ProcessStore], *, jobs: int, changes: int) -> None:
        self.process = Process("people")
        self._app = app
        self._jobs = jobs
        self._changes = changes
        store: Any = ProcessStore(database, self.process, stores, is_mortal=False)
        self._store = store
        app.rewire(Engine(app.settings, world().clock, store))
        self.accepted: dict[int, str] = {}
        self.keys: dict[str, set[int]] = {}
        self.asked_cancel: set[int] = set()
        self.retried: Counter[int] = Counter()
        self.is_done = False
        self.has_resumed = False
        world().spawn(self.process, "person", self._act)

    def _act(self) -> None:
        for number in range(self._jobs):
            self._enqueue(number)
        for _ in range(self._changes):
            choices = world().choices
            world().block(None, (0.0, 0.5, 3.0, 10.0)[choices.below(4)] or None)
            change = self._kinds[choices.below(len(self._kinds))]
            world().injected[f"operator: {change.__name__.strip('_').replace('_', ' ')}"] += 1
            self._surely(lambda change=change: change(self))  # type: ignore[misc]
        self.is_done = True

    def resume(self) -> None:
        """Take away what keeps jobs from running."""
        self._surely(self._resume)
        self.has_resumed = True

    def _enqueue(self, number: int) -> None:
        choices = world().choices
        task = _TASKS[choices.below(len(_TASKS))]
        key = f"key {number // 2}" if choices.happens(0.2) else None

        def send() -> None:
            job = self._app.enqueue(self._app.tasks[task].call(number=number), key=key)
            self.accepted[job.id] = task
            if key:
                self.keys.setdefault(f"{task} {key}", set()).add(job.id)
            world().tell(f"enqueued job {job.id}, {task}")

        self._surely(send)

    def _surely(self, call: Callable[[], object]) -> None:
        """Call until the database answers. A refusal is an answer."""
        while True:
            try:
                call()
                return
            except OUTAGES:
                world().block(None, 0.5)
            except DetentError as refused:
                world().tell(f"refused: {type(refused).__name__}: {refused}")
                return

    def _some_job(self, task: str | None = None) -> int | None:
        ids = sorted(job_id for job_id, found in self.accepted.items() if task in (None, found))
        return ids[world().choices.below(len(ids))] if ids else None

    def _cancel(self) -> None:
        if (job_id := self._some_job()) is not None:
            world().tell(f"cancels job {job_id}")
            self.asked_cancel.add(job_id)
            self._app.jobs.get(job_id).cancel(actor="ana", reason="simulated")

    def _retry(self) -> None:
        if (job_id := self._some_job()) is not None:
            world().tell(f"retries job {job_id}")
            self.retried[job_id] += 1
            self._app.jobs.get(job_id).retry(actor="ana", reason="simulated")

    def _pause(self) -> None:
        world().tell("pauses the queue")
        self._app.queues.pause("default", actor="ana", reason="simulated")

    def _resume(self) -> None:
        world().tell("resumes the queue")
        self._app.queues.resume("default", actor="ana", reason="simulated")

    def _signal(self) -> None:
        if (job_id := self._some_job("order")) is not None:
            world().tell(f"signals job {job_id}")
            self._app.jobs.get(job_id).signal("go", 1, dedupe=f"{job_id}")

    def _set_clock(self) -> None:
        world().clock.set((-3600.0, -5.0, 5.0, 3600.0)[world().choices.below(4)])
        world().tell(f"the clock is set: {world().clock.offset:+g} s")

    _kinds = (_cancel, _retry, _pause, _resume, _signal, _signal, _retry, _cancel, _set_clock)
