"""Kill storm. `make test`: 20 seconds of it on each database; `make faults`: 300 kills, at most 15 minutes, and the
bound on how long it takes until another worker has what a dead one held."""

from __future__ import annotations

import secrets
import statistics

import pytest

from tests.faults.kit import Ring
from tests.faults.storm import LEASE, Storm


@pytest.mark.timeout(1200)
def test_nothing_is_lost_or_doubled_in_a_kill_storm(
    ring: Ring, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """G1, G2, G5: workers die all through, and every job is done with exactly one row in the ledger."""
    seed = secrets.randbits(32)
    storm = Storm(ring, seed)
    storm.rage(*((900.0, 300) if whole else (20.0, 300)))
    ring.all_done(storm.jobs)
    assert storm.unexpected_ends() == []
    attempts = ring.attempts()
    waits = storm.waits()
    with capsys.disabled():
        print(f"\nseed {seed}: {len(storm.kills)} kills, {len(storm.jobs)} jobs, {dict(attempts)}; {told(waits)}")  # noqa: T201
    assert storm.kills
    assert attempts["done"] == len(storm.jobs)
    assert not set(attempts) - {"done", "expired", "crashed", "released"}
    if whole:
        assert waits[-1] <= LEASE + 1.0


def told(waits: list[float]) -> str:
    """From the kill of a worker to the next attempt at what it held."""
    if not waits:
        return "nobody was killed with a job in hand"
    p99 = waits[round(0.99 * (len(waits) - 1))]
    return (
        f"next attempt at {len(waits)} jobs after min {waits[0]:.2f}, median {statistics.median(waits):.2f}, "
        f"p99 {p99:.2f}, max {waits[-1]:.2f} s"
    )
