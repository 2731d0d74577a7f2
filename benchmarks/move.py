"""A move of many jobs from SQLite to PostgreSQL that is killed half-way, and whether both databases agree (J15).

The jobs are not written in bulk: they are enqueued, claimed and ended by the store's verbs, so each has the record that
it has in production. The move is `detent move` in a process of its own. It is killed with SIGKILL, and run again.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from benchmarks.measure import say, stopwatch
from benchmarks.places import Places
from detent.model.records import Abort, Finish, NewEvent, NewJob
from detent.store.contract import Store
from detent.store.open import open_store

__all__ = ["run"]

CHUNK = 1_000
SAMPLE = 1_000
"""Jobs whose whole record is compared."""
TASK, WORKER, LEASE = "bench.noop", "bench", 600.0
SLICE = 100_000
"""Jobs that are enqueued before they are worked through: pending jobs are the larger part of a small database."""


def run(places: Places, jobs: int, seed: int = 1) -> None:
    """Move that many jobs. `AssertionError` if the databases differ."""
    with places.sqlite() as here, places.postgres() as there, ExitStack() as stack:
        source, target = (stack.enter_context(closing(open_store(url))) for url in (here, there))
        with stopwatch() as watch:
            ids = [n for done in range(0, jobs, SLICE) for n in _live(source, min(SLICE, jobs - done))]
        say(f"{jobs:,} jobs were worked through in {watch.seconds:.0f} s")
        with stopwatch() as watch:
            _killed(here, there, target)
        say(f"the move was killed after {watch.seconds:.0f} s")
        with stopwatch() as watch:
            moved = subprocess.run(_command(here, there), check=True, capture_output=True, text=True)
        say(moved.stdout.rstrip())
        say(f"{moved.stderr.rstrip()}\nthe second call took {watch.seconds:.0f} s")
        _compare(source, target, random.Random(seed).sample(ids, min(SAMPLE, jobs)), jobs)


def _command(here: str, there: str) -> list[str]:
    return [sys.executable, "-m", "detent.cli", "move", "--from", here, "--to", there, "--yes", "--reason", "it grew"]


def _live(store: Store, count: int) -> range:
    """Let jobs be enqueued and worked through: of twenty, one stays pending, one is dead, one is cancelled, one needs a
    second attempt, one has three events, and one has a key and a tenant."""
    begin = store.ids_reserve(count)
    for start in range(begin, begin + count, CHUNK):
        store.job_enqueue([_job(job_id) for job_id in range(start, min(start + CHUNK, begin + count))])
    cancelled = [job_id for job_id in range(begin, begin + count) if job_id % 20 == 2]
    for start in range(0, len(cancelled), CHUNK):
        store.job_cancel(cancelled[start : start + CHUNK], "ana", "not wanted")
    for held in _claims(store):
        store.event_append(
            [
                NewEvent(job_id=job_id, attempt=attempt, level="info", message=f"line {n}", payload='{"part":1}')
                for job_id, attempt in held
                if job_id % 20 == 4
                for n in range(3)
            ]
        )
        fatal = {job_id for job_id, _ in held if job_id % 20 == 1}
        again = {job_id for job_id, attempt in held if job_id % 20 == 3 and attempt == 1}
        store.job_abort(
            [
                Abort(job_id=job_id, attempt=attempt, outcome="error", error="KeyError: 'to'", fatal=job_id in fatal)
                for job_id, attempt in held
                if job_id in fatal | again
            ],
            WORKER,
        )
        done = [Finish(job_id, attempt, '{"n":1}') for job_id, attempt in held if job_id not in fatal | again]
        store.job_finish(done, WORKER)
    while store.counts_fold(CHUNK):
        pass
    return range(begin, begin + count)


def _job(job_id: int) -> NewJob:
    kind = job_id % 20
    return NewJob(
        id=job_id,
        task="bench.later" if kind == 0 else TASK,
        payload=f'{{"t":{job_id}}}',
        nonce=1,
        fingerprint="",
        tenant=f"tenant {job_id % 7}" if kind == 5 else "",
        key=f"order {job_id}" if kind == 5 else None,
        correlation_id=f"call {job_id}" if kind == 6 else None,
    )


def _claims(store: Store) -> Iterator[list[tuple[int, int]]]:
    while True:
        lease_id = store.ids_reserve(1)
        held = store.job_claim(lease_id=lease_id, worker=WORKER, queues=None, tasks=[TASK], limit=CHUNK, lease=LEASE)
        if not held:
            return
        yield [(one.job_id, one.attempt) for one in held]


def _killed(here: str, there: str, target: Store) -> None:
    """Start the move, and kill it when the target has about half of the rows that will be copied."""
    with subprocess.Popen(_command(here, there), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            while not _is_half_way(target):
                if process.poll() is not None:
                    assert process.stderr is not None
                    raise AssertionError(f"the move ended before it was killed: {process.stderr.read().decode()}")
                time.sleep(0.05)
        finally:
            process.kill()


def _is_half_way(target: Store) -> bool:
    """Whether all jobs are copied, and a part of their attempts."""
    row = next((one for one in target.database_moves() if one.state == "loading"), None)
    places = {} if row is None else target.movable().places()
    execution = places.get("execution")
    return execution is not None and execution.copied > 0 and not execution.complete


def _compare(source: Store, target: Store, drawn: Sequence[int], jobs: int) -> None:
    here, there = _counts(source), _counts(target)
    assert here == there, "the counts differ"
    assert sum(here.values()) == jobs, f"{sum(here.values()):,} of {jobs:,} jobs are there"
    with stopwatch() as watch:
        violations = target.verify()
    assert violations == [], violations[:5]
    say(f"verify of the target took {watch.seconds:.0f} s")
    for job_id in drawn:
        ours, theirs = _record(source, job_id), _record(target, job_id)
        assert ours == theirs, f"job {job_id} differs: {ours} and {theirs}"
        assert ours[0] != [None], f"job {job_id} is gone"
    say(f"{jobs:,} jobs are in both, with equal counts; {len(drawn):,} whole records drawn by chance are equal")


def _counts(store: Store) -> dict[tuple[str | None, str, str], int]:
    return {(one.tenant, one.queue, one.state): one.jobs for one in store.counts()}


def _record(store: Store, job_id: int) -> list[object]:
    return [
        store.job_get([job_id]),
        store.job_details([job_id]),
        store.job_executions(job_id),
        store.transitions("job", str(job_id)),
        store.job_events(job_id, 0, 1_000),
    ]
