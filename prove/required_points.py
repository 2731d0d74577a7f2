"""What the figures of a long run must reach, so that a clean table proves something: every declared transition, every
class of errors, every class of SQLSTATEs that the package handles, and every fault.

A point is left out only for a reason, which is in `EXEMPT`. If a figure learns to reach it, take it out there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from detent.errors import DetentError
from detent.lifecycle.library import LIBRARY
from prove.bad_disk import FAULTS as DISK_FAULTS
from prove.coverage import fault_points, transition_point
from prove.figure import Tier
from prove.lost_answers.ways import CRASH, LOSSES

__all__ = ["DECLARED", "EXEMPT", "FAULTS", "REQUIRED", "TIMES", "missing_points", "summary", "with_classes"]

TIMES: dict[Tier, int] = {"commit": 1, "nightly": 100, "release": 100}
"""How often a point must be reached to count. The tier `commit` only reports."""

FAULTS = (
    *("SIGKILL", "backend terminated", "lost sync", *DISK_FAULTS, *LOSSES),
    *("SIGSTOP beyond the lease", "restart of the server", "fail-over to a standby"),
    *("no answer from the database", "answer lost after the effect", "slow call", "wake-up that is lost"),
    *("crash of a process", "process that stands still", "machine that stands still"),
    *("function that fails", "function that commits again"),
    *(f"operator: {act}" for act in ("cancel", "retry", "pause", "resume", "signal", "set clock")),
)
"""All faults that these figures count as points."""

_SQLSTATES = ("08", "22", "23", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "DT")
"""The classes that `store/postgres/driver/failures.py` knows."""


def with_classes(covered: Counter[str]) -> Counter[str]:
    """Add the classes of the SQLSTATEs that were reached: of `sqlstate 57P01`, that is `sqlstate class 57`."""
    found = covered.copy()
    for point, count in covered.items():
        if point.startswith("sqlstate ") and not point.startswith("sqlstate class "):
            found[f"sqlstate class {point.removeprefix('sqlstate ')[:2]}"] += count
    return found


def _errors(kind: type[DetentError]) -> Iterator[str]:
    """Return the points of the classes of errors that the package raises."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("detent.errors"):
            yield f"error {one.__name__}"
        yield from _errors(one)


def _named(names: str) -> tuple[str, ...]:
    return tuple(f"error {name}" for name in names.split())


DECLARED = frozenset(
    {
        *(transition_point(lifecycle, move) for lifecycle in LIBRARY.values() for move in lifecycle.transitions),
        *_errors(DetentError),
        *(f"sqlstate class {one}" for one in _SQLSTATES),
        *fault_points(*FAULTS),
    }
)

