"""A workflow with 100,000 children. Only `make faults` runs it; tests/worker/attempt/workflow has a smaller one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.children import album
from tests.faults.ledger import Ring
from tests.processes.worker_processes import Worker, until

APP = "tests.faults.children:app"
MEGABYTES_MAX = 16


def peak(worker: Worker) -> float:
    """The most memory that a process of the worker has had so far, in megabytes."""
    found = []
    for pid in (worker.process.pid, *worker.descendants()):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                found.append(int(line.split()[1]) / 1024)
    return max(found)


@pytest.mark.timeout(1800)
def test_the_memory_of_the_parents_worker_stays_flat(ring: Ring, whole: bool) -> None:
    """F19: for 100,000 children it is what it is for 2,000, from the first call to the last result."""
    if not whole:
        pytest.skip("part of make faults")
    parents = ring.worker(app=APP, queues=("parents",), processes=1)
    ring.worker(app=APP, queues=("children",), processes=1, slots=100)
    small = run(ring, 2_000)
    before = peak(parents)
    large = run(ring, 100_000)
    assert (small, large) == ([2_000, 1_999_000], [100_000, 4_999_950_000])
    assert peak(parents) - before < MEGABYTES_MAX
    assert ring.app.record.verify() == []


def run(ring: Ring, photos: int) -> list[int]:
    job = ring.app.enqueue(album.call(photos=photos))
    found = until(lambda: job.refresh().result if job.refresh().state == "succeeded" else None, "the album", 600.0)
    assert isinstance(found, list)
    return found
