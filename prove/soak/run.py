"""`python -m prove soak`: the load, the faults, the samples, the plots and the verdict."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detent.errors import DatabaseError
from detent.store.open import open_store
from detent.testing.stores import plain_connection, table
from detent.worker.services.retention import Keep, Retention
from prove.soak.application import MIRRORED, started_file
from prove.soak.drawing import drawn
from prove.soak.faults import Faults
from prove.soak.load import LOAD, sent_file
from prove.soak.places import Kind, Place, place
from prove.soak.programs import Program, Programs
from prove.soak.sampler import Sampler, read_samples
from prove.soak.verdict import judge

__all__ = ["KINDS", "soak"]

KINDS: tuple[Kind, ...] = ("sqlite", "postgresql")
KEEP_SECONDS = 45
"""Ended jobs and everything on record about them are deleted after this time."""
_PASS_SECONDS = 15
_REST_SECONDS = 240.0
_DAY = 86_400
_AT_WORK = "SELECT count(*) FROM {} WHERE state IN ('pending', 'running')"
_NUMBERS = "SELECT kind, count(*), count(DISTINCT number), max(number) FROM soak_effect GROUP BY kind"


@dataclass
class _Soak:
    kind: Kind
    seconds: float
    seed: int
    to: Path
    environment: Mapping[str, str]
    say: Callable[[str], None]

    def run(self) -> list[str]:
        """Run it; return what was found, in sentences."""
        samples_file = self.to / f"{self.kind}.ndjson"
        samples_file.unlink(missing_ok=True)
        logs = self.to / f"{self.kind}-logs"
        shutil.rmtree(logs, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="detent-soak-") as name, place(self.kind) as where:
            folder = Path(name)
            try:
                found = self._on(where, folder, samples_file)
            finally:
                logs.mkdir()
                for log in folder.glob("*.log"):
                    shutil.copy(log, logs)
        samples, faults = read_samples(samples_file)
        title = f"Soak on {'SQLite' if self.kind == 'sqlite' else 'PostgreSQL'}, {self.seconds / 60:.1f} minutes"
        (self.to / f"soak-{self.kind}.svg").write_text(drawn(title, samples, faults, self.seconds))
        return [*judge(samples, self.seconds), *found]

    def _on(self, where: Place, folder: Path, samples_file: Path) -> list[str]:
        with Programs(where.url, folder, dict(self.environment)) as programs:
            sampler = Sampler(samples_file, where, programs, folder, self.seconds)
            faults = Faults(where, programs, sampler, self.seed)
            retention = _Pruning(where.url)
            for part in (sampler, retention, faults):
                part.start()
            try:
                self._wait(programs)
            finally:
                for part in (faults, sampler):
                    part.stop()
            found = _end_of(programs.client)
            sent = _sent(folder, found)
            found += _rest(where.url)
            retention.stop()
            found += _end_of(programs.calm) + _end_of(programs.struck)
            found += _effects(where.url, folder, sent)
            found += faults.problems
            self.say(
                f"{self.kind}: {sum(sent.values()):,} sent ({_listed(sent)}); faults: {_listed(faults.done)}; "
                f"{retention.passes} passes of retention; {sampler.missed} samples without the database"
            )
        return found + _violations(where.url)

    def _wait(self, programs: Programs) -> None:
        """Wait for the end of the time. Stop at once if the client or the calm worker ends."""
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and programs.client.process.poll() is programs.calm.process.poll() is None:
            time.sleep(0.2)


class _Pruning:
    """Retention with a short horizon, in a thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.passes = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        days = KEEP_SECONDS / _DAY
        keep = Keep(succeeded=days, others=days, staged=days, log=days, keys_as_jobs=True)
        with closing(open_store(self._url)) as store:
            retention = Retention(store, keep, every=_PASS_SECONDS)
            was_walking = False
            while not self._over.wait(1.0):
                with suppress(DatabaseError):
                    retention.run(time.monotonic())
                self.passes += was_walking and not retention.is_walking
                was_walking = retention.is_walking


