"""A SQLite database is copied while workers run and are killed, and work goes on from the copy."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes.worker_processes import Bench


def test_work_goes_on_from_a_backup(sqlite_bench: Bench, tmp_path: Path) -> None:
    """J15, R2: a copy has leases that were open. `verify` does not take them for stuck jobs; a worker on the copy
    takes their jobs when the leases have expired."""
    bench, gate, later = sqlite_bench, sqlite_bench.gate(), tmp_path / "later"
    held = bench.send("hold", gate=str(gate))
    sums = bench.send_many("add", 200, a=1, b=2)
    first = bench.worker()
    gate.entered()
    for number in range(3):
        worker = bench.worker()
        done = bench.cli("backup", str(tmp_path / f"copy{number}.db"), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["violations"] == 0
        worker.close()
    first.close()
    again = bench.cli("backup", str(tmp_path / "copy0.db"))
    assert again.returncode == 2
    assert "a path where there is nothing yet" in again.stderr
    later.mkdir()
    for number in (0, 2):
        with Bench(f"sqlite:///{tmp_path}/copy{number}.db", later) as copy:
            assert copy.app.jobs.get(held.id).state == "running"
            assert copy.is_healthy()
            if number == 2:
                gate.open()
                copy.drain()
                copy.rests(copy.app.jobs.get(held.id), "succeeded")
                assert [copy.app.jobs.get(job.id).result for job in sums] == [3] * 200
                assert copy.is_healthy()
