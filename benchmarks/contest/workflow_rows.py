"""What is to be reached with workflows, row by row."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contest.quantities import LITE, PG, Quantity, Row

__all__ = ["WORKFLOW_ROWS"]

WRITES = Quantity("writes")
STEPS, ASYNC, P50, P99 = (Quantity("steps", value) for value in ("per_second", "async_per_second", "p50_ms", "p99_ms"))
CROWD, TRANSACT = Quantity("crowd"), Quantity("transact")
WHOLE = {"1 step": Quantity("whole of 1"), "10 steps": Quantity("whole of 10")}
SIGNAL, SIGNAL_P99 = Quantity("signals", "p50_ms"), Quantity("signals", "p99_ms")
OVER, OVER_P99 = Quantity("signals", "p50_over_ms"), Quantity("signals", "p99_over_ms")
FEW, MANY = Quantity("fan-out", "seconds_1"), Quantity("fan-out", "seconds_2")
CHILDREN = Quantity("fan-out")
GROWTH, REPLAY, REPLAY_MB = (Quantity("long history", value) for value in ("growth", "replay_ms", "replay_mb"))
MORE, DISK, KEPT, QUERIES = (Quantity("sleepers", value) for value in ("more_mb", "disk_kb", "kept", "queries"))
SLEEPERS_MB, RESTART = Quantity("sleepers", "mb"), Quantity("sleepers", "restart_s")
WOKEN, LATE, LOST = (Quantity("wake-ups", value) for value in ("kept", "late_most_s", "lost"))

_BOTH = (PG, LITE)

WORKFLOW_ROWS: Sequence[Row] = (
    Row("steps of one workflow", PG, STEPS, 0.8, STEPS.of("floor")),
    Row("steps of one workflow", PG, STEPS, 4.0, STEPS.of("DBOS")),
    Row("steps of one workflow", PG, STEPS, 1.5, STEPS.of("Absurd")),
    Row("steps of one workflow", LITE, STEPS, 0.7, STEPS.of("floor")),
    Row("steps of one workflow", LITE, STEPS, 5.0, STEPS.of("DBOS")),
    *(Row("steps of one async workflow", base, ASYNC, None, STEPS.of("floor")) for base in _BOTH),
    *(Row("a step, median", base, P50, 1.25, P50.of("floor"), at_most=True, unit=" ms") for base in _BOTH),
    *(Row("a step, 99 of 100", base, P99, 2.0, P99.of("floor"), at_most=True, unit=" ms") for base in _BOTH),
    Row("steps of 200 workflows at once", PG, CROWD, 8.0, STEPS),
    Row("steps of 200 workflows at once", PG, CROWD, 10.0, CROWD.of("Absurd")),
    Row("steps of 200 workflows at once", PG, CROWD, 20.0, CROWD.of("DBOS")),
    Row("steps of 200 workflows at once", LITE, CROWD, 20.0, CROWD.of("DBOS")),
    *(Row("steps of 200 workflows at once", base, CROWD, None, CROWD.of("floor")) for base in _BOTH),
    Row("steps that write a row", PG, TRANSACT, 1.1, WRITES),
    Row("steps that write a row", PG, TRANSACT, 10.0, TRANSACT.of("DBOS")),
    Row("steps that write a row", PG, TRANSACT, 0.8, WRITES.of("pgbench")),
    Row("steps that write a row", LITE, TRANSACT, 1.1, WRITES),
    Row("steps that write a row", LITE, TRANSACT, None, TRANSACT.of("DBOS")),
    *(Row(f"workflows of {name}", PG, whole, 8.0, whole.of("Absurd")) for name, whole in WHOLE.items()),
    *(
        Row(f"workflows of {name}", base, whole, 15.0, whole.of("DBOS"))
        for name, whole in WHOLE.items()
        for base in _BOTH
    ),
    *(
        Row(f"workflows of {name}", base, whole, None, whole.of("floor"))
        for name, whole in WHOLE.items()
        for base in _BOTH
    ),
    Row("signal to resumed body, median", PG, SIGNAL, 1.0, SIGNAL.of("Absurd"), at_most=True, unit=" ms"),
    Row("signal to resumed body, median", PG, SIGNAL, None, SIGNAL.of("DBOS"), at_most=True, unit=" ms"),
    Row("signal to resumed body, 99 of 100", PG, SIGNAL_P99, 1.0, SIGNAL_P99.of("Absurd"), at_most=True, unit=" ms"),
    Row("signal to resumed body, median", LITE, SIGNAL, None, SIGNAL.of("DBOS"), at_most=True, unit=" ms"),
    *(Row("the same, above the pick-up of a job, median", base, OVER, 1.0, at_most=True, unit=" ms") for base in _BOTH),
    *(
        Row("the same, above the pick-up of a job, 99 of 100", base, OVER_P99, 1.0, at_most=True, unit=" ms")
        for base in _BOTH
    ),
    *(Row("fan-out of 1,000 children", base, FEW, 0.15, at_most=True, unit=" s") for base in _BOTH),
    Row("fan-out of 1,000 children", PG, CHILDREN, 20.0, CHILDREN.of("DBOS")),
    Row("fan-out of 1,000 children", PG, CHILDREN, 20.0, CHILDREN.of("Absurd")),
    Row("fan-out of 1,000 children", LITE, CHILDREN, 20.0, CHILDREN.of("DBOS")),
    *(Row("fan-out of 100,000 children", base, MANY, 6.0, at_most=True, unit=" s") for base in _BOTH),
    *(Row("last steps of 10,000, of the first", base, GROWTH, 1.1, at_most=True, unit=" ×") for base in _BOTH),
    *(Row("cold replay of 10,000 steps", base, REPLAY, 100.0, at_most=True, unit=" ms") for base in _BOTH),
    *(Row("memory of a replay of 10,000 steps", base, REPLAY_MB, 30.0, at_most=True, unit=" MB") for base in _BOTH),
    *(Row("worker beside 100,000 sleepers, memory more", base, MORE, 1.0, at_most=True, unit=" MB") for base in _BOTH),
    Row("worker beside 100,000 sleepers, statements", PG, QUERIES, 1.0, at_most=True),
    *(Row("drain beside 100,000 sleepers, of without", base, KEPT, 0.97, unit="") for base in _BOTH),
    *(Row("disk of a sleeper", base, DISK, 1.2, at_most=True, unit=" KB") for base in _BOTH),
    *(Row("worker with sleepers", base, SLEEPERS_MB, None, at_most=True, unit=" MB") for base in _BOTH),
    *(Row("restart with sleepers", base, RESTART, None, at_most=True, unit=" s") for base in _BOTH),
    *(Row("100,000 wake-ups at one moment, of a drain", base, WOKEN, 0.4, unit="") for base in _BOTH),
    *(Row("the last of them, late by", base, LATE, None, at_most=True, unit=" s") for base in _BOTH),
    *(Row("leases lost meanwhile", base, LOST, 0.0, at_most=True, unit="") for base in _BOTH),
)
