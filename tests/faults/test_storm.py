"""Kill storm. Slice in `make faults-slice`: about 20 seconds; whole in `make faults`: 300 kills, at most 15 minutes."""

from __future__ import annotations

import secrets

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
    storm.rage(*((900.0, 300) if whole else (12.0, 300)))
    ring.all_done(storm.jobs)
    assert storm.unexpected_ends() == []
    attempts = ring.attempts()
    waits = storm.waits()
    with capsys.disabled():
        told = f"; next attempt after {waits[0]:.2f}…{waits[-1]:.2f} s" if waits else ""
        print(f"\nseed {seed}: {len(storm.kills)} kills, {len(storm.jobs)} jobs, {dict(attempts)}{told}")  # noqa: T201
    assert storm.kills
    assert attempts["done"] == len(storm.jobs)
    assert not set(attempts) - {"done", "expired", "crashed", "released"}
    if whole:
        assert waits[-1] <= LEASE + 1.0
