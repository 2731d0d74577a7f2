"""One schedule: first faults, then rest."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prove.coverage import transitions_of
from prove.simulation import application
from prove.simulation import world as worlds
from prove.simulation.checks import Breach, Checks, Violated
from prove.simulation.choices import Choices
from prove.simulation.database import Database, ProcessStore
from prove.simulation.install import install
from prove.simulation.people import People
from prove.simulation.processes import start_children_with
from prove.simulation.worker import SimulatedWorker
from prove.simulation.world import Process, StuckError, World

__all__ = ["Outcome", "Simulator", "shared_simulator"]

_SAFETY_STEPS = 20_000
_LIVENESS_STEPS = 40_000
_LEASE = 3.0
_OPEN = "SELECT count(*) FROM detent_job WHERE state IN ('pending', 'running')"


@dataclass
class Outcome:
    """How a schedule ended. `failure` is empty if all promises held."""

    seed: int
    failure: str = ""
    choices: list[int] = field(default_factory=list)
    told: list[tuple[float, str, Callable[[], str] | str]] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0
    calls: int = 0
    """Calls of the database."""
    injected: Counter[str] = field(default_factory=Counter)
    """What was done to it, in words."""
    transitions: Counter[str] = field(default_factory=Counter)
    """The moves that are on record at the end."""
    breach: Breach = "wrong"

    @property
    def story(self) -> list[tuple[float, str, str]]:
        """What happened: when, to whom, and what."""
        return [(at, who, line if isinstance(line, str) else line()) for at, who, line in self.told]


class Simulator:
    """Runs schedules one after another, in one process."""

    def __init__(self) -> None:
        install()
        for name in ("detent", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        worlds.enter(World(Choices(0)))
        self._database = Database()
        self._apps = [application.build_app() for _ in range(3)]
        self._checks = Checks(self._database)
        self._database.checks = [self._checks.after_step]

    def run(self, seed: int, given: Sequence[int] | None = None) -> Outcome:
        """Run the schedule of a seed, or the one that these choices repeat."""
        world = World(Choices(seed, given))
        worlds.enter(world)
        self._database.reset()
        self._checks.reset()
        application.forget(self._database.rows)
        outcome = Outcome(seed)
        try:
            self._run(world)
        except (Violated, StuckError, Exception) as error:
            outcome.failure = f"{type(error).__name__}: {error}"
            outcome.breach = _breach(error)
        finally:
            outcome.choices, outcome.told = world.choices.drawn, world.story
            outcome.steps, outcome.seconds = world.steps, world.clock.seconds
            outcome.calls, outcome.injected = world.calls, world.injected
            outcome.transitions = transitions_of(self._database.rows)
            world.has_faults = False
            self._database.checks = []
            world.close()
            self._database.checks = [self._checks.after_step]
        return outcome

    def _run(self, world: World) -> None:
        stores: list[ProcessStore] = []
        people = People(self._database, self._apps[0], stores, jobs=3 + world.choices.below(6), changes=4)
        world.spawn(Process("system"), "system", lambda: self._keep_running(world, stores))
        world.run(lambda: people.is_done, _SAFETY_STEPS)
        world.has_faults = False
        world.clock.catch_up()
        world.tell("no more faults from here")
        world.spawn(people.process, "person", people.resume)
        world.run(lambda: people.has_resumed and self._database.rows(_OPEN)[0][0] == 0, _LIVENESS_STEPS)
        self._checks.at_rest(people)

    def _keep_running(self, world: World, stores: list[ProcessStore]) -> None:
        """Start both workers, and start them again when they have died."""
        workers: dict[str, SimulatedWorker] = {}
        start_children_with(lambda options, *rest: workers[options.name].start_child(options, *rest))
        while True:
            for number in (1, 2):
                name = f"worker {number}"
                if name not in workers or workers[name].supervisor.is_dead:
                    workers[name] = self._worker(number, name, stores)
            world.block(lambda: any(one.supervisor.is_dead for one in workers.values()))
            world.block(None, (0.0, 1.0, 8.0)[world.choices.below(3)] or None)

    def _worker(self, number: int, name: str, stores: list[ProcessStore]) -> SimulatedWorker:
        return SimulatedWorker(
            self._database,
            self._apps[number],
            name,
            stores,
            slots=2,
            lease=_LEASE,
            grace=2.0,
            cancel_grace=2.0,
        )


def _breach(error: BaseException) -> Breach:
    if isinstance(error, Violated):
        return error.breach
    return "stuck" if isinstance(error, StuckError) else "wrong"


@functools.cache
def shared_simulator() -> Simulator:
    """Return the simulator of this process."""
    return Simulator()
