"""Workers are killed all through a pipeline run whose source changes meanwhile. `make test`: a slice on each database;
`make faults`: 500,000 records."""

from __future__ import annotations

import os
import random
import secrets
import signal
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from detent.app.detent import Detent
from detent.app.pipeline_run import PipelineRun
from tests.deadlines import scaled
from tests.faults.ledger import Ring
from tests.faults.pipelines import DIRECTORY, Mirror, OwnMirror, Source, canonical, make_app, make_table
from tests.processes.worker_processes import Worker

APP = "tests.faults.pipelines:app"
LEASE = scaled(2.0)
WORKERS = 2


class Gale:
    """Kills a worker, or one of its children, every now and then; another one takes its place."""

    def __init__(self, ring: Ring, directory: Path, seed: int) -> None:
        self._ring = ring
        self._chance = random.Random(seed)
        self._directory = directory
        self.kills = 0
        self._workers = [self._start() for _ in range(WORKERS)]

    def _start(self) -> Worker:
        environment = {DIRECTORY: str(self._directory)}
        return self._ring.worker(app=APP, name=f"w{self.kills}-{secrets.token_hex(2)}", slots=8, lease=LEASE,
                                 environment=environment)  # fmt: skip

    def strike(self) -> None:
        """Somebody dies."""
        place = self._chance.randrange(len(self._workers))
        worker = self._workers[place]
        below = worker.descendants()
        if self._chance.random() < 0.6 or not below:
            worker.process.kill()
            worker.process.wait()
            self._workers[place] = self._start()
        else:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(below), signal.SIGKILL)
        self.kills += 1
        Source(self._directory).strike()

    def rage(self, run: PipelineRun, kills_max: int, seconds: float, meanwhile: object) -> None:
        """Kill workers until the run has ended, but at most `kills_max` times."""
        deadline = time.monotonic() + seconds
        while not run.refresh().ended:
            assert time.monotonic() < deadline, f"{run!r} {run.counts} after {self.kills} kills"
            if callable(meanwhile):
                meanwhile()
            # Only once the run gets on: what is measured is taking over, not starting.
            if self.kills < kills_max and run.row.pages:
                time.sleep(self._chance.uniform(0.2, 1.2))
                self.strike()
            else:
                time.sleep(0.05)

    def still(self) -> None:
        for worker in self._workers:
            worker.close()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("kind", "name"), [(Mirror, "mirror"), (OwnMirror, "own")], ids=["detents table", "own table"])
def test_every_record_is_consolidated_once_while_workers_die(
    ring: Ring,
    tmp_path: Path,
    whole: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Mirror],
    name: str,
) -> None:
    """P2, P3, P4, P5: each record once, the consolidation triggered once, the watermark right; the second run is
    incremental and complete, though the source changed during the first. Wherever staged records lie."""
    size, page_size, kills, seconds = (500_000, 500, 60, 1800.0) if whole else (3_000, 50, 3, 170.0)
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    source = Source(tmp_path)
    source.create(size)
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    make_table(ring.url)
    with closing(make_app(ring.url)) as app:
        first = app.runs.start(kind(page_size))
        changed: dict[int, int] = {}

        def changes() -> None:
            if len(changed) < 200:
                n, price = chance.randrange(size), 100_000 + len(changed)
                source.change(n, price, app.store.now())
                changed[n] = price

        gale = Gale(ring, tmp_path, seed)
        try:
            gale.rage(first, kills, seconds, changes)
            with capsys.disabled():
                told = f"\nseed {seed}: {gale.kills} kills, {size} records in {first.elapsed.total_seconds():.0f} s"
                print(f"{told}, {len(changed)} changes meanwhile")  # noqa: T201
            assert gale.kills
            ended_well(app, first, size)
            found = canonical(ring.url)
            assert {n: times for n, (_, times) in found.items()} == dict.fromkeys(range(size), 1)
            assert app.watermarks.get(name) == first.captured_at == first.row.created_at
            second = app.runs.start(kind(page_size)).wait(timeout=seconds)
        finally:
            gale.still()
        assert (second.is_full, second.since) == (False, first.captured_at)
        ended_well(app, second, len(changed))
        found = canonical(ring.url)
        assert {n: price for n, (price, _) in found.items()} == {n: n % 1000 for n in range(size)} | changed
        assert {n for n, (_, times) in found.items() if times == 2} == set(changed)
        assert app.store.verify() == []


def ended_well(app: Detent, run: PipelineRun, records: int) -> None:
    """Completed, with every record staged and consolidated, and one consolidation."""
    run.refresh()
    assert (run.state, run.error) == ("completed", None)
    assert (run.counts["staged"], run.counts["consolidated"]) == (records, records)
    assert (run.counts["ended"], run.counts["failed"]) == (30, 0)
    assert [line.to_state for line in run.history()] == [
        *("created", "workers_running", "consolidation_triggered", "consolidating", "completed")
    ]
