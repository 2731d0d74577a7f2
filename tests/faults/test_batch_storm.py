"""A batch run while workers are killed at random. `make test`: 300 targets and a few kills on each database; `make
faults`: 100,000 targets and four workers, with the memory that each needed."""

from __future__ import annotations

import random
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from detent import BatchRun
from detent.testing.stores import plain_connection
from tests.deadlines import scaled
from tests.faults.batches import changes, make_app
from tests.faults.ledger import Ring
from tests.processes.worker_processes import Worker

APP = "tests.faults.batches:app"
LEASE = scaled(2.0)


class Crew:
    """Workers that die as chance has it and are replaced; how much memory any of their processes ever needed."""

    def __init__(self, ring: Ring, many: int, seed: int, kills_max: int) -> None:
        self._ring = ring
        self._chance = random.Random(seed)
        self._named = 0
        self._kills_max = kills_max
        self._workers: dict[str, Worker] = {}
        self.kills = 0
        self.memory = 0
        for _ in range(many):
            self._start()

    def _start(self) -> None:
        self._named += 1
        name = f"crew{self._named}"
        self._workers[name] = self._ring.worker(app=APP, name=name, slots=8, lease=LEASE)

    def rage_until(self, over: Callable[[], bool], pause: tuple[float, float], seconds: float) -> None:
        """Kill one after another of those that are at work, until it is over."""
        most = self.kills + self._kills_max
        deadline = time.monotonic() + seconds
        strike_at = time.monotonic() + self._chance.uniform(*pause)
        while not over():
            assert time.monotonic() < deadline, "it is not over in time"
            self._weigh()
            if self.kills < most and time.monotonic() >= strike_at and self._strike():
                strike_at = time.monotonic() + self._chance.uniform(*pause)
            time.sleep(0.05)

    def _strike(self) -> bool:
        """Whether somebody died: only who holds jobs, so that whoever starts slowly gets his turn."""
        at_work = sorted({held.worker for held in self._ring.holders()} & self._workers.keys())
        if not at_work:
            return False
        worker = self._workers.pop(self._chance.choice(at_work))
        worker.process.kill()
        worker.process.wait()
        self._start()
        self.kills += 1
        return True

    def _weigh(self) -> None:
        for worker in self._workers.values():
            for pid in (worker.process.pid, *worker.descendants()):
                with suppress(FileNotFoundError, ProcessLookupError, IndexError):
                    status = Path(f"/proc/{pid}/status").read_text()
                    self.memory = max(self.memory, int(status.split("VmHWM:")[1].split()[0]) // 1024)


@pytest.mark.timeout(5400)
def test_every_target_is_changed_once_though_workers_die(
    ring: Ring, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """B3, B4, G2: previewed, applied and rolled back, each target exactly once in the database and under one key
    elsewhere; the counters are the rows."""
    many, workers, pause, seconds = (100_000, 4, (5.0, 15.0), 2400.0) if whole else (300, 2, (0.1, 0.5), 120.0)
    ring.app.close()
    app = ring.app = make_app(ring.url)
    with closing(plain_connection(ring.url)) as connection:
        connection.execute("CREATE TABLE changes (ref text NOT NULL, price bigint NOT NULL)")
        connection.commit()
    seed = secrets.randbits(32)
    book = ring.directory / "book"
    crew = Crew(ring, workers, seed, 10_000 if whole else 1)
    began_at = time.monotonic()
    run = app.runs.preview(changes(app, many=many, book=str(book), ms=0 if whole else 40))
    took = [_phase(crew, run, {"previewed"}, pause, seconds)]
    run.apply(actor="test")
    took.append(_phase(crew, run, {"applied", "partial", "failed"}, pause, seconds))
    assert (run.state, run.counts) == ("applied", {"applied": many})
    run.roll_back(actor="test")
    took.append(_phase(crew, run, {"rolled_back"}, pause, seconds))
    assert run.counts == {"rolled_back": many}
    rows = Counter(ring.ask("SELECT ref, price FROM changes"))
    assert rows == Counter({(f"ref-{at}", price) for at in range(many) for price in (at + 1, 0)})
    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    calls = 0
    with book.open() as lines:
        for line in lines:
            ref, price, key = line.split(" ", 2)
            keys[ref, price].add(key)
            calls += 1
    assert len(keys) == 2 * many
    assert all(len(found) == 1 for found in keys.values())
    assert ring.is_healthy()
    with capsys.disabled():
        said = ", ".join(f"{phase:.0f}" for phase in took)
        print(f"\nseed {seed}: {many} targets, {crew.kills} kills in {time.monotonic() - began_at:.0f} s ({said})")  # noqa: T201
        print(f"{calls} calls of the shop; no process of a worker needed more than {crew.memory} MB")  # noqa: T201
    assert crew.kills


def _phase(crew: Crew, run: BatchRun, ends: set[str], pause: tuple[float, float], seconds: float) -> float:
    began_at = time.monotonic()

    def over() -> bool:
        run.refresh()
        return run.state in ends or ("previewed" in ends and run.is_previewed)

    crew.rage_until(over, pause, seconds)
    return time.monotonic() - began_at
