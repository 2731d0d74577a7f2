"""Jobs whose worker died with their last attempt: their application hears of it, from whoever knows the task."""

from __future__ import annotations

import signal

from tests.processes.kit import Bench, until


def test_the_hook_hears_of_what_the_reaper_gave_up_once(bench: Bench) -> None:
    """W6, J10: nobody was left to tell; another worker does, and no two of them do."""
    told = bench.directory / "told"
    gate = bench.gate()
    task = bench.app.find_task("hold_once")
    job = bench.app.enqueue(task.call(gate=str(gate)), metadata={"tell": str(told)})
    first = bench.worker()
    gate.entered()
    first.signal(signal.SIGKILL)
    first.ends()
    for _ in range(2):
        bench.worker()
    bench.rests(job, "quarantined")
    until(told.exists, "the hook")
    until(lambda: bench.app.store.untold_take(["hold_once"], 10, 0.001) == [], "told, and struck out")
    assert until(told.read_text) == f"{job.id} quarantined\n"
    assert bench.is_healthy()
