"""One job a transaction, with nothing shared: claim one, write its row, finish it, commit; in the floor's schema.

On PostgreSQL in C: pgbench with 16 connections and prepared statements. On SQLite in a loop, so one sync a job.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import floor_sqlite
from benchmarks.contenders import floor, program

CONNECTIONS = 16
SCRIPT = """\
\\set lease random(1, 9000000000000000000)
BEGIN;
SELECT id, attempt FROM floor.claim(:lease, 'bench', 1, 30.0, '-infinity', 0) \\gset
INSERT INTO ledger (n) VALUES (:id);
SELECT floor.finish(ARRAY[:id]::bigint[], :attempt, 'bench');
COMMIT;
"""
REACHED = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)


def with_pgbench(count: int) -> program.Answer:
    """As many transactions as jobs, so that none comes away with nothing."""
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory, "job.sql")
        script.write_text(SCRIPT)
        each = count // CONNECTIONS
        options = ["-n", "-M", "prepared", "-c", str(CONNECTIONS), "-j", "1", "-t", str(each), "-f", str(script)]
        found = shutil.which("pgbench", path=os.environ["BENCH_BINARIES"])
        assert found is not None
        said = subprocess.run([found, *options, program.URL], capture_output=True, text=True, check=True).stdout
    reached = REACHED.search(said)
    assert reached is not None, said
    return {"per_second": float(reached[1])}


def in_a_loop(count: int) -> program.Answer:
    """The floor's own statements, one transaction a job."""
    with floor_sqlite.SqliteFloor(program.URL, 1) as side:
        began = time.perf_counter()
        for number in range(count):
            side.whole("INSERT INTO ledger (n) VALUES (?)", (number,))
        return program.rate(count, began)


def writes(count: int) -> program.Answer:
    """The jobs first, off the clock."""
    floor.enqueue(count, program.BULK)
    return with_pgbench(count) if floor.IS_POSTGRES else in_a_loop(count)


if __name__ == "__main__":
    program.serve({"prepare": floor.prepare, "writes": writes})
