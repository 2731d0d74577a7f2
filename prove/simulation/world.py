"""The scheduler: actors that take turns on one thread, their processes, and the time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from greenlet import greenlet

from prove.simulation.choices import SCALE, Choices

__all__ = ["Actor", "Process", "ProcessDied", "StuckError", "VirtualClock", "World", "world"]

START = datetime(2026, 1, 1, tzinfo=UTC)
_STEP_SECONDS = 0.001
"""What a turn of an actor takes at least."""
_STAYS = 550
"""Choices below this leave the turn to the actor that has it."""
_UNWINDS_MAX = 100


class ProcessDied(BaseException):
    """Raised in every actor of a process that has died, so that its frames end. It reaches the database no more."""


class StuckError(Exception):
    """Nothing can go on, or things go on for ever."""


class VirtualClock:
    """The time of the simulation. `offset` is how far the time of day was set forward or back."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.offset = 0.0
        self._offset_max = 0.0

    def now(self) -> datetime:
        """Return the time of day."""
        return START + timedelta(microseconds=round((self.seconds + self.offset) * 1e6))

    def set(self, by: float) -> None:
        """Set the time of day forward, or back."""
        self.offset += by
        self._offset_max = max(self._offset_max, self.offset)

    def catch_up(self) -> None:
        """Set the time of day to where it has been already: what is due then would be waited for otherwise."""
        self.offset = self._offset_max

    def monotonic(self) -> float:
        """Return seconds since the start."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let the actor rest."""
        if seconds > 0:
            world().block(None, seconds)


class Process:
    """Some actors that live and die together. A frozen process does nothing until `frozen_until`. `machine` are the
    processes on the same machine."""

    def __init__(self, name: str, machine: list[Process] | None = None) -> None:
        self.name = name
        self.machine = [] if machine is None else machine
        self.machine.append(self)
        self.actors: list[Actor] = []
        self.is_dead = False
        self.frozen_until = 0.0
        self.exit_code: int | None = None
        self.when_dead: list[Callable[[], None]] = []


class Actor:
    """What would be a thread. It waits until `ready` says yes, or until the time `until`."""

    __slots__ = ("is_over", "loop", "name", "process", "ready", "thread", "turn", "until")

    def __init__(self, name: str, process: Process, body: Callable[[], None], hub: greenlet) -> None:
        self.name = name
        self.process = process
        self.ready: Callable[[], bool] | None = None
        self.until: float | None = None
        self.is_over = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: object = None
        self.turn = greenlet(lambda: self._run(body), parent=hub)

    def _run(self, body: Callable[[], None]) -> None:
        try:
            body()
        except ProcessDied:
            pass
        except Exception as error:
            world().defects.append(error)
        finally:
            self.is_over = True