def _end_of(program: Program) -> list[str]:
    """Stop a program; return a sentence if it does not end as it should."""
    ended_before = program.process.poll()
    code = program.stop()
    if ended_before is None and code == 0:
        return []
    how = "had to be killed" if code is None else f"ended with exit code {code}"
    when = "" if ended_before is None else " before the time was up"
    said = "".join(program.log.read_text(errors="replace").splitlines(keepends=True)[-15:])
    return [f"The {program.name} {how}{when}. It said last:\n{said}"]


def _sent(folder: Path, found: list[str]) -> Counter[str]:
    """Return how much of each kind the client has sent. What it complains of is added to `found`."""
    if not sent_file(folder).exists():
        return Counter()
    told = json.loads(sent_file(folder).read_text())
    found += told["problems"]
    return Counter(told["sent"])


def _rest(url: str) -> list[str]:
    """Wait until no job is pending or running."""
    deadline = time.monotonic() + _REST_SECONDS
    while left := _ask(url, _AT_WORK.format(table(url, "job")))[0][0]:
        if time.monotonic() > deadline:
            states = _ask(url, f"SELECT task, state, count(*) FROM {table(url, 'job')} GROUP BY task, state")
            return [f"{left} jobs did not come to rest within {_REST_SECONDS:.0f} s: {states}."]
        time.sleep(0.3)
    return []


def _effects(url: str, folder: Path, sent: Counter[str]) -> list[str]:
    """Compare what was sent with what was done: each number from 1 on once, or at least once for a plain job."""
    found = []
    done = {kind: (rows, numbers, last) for kind, rows, numbers, last in _ask(url, _NUMBERS)}
    for kind in ("commit", "order begun", "order ended", "target", "reverted", "posted", "tick"):
        rows, numbers, last = done.get(kind, (0, 0, 0))
        if rows > numbers:
            found.append(f"{rows - numbers} effects of kind {kind!r} happened twice.")
        wanted = sent["order" if kind.startswith("order") else kind]
        # A request that was carried out may have had no answer before the end, so there may be one more.
        if kind != "tick" and (numbers < wanted or last != numbers):
            found.append(f"{max(wanted, last) - numbers} effects of kind {kind!r} are lost: of {wanted} sent.")
    lines = started_file(folder).read_text().splitlines() if started_file(folder).exists() else []
    lost = set(range(1, sent["plain"] + 1)) - {int(line.split()[0]) for line in lines}
    if lost:
        found.append(f"{len(lost)} plain jobs were never started, for example number {min(lost)}.")
    times = {row[0] for row in _ask(url, "SELECT DISTINCT times FROM soak_mirror")}
    count = _ask(url, "SELECT count(*) FROM soak_mirror")[0][0]
    if len(times) > 1 or count not in (0, MIRRORED):
        found.append(f"{count} records of the pipeline were written {sorted(times)} times; each run writes each once.")
    return found


def _violations(url: str) -> list[str]:
    with closing(open_store(url)) as store:
        store.ready()
        return [f"verify: {one}" for one in store.verify()]


def _ask(url: str, sql: str) -> list[tuple[Any, ...]]:
    with closing(plain_connection(url)) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        return rows


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "none"


def soak(
    hours: float,
    kinds: Sequence[Kind],
    *,
    seed: int,
    to: Path,
    say: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
) -> dict[Kind, list[str]]:
    """Run a soak on each kind of database at the same time. Return what was found on each, in sentences."""
    to.mkdir(parents=True, exist_ok=True)
    say(f"{hours * 60:.1f} minutes on {' and '.join(kinds)}, seed {seed}. On each: {LOAD}.")
    runs = {kind: _Soak(kind, hours * 3600, seed, to, environment or {}, say) for kind in kinds}
    with ThreadPoolExecutor(len(runs)) as threads:
        ends = {kind: threads.submit(run.run) for kind, run in runs.items()}
        return {kind: end.result() for kind, end in ends.items()}
