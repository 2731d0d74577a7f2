"""A worker dies after it called the other side and before it could say so: the probe is asked, not the function."""

from __future__ import annotations

import pytest

from detent.client.job import Job
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, Gate, kill


def lines(gate: Gate, book: str) -> list[str]:
    path = gate.path.with_suffix(book)
    return path.read_text().split() if path.exists() else []


def lost(bench: Bench, task: str, gate: Gate, *, pays: bool) -> Job[object]:
    """A job whose worker was killed, with all its processes, while its function ran; another takes over."""
    job = bench.send(task, gate=str(gate), pays=pays)
    first = bench.worker(lease=scaled(1.0))
    gate.entered()
    kill(first.process.pid)
    first.ends()
    bench.worker(lease=scaled(1.0))
    return job


@pytest.mark.parametrize("task", ["pay", "pay_async"])
def test_killed_after_the_effect(bench: Bench, task: str) -> None:
    """C5: one effect, found by the probe under the same key; the record tells it."""
    gate = bench.gate()
    job = bench.rests(lost(bench, task, gate, pays=True), "succeeded")
    assert job.result == "found in the books"
    assert lines(gate, ".paid") == lines(gate, ".asked") == [f"{bench.app.identities.current()}//job/{job.id}"]
    assert bench.outcomes(job) == ["unknown", "done"]
    assert ("warning", "the probe says: done") in bench.lines(job)
    assert bench.is_healthy()


def test_killed_before_the_effect(bench: Bench) -> None:
    """C5: it had not happened, so the function is called once more."""
    gate = bench.gate()
    job = bench.rests(lost(bench, "pay", gate, pays=False), "succeeded")
    assert job.result == "paid"
    assert len(gate.entered(2)) == 2
    assert bench.lines(job)[-1] == ("warning", "the probe says: not done")
    assert bench.is_healthy()


def test_out_of_time_after_the_effect(bench: Bench) -> None:
    """C5: a time-out leaves the same doubt as a death."""
    gate = bench.gate()
    job = bench.send("pay_in_time", gate=str(gate), pays=True)
    bench.worker()
    bench.rests(job, "succeeded")
    assert (job.result, lines(gate, ".paid")) == (
        "found in the books",
        [f"{bench.app.identities.current()}//job/{job.id}"],
    )
    assert bench.outcomes(job) == ["unknown", "done"]


def test_cancelled_and_deaf_after_it_began(bench: Bench) -> None:
    """C5, J8: one that does not stop, and must not be repeated blindly, is not simply cancelled."""
    gate = bench.gate()
    job = bench.send("hold_carefully", gate=str(gate))
    bench.worker(lease=scaled(1.0), cancel_grace=scaled(0.2))
    gate.entered()
    job.cancel(actor="ana", reason="enough")
    bench.rests(job, "quarantined")
    assert bench.outcomes(job) == ["unknown"]
