"""A worker in the simulation: the real supervisor and the real child, with simulated processes, pipes and threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from detent.app.detent import Detent
from detent.client.engine import Engine
from detent.errors.database import OUTAGES
from detent.worker.attempt.attempt import Attempt
from detent.worker.child.process import Child
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.process import Supervisor
from prove.simulation.database import Database, ProcessStore
from prove.simulation.event_loop import VirtualLoop
from prove.simulation.processes import Board, Channel
from prove.simulation.world import Process, world

__all__ = ["SimulatedWorker"]


class _Isolated:
    """Runs the attempt of a suspect in a process of its own, which here is a turn of its own. As there, it is told
    what is unknown of earlier attempts."""

    def __init__(self, app: Detent, runner: Any) -> None:
        self._app = app
        self._runner = runner

    def run(self, running: Any, set_called: Callable[[Any], bool]) -> Any:
        claimed, runner = running.held.claimed, self._runner
        attempt = Attempt(claimed, self._app, runner._store, runner._flusher, running.unknown)
        if running.attempt.context.cancelled:
            attempt.context.request_cancel()
        running.attempt = attempt
        return running.attempt.run() if set_called(running) else None


class _InsertionSet(dict[Any, None]):
    """A set in the order of insertion: the order of a plain set of objects differs from run to run."""

    remove = dict.__delitem__

    def update(self, several: Any) -> None:  # type: ignore[override]
        for one in several:
            self[one] = None


class SimulatedWorker:
    """A worker: its supervisor, and the children that it starts. `app` is its code."""

    def __init__(self, database: Database, app: Detent, name: str, stores: list[ProcessStore], **options: Any) -> None:
        self._database = database
        self._app = app
        self._stores = stores
        self._children = itertools.count(1)
        self.options = WorkerOptions(app="simulated:app", name=name, **options)
        self.supervisor = Process(name)
        self.child: Process | None = None
        world().spawn(self.supervisor, "supervisor", self._supervise)

    def _supervise(self) -> None:
        store: Any = ProcessStore(self._database, self.supervisor, self._stores)
        try:
            number = store.ids_reserve(1)
        except OUTAGES:
            world().kill(self.supervisor, 1)
            return
        supervisor = Supervisor(store, self.options, world().clock, number)
        supervisor.run()
        world().kill(self.supervisor, 0)

    def start_child(self, options: WorkerOptions, channel: Channel, board: Board, supervisor: Process) -> Process:
        """Start a child process, which dies with its supervisor."""
        process = self.child = Process(f"{options.name}.{next(self._children)}", self.supervisor.machine)
        supervisor.when_dead.append(lambda: world().kill(process))
        process.when_dead.append(channel.close)
        process.when_dead.append(board.freeze)
        world().spawn(process, "loop", lambda: self._run_child(process, options, channel, board))
        return process

    def _run_child(self, process: Process, options: WorkerOptions, channel: Channel, board: Board) -> None:
        store: Any = ProcessStore(self._database, process, self._stores)
        engine = Engine(self._app.settings, world().clock, store)
        self._app.rewire(engine)
        child = Child(self._app, store, options, channel, board, world().clock)  # type: ignore[arg-type]
        child._runner._isolated = _Isolated(self._app, child._runner)  # type: ignore[assignment]
        child._runner.core.held = _InsertionSet()  # type: ignore[assignment]
        loop = VirtualLoop()
        try:
            loop.run_until_complete(child._run())
        finally:
            loop.close()