class World:
    """All actors of one schedule."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.random = random.Random(choices.seed)
        """Random numbers of the code that is simulated: nonces, and the spread of delays."""
        self.clock = VirtualClock()
        self.actors: list[Actor] = []
        self.current: Actor | None = None
        self.story: list[tuple[float, str, Callable[[], str] | str]] = []
        self.defects: list[Exception] = []
        self.in_block: Actor | None = None
        """The actor whose transaction is open: no other reaches the database meanwhile."""
        self.has_faults = True
        self.steps = 0
        self.calls = 0
        self.injected: Counter[str] = Counter()
        """What the schedule has done to Detent, in words."""
        self.dying: list[Process] = []
        self._hub = greenlet.getcurrent()

    # -- what actors call --------------------------------------------------------------------------------------

    def spawn(self, process: Process, name: str, body: Callable[[], None]) -> Actor:
        """Add an actor. It begins when the scheduler gives it a turn."""
        actor = Actor(name, process, body, self._hub)
        process.actors.append(actor)
        self.actors.append(actor)
        if process.is_dead:
            actor.is_over = True
        return actor

    def block(self, ready: Callable[[], bool] | None, timeout: float | None = None) -> bool:
        """Give up the turn until `ready()` is true or `timeout` seconds have passed; without both, until the next turn.
        Return whether it is ready."""
        me = self.current
        if me is None:
            raise StuckError("the scheduler itself would have to wait")
        if me.process.is_dead:
            raise ProcessDied
        me.ready = ready if ready is not None or timeout is not None else _always
        me.until = None if timeout is None else self.clock.seconds + max(0.0, timeout)
        self._hub.switch()
        if me.process.is_dead:
            raise ProcessDied
        return ready is None or ready()

    def tell(self, line: Callable[[], str] | str) -> None:
        """Add a line to the story of this schedule. A line that is costly is made when it is read."""
        me = self.current
        self.story.append((self.clock.seconds, "-" if me is None else f"{me.process.name} {me.name}", line))

    def kill(self, process: Process, exit_code: int = -9) -> None:
        """End a process: none of its actors reaches the database from now on."""
        if process.is_dead:
            return
        process.is_dead = True
        process.exit_code = exit_code
        self.dying.append(process)
        for call in process.when_dead:
            call()

    # -- the scheduler -----------------------------------------------------------------------------------------

    def run(self, is_over: Callable[[], bool], steps_max: int) -> None:
        """Give turns until `is_over()`. Raises `StuckError` if that takes more than `steps_max` turns."""
        limit = self.steps + steps_max
        while not is_over():
            if self.defects:
                raise self.defects[0]
            if self.steps >= limit:
                raise StuckError(f"{steps_max} turns were not enough")
            self.steps += 1
            self._turn()

    def _turn(self) -> None:
        self._bury()
        now = self.clock.seconds
        last = self.current_before
        may_stay = last is not None and not last.is_over and _is_ready(last, now)
        choice = self.choices.draw() if may_stay else None
        if choice is not None and choice < _STAYS:
            assert last is not None
            chosen = last
        else:
            ready = [
                one
                for one in self.actors
                if (one.until is None or one.until <= now or one.ready is not None) and _is_ready(one, now)
            ]
            if not ready:
                self._advance_to_next()
                return
            if choice is None:
                chosen = ready[self.choices.draw() * len(ready) // SCALE]
            else:
                chosen = ready[(choice - _STAYS) * len(ready) // (SCALE - _STAYS)]
        self.clock.seconds += _STEP_SECONDS
        self._switch(chosen)

    current_before: Actor | None = None

    def _advance_to_next(self) -> None:
        """Let time pass until the next actor has something to do."""
        times = [
            max(one.until if one.until is not None else 0.0, one.process.frozen_until)
            for one in self.actors
            if one.until is not None or one.process.frozen_until > self.clock.seconds
        ]
        if not times:
            raise StuckError("everyone waits for something that never comes")
        self.clock.seconds = max(self.clock.seconds, min(times))

    def _switch(self, actor: Actor) -> None:
        actor.ready, actor.until = None, None
        self.current = self.current_before = actor
        asyncio._set_running_loop(actor.loop)
        actor.turn.switch()
        actor.loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self.current = None
        if actor.is_over:
            self.actors.remove(actor)

    def _bury(self) -> None:
        """End the frames of processes that have died."""
        while self.dying:
            process = self.dying.pop()
            for actor in process.actors:
                for _ in range(_UNWINDS_MAX):
                    if actor.is_over or not actor.turn:
                        break
                    self.current = actor
                    asyncio._set_running_loop(actor.loop)
                    actor.turn.throw(ProcessDied)
                    actor.loop = asyncio._get_running_loop()
                    asyncio._set_running_loop(None)
                self.current = None
                actor.is_over = True
                if actor in self.actors:
                    self.actors.remove(actor)
            if self.in_block is not None and self.in_block.process is process:
                self.in_block = None

    def close(self) -> None:
        """End all processes."""
        for process in {id(one.process): one.process for one in self.actors}.values():
            self.kill(process)
        self._bury()
        self.actors.clear()


def _always() -> bool:
    return True


def _is_ready(actor: Actor, now: float) -> bool:
    if actor.process.frozen_until > now:
        return False
    if actor.until is not None and actor.until <= now:
        return True
    return actor.ready() if actor.ready is not None else actor.until is None


_current: list[World] = []


def world() -> World:
    """Return the world of the schedule that runs."""
    return _current[-1]


def enter(one: World) -> None:
    """Make this the world that runs."""
    _current[:] = [one]
