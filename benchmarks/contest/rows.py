"""What is to be reached, row by row."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contest.quantities import LITE, PG, Quantity, Row
from benchmarks.contest.workflow_rows import WORKFLOW_ROWS
from benchmarks.contest.works import WHOLE

__all__ = ["ROWS"]

ONE, BULK, WRITES = Quantity("one"), Quantity("bulk"), Quantity("writes")
ALONE, THREADS, COROUTINES = (Quantity("callers", value) for value in ("one", "threads", "coroutines"))
PIPELINE = Quantity("pipeline")
PREVIEW, APPLY, ROLL_BACK = (Quantity("batch", value) for value in ("preview", "apply", "roll_back"))
DRAIN, PAIR = Quantity("drain"), Quantity("drain by two")
P50, P99, INSIDE = Quantity("pick-up", "p50_ms"), Quantity("pick-up", "p99_ms"), Quantity("inside", "p50_ms")
CHILD, GROWTH, SUPERVISOR = (Quantity("memory", value) for value in ("child_mb", "growth", "supervisor_mb"))
KEPT_LARGE, KEPT_SMALL = Quantity("snapshot", "kept_large"), Quantity("snapshot", "kept_small")
FILLED, COUNTS, LISTS = (Quantity("filled", value) for value in ("kept", "counts_ms", "list_ms"))
TENANTS = {(crowd, each): Quantity("tenants", f"kept_{crowd}_{each}") for crowd in WHOLE.crowds for each in (1, 10)}
IDLE_AFTER, AFTER = Quantity("tenants", "idle_percent"), Quantity("tenants", "kept_afterwards")
SLOWEST, REQUESTS = Quantity("filled", "slowest_ms"), Quantity("filled", "requests")
CONSOLE = Quantity("console", "kept")
KEYS, RETENTION = Quantity("keys", "kept"), Quantity("retention", "kept")
CPU, QUERIES = Quantity("idle", "cpu_percent"), Quantity("idle", "queries")

ROWS: Sequence[Row] = (
    Row("enqueue one by one", PG, ONE, 1.0, ONE.of("pgqueuer")),
    Row("enqueue one by one", PG, ONE, 0.85, ONE.of("floor")),
    Row("enqueue one by one", LITE, ONE, 1.1, ONE.of("persist-queue")),
    Row("enqueue from 200 coroutines", PG, COROUTINES, 10.0, ALONE),
    Row("enqueue from 200 coroutines", LITE, COROUTINES, 8.0, ALONE),
    Row("enqueue from 32 threads", PG, THREADS, 5.0, ALONE),
    Row("enqueue from 32 threads", LITE, THREADS, 3.0, ALONE),
    Row("enqueue in bulk", PG, BULK, 1.4, BULK.of("pgqueuer")),
    Row("enqueue in bulk", PG, BULK, 0.8, BULK.of("floor")),
    Row("enqueue in bulk", LITE, BULK, 0.5, BULK.of("floor")),
    Row("drain, one process", PG, DRAIN, 1.5, DRAIN.of("graphile-worker")),
    Row("drain, one process", PG, DRAIN, 3.0, DRAIN.of("pgqueuer")),
    Row("drain, one process", PG, DRAIN, 0.6, DRAIN.of("floor")),
    Row("drain, one process", LITE, DRAIN, 10.0, DRAIN.of("huey")),
    Row("drain, one process", LITE, DRAIN, 0.5, DRAIN.of("floor")),
    Row("drain, two processes", PG, PAIR, 1.5, PAIR.of("graphile-worker")),
    Row("drain, two processes", PG, PAIR, 1.0, DRAIN),
    Row("drain, two processes", LITE, PAIR, 1.0, DRAIN),
    Row("jobs that write a row", PG, WRITES, 5.0, WRITES.of("DBOS")),
    Row("jobs that write a row", PG, WRITES, 0.5, WRITES.of("pgbench")),
    Row("jobs that write a row", LITE, WRITES, 5.0, WRITES.of("one sync a job")),
    Row("records through a pipeline", PG, PIPELINE, 0.6, PIPELINE.of("direct SQL")),
    Row("records through a pipeline", LITE, PIPELINE, 0.6, PIPELINE.of("direct SQL")),
    Row("targets of a run, previewed", PG, PREVIEW, None, DRAIN),
    Row("targets of a run, applied", PG, APPLY, None, DRAIN),
    Row("targets of a run, rolled back", PG, ROLL_BACK, None, DRAIN),
    Row("targets of a run, previewed", LITE, PREVIEW, None, DRAIN),
    Row("targets of a run, applied", LITE, APPLY, None, DRAIN),
    Row("targets of a run, rolled back", LITE, ROLL_BACK, None, DRAIN),
    Row("pick-up, median", PG, P50, 0.9, P50.of("graphile-worker"), at_most=True, unit=" ms"),
    Row("pick-up, 99 of 100", PG, P99, 1.0, P99.of("graphile-worker"), at_most=True, unit=" ms"),
    Row("pick-up in one process, median", LITE, INSIDE, 0.5, INSIDE.of("huey"), at_most=True, unit=" ms"),
    Row("pick-up across processes, median", LITE, P50, 1.0, P50.of("huey"), at_most=True, unit=" ms"),
    Row("drain with a snapshot held, of without, batch 500", PG, KEPT_LARGE, 0.8, unit=""),
    Row("drain with a snapshot held, of without, batch 10", PG, KEPT_SMALL, 0.75, unit=""),
    Row("drain beside millions of jobs, of in an empty database", PG, FILLED, 0.8, unit=""),
    Row("drain beside millions of jobs, of in an empty database", LITE, FILLED, 0.8, unit=""),
    Row("counts by state beside millions of jobs", PG, COUNTS, 100.0, at_most=True, unit=" ms"),
    Row("counts by state beside millions of jobs", LITE, COUNTS, 100.0, at_most=True, unit=" ms"),
    Row("a page of any state beside millions of jobs", PG, LISTS, 100.0, at_most=True, unit=" ms"),
    Row("a page of any state beside millions of jobs", LITE, LISTS, 100.0, at_most=True, unit=" ms"),
    Row("slowest request of the console beside millions", PG, SLOWEST, 100.0, at_most=True, unit=" ms"),
    Row("slowest request of the console beside millions", LITE, SLOWEST, 100.0, at_most=True, unit=" ms"),
    Row("requests for a job, one server process", PG, REQUESTS, 500.0),
    Row("requests for a job, one server process", LITE, REQUESTS, 500.0),
    Row("drain while a console is open, of without", PG, CONSOLE, 0.95, unit=""),
    Row("drain while a console is open, of without", LITE, CONSOLE, 0.95, unit=""),
    *(
        Row(
            f"drain, {crowd:,} tenants with {each} {'job' if each == 1 else 'jobs'}, of one tenant",
            base,
            one,
            0.5,
            unit="",
        )
        for base in (PG, LITE)
        for (crowd, each), one in TENANTS.items()
    ),
    Row("drain of one tenant after all those, of before", PG, AFTER, 0.9, unit=""),
    Row("drain of one tenant after all those, of before", LITE, AFTER, 0.9, unit=""),
    Row("idle worker after all those, of a core", PG, IDLE_AFTER, 0.5, at_most=True, unit=" %"),
    Row("idle worker after all those, of a core", LITE, IDLE_AFTER, 0.5, at_most=True, unit=" %"),
    Row("drain, 100,000 limit keys, of jobs without one", PG, KEYS, 0.5, unit=""),
    Row("drain, 100,000 limit keys, of jobs without one", LITE, KEYS, 0.5, unit=""),
    Row("drain while a million old jobs are deleted, of without", PG, RETENTION, 0.9, unit=""),
    Row("drain while a million old jobs are deleted, of without", LITE, RETENTION, 0.9, unit=""),
    Row("memory of a child", PG, CHILD, 60.0, at_most=True, unit=" MB"),
    Row("memory of a child", LITE, CHILD, 45.0, at_most=True, unit=" MB"),
    Row("memory of the supervisor", PG, SUPERVISOR, 35.0, at_most=True, unit=" MB"),
    Row("growth of a child from 20,000 jobs on", PG, GROWTH, 1.1, at_most=True, unit=" ×"),
    Row("growth of a child from 20,000 jobs on", LITE, GROWTH, 1.1, at_most=True, unit=" ×"),
    Row("idle worker, of a core", PG, CPU, 0.5, at_most=True, unit=" %"),
    Row("idle worker, of a core", LITE, CPU, 0.5, at_most=True, unit=" %"),
    Row("idle worker, statements", PG, QUERIES, 1.0, at_most=True),
    Row("drain, one process, against the version before", PG, DRAIN, 0.99, DRAIN.of("before")),
    Row("drain, one process, against the version before", LITE, DRAIN, 0.99, DRAIN.of("before")),
    *WORKFLOW_ROWS,
)