_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "no deed of P1 and P2 rewinds a workflow: see tests/contract/workflows/test_workflow_rewind.py",
        tuple(f"transition job: {state} -> pending (rewind)" for state in ("failed", "quarantined", "cancelled")),
    ),
    (
        "P6 reaches it, but a nightly run may have time for fewer than 100 times",
        (
            "transition job: failed -> pending (retry)",
            "transition job: failed -> succeeded (force)",
            *(f"transition job: quarantined -> {one} (settle)" for one in ("pending", "succeeded")),
        ),
    ),
    (
        "a restart takes a second or more, so a nightly run may have time for fewer than 100 times",
        tuple(fault_points(CRASH, "restart of the server", "fail-over to a standby")),
    ),
    (
        "no figure has graphs yet: see tests/contract/graphs",
        ("transition job: pending -> succeeded (complete)", "transition job: pending -> failed (fail_with_node)"),
    ),
    (
        "the runs of P1 and P2 have no failed targets: see tests/contract/batches and tests/faults/test_batch_storm.py",
        (
            "transition batch_run: applying -> partial (complete_in_part)",
            "transition batch_run: applying -> failed (fail)",
            "transition batch_run: preview -> cancelled (cancel)",
            "transition batch_run: applying -> cancelled (cancel)",
            *(f"transition batch_run: {one} -> applying (retry_failed)" for one in ("partial", "failed", "cancelled")),
            *(f"transition batch_run: {one} -> queued (queue_rest)" for one in ("applied", "partial", "failed")),
            "transition batch_run: cancelled -> queued (queue_rest)",
            *(f"transition batch_run: {one} -> partial (request_roll_back)" for one in ("failed", "cancelled")),
            "transition batch_run: partial -> rolled_back (roll_back)",
            "transition target: applying -> failed (fail)",
            "transition target: failed -> queued (retry_failed)",
        ),
    ),
    (
        "the pipelines of P1 and P2 neither fail nor are cancelled: see tests/contract/pipelines and tests/pipeline",
        (
            "transition pipeline_run: workers_running -> consolidation_skipped (skip)",
            *(
                f"transition pipeline_run: {one} -> failed (fail)"
                for one in ("created", "consolidation_skipped", "consolidation_triggered", "consolidating")
            ),
            "transition pipeline_run: consolidation_skipped -> consolidation_triggered (force)",
            *(
                f"transition pipeline_run: {one} -> workers_running (retry)"
                for one in ("failed", "cancelled", "consolidation_skipped")
            ),
            *(f"transition pipeline_run: {one} -> consolidation_triggered (retry)" for one in ("failed", "cancelled")),
            *(
                f"transition pipeline_run: {one} -> cancelled (cancel)"
                for one in ("created", "workers_running", "consolidation_triggered", "consolidation_skipped")
            ),
            "transition pipeline_run: consolidating -> cancelled (cancel)",
            *(f"transition partition: {one} -> failed (fail)" for one in ("pending", "in_progress", "fetching_pages")),
            *(f"transition partition: failed -> {one} (retry)" for one in ("pending", "fetching_pages")),
        ),
    ),
    (
        "the scripts of P1 and P2 hold their ops run until it succeeds: see tests/contract/ops",
        (
            "transition ops_run: running -> failed (fail)",
            "transition ops_run: running -> failed (stall)",
            *(f"transition ops_run: {one} -> cancelled (cancel)" for one in ("queued", "running")),
            "transition ops_run: claimed -> cancelled (go_stale)",
        ),
    ),
    (
        "P2 ends connections, which is class 57. Servers that answer with others are in tests/faults and tests/store",
        tuple(f"sqlstate class {one}" for one in _SQLSTATES if one != "57"),
    ),
    (
        "it is a base class, of which others are raised",
        ("error Refused", "error DatabaseError"),
    ),
    (
        "it refuses what a caller gave before anything is written, so no fault changes it: see tests/contract, "
        "tests/surface and tests/http",
        _named(
            "BatchChanged DuplicateTarget IdConflict InUse InvalidArguments InvalidInput InvalidLifecycle "
            "InvalidPayload InvalidSetting NameTaken NotFound NotRetryable NotUnknown PartOfRun PreviewNotReady "
            "RunBusy RunInProgress TokenUsed UnknownState UnknownTask WrongPlace WrongSignature WrongToken"
        ),
    ),
    (
        "it is about workflows, or waiting for one, of a kind that neither the simulation nor P15 has: see "
        "tests/contract/workflows and tests/worker/attempt/workflow",
        _named(
            "BeingUndone ChildFailed CopyRefused HistoryFull MailboxFull ParkSwallowed StepAmbiguous StepTooNew "
            "UndoFailed UndoRefused WaitOver WorkflowDrift WorkflowUndone"
        ),
    ),
    (
        "a client that waits for a job or a run gets it: see tests/client and tests/batch",
        _named("JobFailed JobTimeout ResultExpired RunStuck RunTimeout"),
    ),
    (
        "it is about schemas and releases that do not fit, or moves: see tests/migrations and tests/contract/move",
        _named(
            "DatabaseMoved LifecycleTooOld MoveRefused ReleaseTooOld SchemaDiffers SchemaMissing SchemaTooNew "
            "SchemaTooOld SchemaUnreleased"
        ),
    ),
    (
        "it needs a server, a file or a login of a state that no figure makes often: see tests/store, and "
        "tests/faults/test_database_away.py",
        _named("DatabaseBusy DatabaseForbidden DatabaseInaccessible DatabaseReadOnly MarkerMissing NotADatabase"),
    ),
    (
        "it would be a defect: the database had to refuse what Detent asked of it. P5 counts it as wrong",
        _named("GuardViolation TransitionRace"),
    ),
)
EXEMPT: dict[str, str] = {point: reason for reason, points in _REASONS for point in points}
"""The points that need not be reached, and why."""
REQUIRED = DECLARED - EXEMPT.keys()


def missing_points(covered: Counter[str], tier: Tier) -> dict[str, int]:
    """Return the required points that were not reached often enough, and how often they were; nothing for the tier
    `commit`, which is too small to tell."""
    if tier == "commit":
        return {}
    return {point: count for point, count in _counts(covered).items() if count < TIMES[tier]}


def summary(covered: Counter[str], tier: Tier) -> str:
    """Return a sentence about what the figures have reached."""
    counts = _counts(covered)
    enough = sum(count >= TIMES[tier] for count in counts.values())
    times = "once" if TIMES[tier] == 1 else f"{TIMES[tier]} times"
    others = len([point for point in covered if point not in REQUIRED])
    return (
        f"Coverage: {enough} of {len(counts)} required points were reached at least {times} (transitions, errors, "
        f"SQLSTATEs, faults), and {others} others. {len(EXEMPT)} points are exempt, each for a reason."
    )


def _counts(covered: Counter[str]) -> dict[str, int]:
    found = with_classes(covered)
    return {point: found[point] for point in sorted(REQUIRED)}
