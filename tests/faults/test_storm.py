"""Kill storm. `make test`: 20 seconds of it on each database; `make faults`: 300 kills, at most 15 minutes, and the
bounds on how long it takes until others may have, and have, what a dead one held."""

from __future__ import annotations

import secrets
import statistics

import pytest

from tests.deadlines import scaled
from tests.faults.ledger import Ring
from tests.faults.storm import LEASE, UNDER_WAY, Storm, Turn, Wait, overtaken

IN_LINE_MAX = 5.0
"""Seconds in which a worker with all its slots in suspects' own processes has one free again; who sleeps without being
woken looks again only later than that."""


@pytest.mark.timeout(1200)
def test_nothing_is_lost_or_doubled_in_a_kill_storm(
    ring: Ring, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """G1, G2, G5: workers die all through, and every job is done with exactly one row in the ledger."""
    seed = secrets.randbits(32)
    storm = Storm(ring, seed)
    storm.rage(*((900.0, 300) if whole else (20.0, 8)))
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
        assert max(wait.claimable for wait in waits) <= LEASE + scaled(1.0)
        # Whoever takes it may have no slot free at that moment: then it stands in line, where nobody passes it, and
        # which is not long. Nobody sleeps beside it.
        assert storm.overtaken() == []
        assert max(wait.claimed - wait.claimable for wait in waits) <= IN_LINE_MAX


def test_who_passes_one_that_stands_in_line_again_is_seen() -> None:
    """The measure itself: later to the line and claimed before it, but not what was on its way already."""
    lost = Turn(1, 1, True, claimed=10.0, ended=12.0, due_again=12.0, enqueued=9.0)
    again = Turn(1, 2, False, claimed=16.0, ended=None, due_again=None, enqueued=9.0)
    older = Turn(2, 1, False, claimed=14.0, ended=None, due_again=None, enqueued=11.0)
    on_its_way = Turn(3, 1, False, claimed=12.0 + UNDER_WAY / 2, ended=None, due_again=None, enqueued=12.1)
    passes = Turn(4, 1, False, claimed=14.0, ended=None, due_again=None, enqueued=13.0)
    assert overtaken([lost, again, older, on_its_way]) == []
    assert overtaken([lost, again, older, passes]) == ["job 4, due 13.000, before 1, due 12.000"]


def told(waits: list[Wait]) -> str:
    """How long it took after the kill of a worker until others had what it held."""
    if not waits:
        return "nobody was killed with a job in hand"
    claimable, claimed = [wait.claimable for wait in waits], [wait.claimed for wait in waits]
    return f"{len(waits)} jobs were claimable again after {spread(claimable)} s, and claimed after {spread(claimed)} s"


def spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} (p99 {p99(seconds):.2f}, max {max(seconds):.2f})"


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[round(0.99 * (len(seconds) - 1))]
