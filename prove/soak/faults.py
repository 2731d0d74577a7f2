"""The random faults of a soak. Only one worker is struck; the other processes have to live through all of it."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from contextlib import suppress

from prove.soak.places import Place
from prove.soak.programs import Programs
from prove.soak.sampler import Sampler

__all__ = ["Faults"]

_PAUSE = (4.0, 20.0)
"""Seconds between two faults, at least and at most."""


class Faults:
    """Strikes at random until it is stopped."""

    def __init__(self, place: Place, programs: Programs, sampler: Sampler, seed: int) -> None:
        self._place, self._programs, self._sampler = place, programs, sampler
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; the struck worker is left running."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        names = ("kill_the_worker", "kill_a_child", *self._place.faults)
        while not self._over.wait(self._chance.uniform(*_PAUSE)):
            name = self._chance.choice(names)
            try:
                of_database = getattr(self._place, name, None)
                what = of_database(self._chance) if of_database else getattr(self, f"_{name}")()
            except Exception as error:  # for example, no connection to cut one with
                what = f"could not {name.replace('_', ' ')}: {error!r}"
                self.problems.append(what)
                continue
            self.done[what] += 1
            self._sampler.note_fault(what)

    def _kill_the_worker(self) -> str:
        struck = self._programs.struck
        if (code := struck.process.poll()) is not None:
            self.problems.append(f"the struck worker had ended by itself with exit code {code}")
        struck.kill()
        struck.start()
        return "killed a worker"

    def _kill_a_child(self) -> str:
        struck = self._programs.struck
        children = sorted(pid for pid in struck.roles() if pid != struck.process.pid)
        if children:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(children), signal.SIGKILL)
        return "killed a child"
