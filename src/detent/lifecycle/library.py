"""The lifecycles of Detent: everything that can happen to a job, an execution, a run and its parts.

A state or a transition is one line here; guards, diagrams, documentation and tests follow from it. The most frequent
transitions come first, which is the order in which the guards check them.
"""

from __future__ import annotations

from detent.lifecycle.definition import Fold, Lifecycle, Transition

__all__ = ["BATCH_RUN", "EXECUTION", "JOB", "LIBRARY", "OPS_RUN", "OWN_NAMES", "PARTITION", "PIPELINE_RUN", "TARGET"]

T = Transition

# Each transition on one line or two; the formatter would split it into many.
# fmt: off

JOB = Lifecycle(
    "job",
    means="One unit of work that a worker executes. Its state follows from its executions and its logged moves.",
    states={
        "pending": "Waits to be claimed: due now, due later, or held back by a limit.",
        "running": "An execution holds it under a lease.",
        "succeeded": "Its effect is committed and its result stored. Nothing moves it any more.",
        "failed": "An execution failed. A task without dead letters rests here; others only pass through.",
        "quarantined": "Failed for good: a dead letter until a client retries or discards it.",
        "cancelled": "Stopped on request, expired before it began, or discarded.",
    },
    initial="pending",
    final=frozenset({"succeeded"}),
    rests=frozenset({"failed", "quarantined", "cancelled"}),
    transitions=(
        T("pending", "running", "claim", "worker", "A worker takes it under a new lease and attempt.", "execution"),
        T("running", "succeeded", "finish", "worker or reaper",
          "The execution is done after its commit. If its worker is dead, the reaper finishes it.",
          "execution"),
        T("running", "pending", "give_back", "worker or reaper",
          "The lease expired before the commit, or the worker released, snoozed, throttled or parked it.", "execution"),
        T("running", "failed", "fail", "worker or reaper",
          "The execution ended in an error, a crash or a time-out.", "execution"),
        T("failed", "pending", "back_off", "worker or reaper",
          "Attempts are left: it is due again after the backoff.", "execution", folded=True),
        T("failed", "quarantined", "give_up", "worker or reaper",
          "The error is fatal, the outcome unknown, or no attempt is left.", "execution", folded=True),
        T("running", "cancelled", "abort", "worker or reaper",
          "A requested cancel was obeyed before the commit.", "execution"),
        T("pending", "cancelled", "cancel", "client", "Cancelled before a worker claimed it."),
        T("pending", "cancelled", "expire", "promoter", "It expired before a worker claimed it."),
        T("failed", "pending", "retry", "client", "A client retries it with fresh attempts."),
        T("quarantined", "pending", "retry", "client", "A client takes it out of the dead letters for another try."),
        T("cancelled", "pending", "retry", "client", "A client retries it in spite of the cancel."),
        T("failed", "pending", "rewind", "client", "A client lets a workflow continue from an earlier step."),
        T("quarantined", "pending", "rewind", "client", "A client lets a workflow continue from an earlier step."),
        T("cancelled", "pending", "rewind", "client", "A client lets a workflow continue from an earlier step."),
        T("quarantined", "cancelled", "discard", "client", "A client gives up the dead letter."),
        T("failed", "cancelled", "discard", "client", "A client gives up the failed job."),
        T("pending", "quarantined", "force", "operator", "Quarantined by an operator, with a reason, before it runs."),
        T("failed", "quarantined", "force", "operator", "Quarantined by an operator, with a reason."),
        T("failed", "succeeded", "force", "operator", "Declared done by an operator, with a reason."),
        T("quarantined", "succeeded", "force", "operator", "Declared done by an operator, with a reason."),
        T("quarantined", "pending", "settle", "client",
          "Its effect was unknown, and a client found out that it had not happened."),
        T("quarantined", "succeeded", "settle", "client",
          "Its effect was unknown, and a client found out that it had happened."),
        T("pending", "succeeded", "complete", "system",
          "A graph, which no worker claims: the last of its nodes has ended, and all have succeeded."),
        T("pending", "failed", "fail_with_node", "system",
          "A graph, which no worker claims: the last of its nodes has ended, and one of them without success."),
    ),
    folds=(
        Fold(("running", "failed", "pending"), "fail_and_back_off", "It failed with attempts left."),
        Fold(("running", "failed", "quarantined"), "fail_and_give_up", "It failed for good."),
    ),
)

EXECUTION = Lifecycle(
    "execution",
    means="One attempt at a job, under a lease. Its row is written once, when the attempt has ended.",
    states={
        "leased": "A worker owns the attempt until the lease expires; the function has not begun.",
        "in_progress": "The function has begun. Whatever it does before its commit may be repeated by another attempt.",
        "committed": "The effect has happened, once. It is never undone or repeated by a later attempt.",
        "done": "Ended after its commit.",
        "aborted": "Ended before a commit: nothing of it stays.",
    },
    initial="leased",
    final=frozenset({"done", "aborted"}),
    transitions=(
        T("leased", "in_progress", "start", "holder", "The first event, commit or finish of the attempt.", "execution"),
        T("in_progress", "committed", "commit", "holder",
          "The effect and this mark are written in one transaction.", "execution"),
        T("committed", "done", "finish", "anyone",
          "The attempt has ended. If its holder is dead, any worker may record it.", "execution"),
        T("in_progress", "aborted", "abort", "holder or reaper",
          "Error, crash, time-out, cancel, release, or the lease expired before the commit.", "execution"),
        T("leased", "aborted", "abort", "holder or reaper",
          "Released before it began, or the lease expired.", "execution"),
    ),
)

BATCH_RUN = Lifecycle(
    "batch_run",
    means="A change to many targets that a person reads before it is applied.",
    states={
        "preview": "Before and after of every target are computed; nothing is changed.",
        "queued": "Accepted, whole or in part; no target is being applied yet.",
        "applying": "Targets are being applied.",
        "applied": "Every selected target is applied.",
        "partial": "Some targets are applied, some failed.",
        "failed": "A critical error, or every target failed.",
        "cancelled": "Stopped on request. Nothing more is applied; what was applied before stays.",
        "rolled_back": "What was applied is back to what it was before. A new run is needed to apply it again.",
    },
    initial="preview",
    final=frozenset({"rolled_back"}),
    rests=frozenset({"applied", "partial", "failed", "cancelled"}),
    transitions=(
        T("preview", "queued", "queue", "client or scheduler", "A client applies the preview."),
        T("queued", "applying", "begin", "worker", "A worker takes up the first of its targets."),
        T("applying", "applied", "complete", "worker", "The last target ended and all of them are applied."),
        T("applying", "partial", "complete_in_part", "worker",
          "The last target ended; some failed with their retries used up."),
        T("applying", "failed", "fail", "worker", "A critical error stopped it, or not one target could be applied."),
        T("preview", "cancelled", "cancel", "client", "A client cancels it; nothing was applied."),
        T("queued", "cancelled", "cancel", "client", "A client cancels it before a target is being applied."),
        T("applying", "cancelled", "cancel", "client",
          "A client has cancelled it, and the targets that were being applied have ended."),
        T("partial", "applying", "retry_failed", "client", "A client retries the failed targets, all or some."),
        T("failed", "applying", "retry_failed", "client", "A client retries the run."),
        T("cancelled", "applying", "retry_failed", "client", "A client retries targets that failed or were not begun."),
        T("applied", "queued", "queue_rest", "client", "A client asks for targets that were left out so far."),
        T("partial", "queued", "queue_rest", "client", "A client asks for targets that were left out so far."),
        T("failed", "queued", "queue_rest", "client", "A client asks for targets that were left out so far."),
        T("cancelled", "queued", "queue_rest", "client", "A client asks for targets that were left out so far."),
        T("failed", "partial", "request_roll_back", "client",
          "A client asks for a rollback of what was applied before a critical error stopped the run."),
        T("cancelled", "partial", "request_roll_back", "client",
          "A client asks for a rollback of what was applied before the run was cancelled."),
        T("applied", "rolled_back", "roll_back", "client", "A requested rollback has reverted every applied target."),
        T("partial", "rolled_back", "roll_back", "client", "A requested rollback has reverted every applied target."),
    ),
)

TARGET = Lifecycle(
    "target",
    means="One thing that a batch run changes. It follows the jobs that apply and revert it, and so does its record.",
    states={
        "preview": "Its before and after are known; it is untouched.",
        "queued": "Selected: its job waits for a worker.",
        "applying": "Its job is running.",
        "applied": "It has the value that the preview showed.",
        "failed": "Its retries are used up, or its job was cancelled.",
        "rolled_back": "It has its former value again.",
    },
    initial="preview",
    final=frozenset({"rolled_back"}),
    rests=frozenset({"applied", "failed"}),
    transitions=(
        T("preview", "queued", "queue", "client", "A client has selected it for applying.", "execution"),
        T("queued", "applying", "begin", "worker", "A worker claims its job.", "execution"),
        T("applying", "applied", "complete", "worker", "The change is made.", "execution"),
        T("applying", "queued", "back_off", "worker or reaper",
          "The attempt failed or was throttled, and attempts are left.", "execution"),
        T("applying", "failed", "fail", "worker or reaper",
          "The last attempt failed, or the error is fatal.", "execution"),
        T("failed", "queued", "retry_failed", "client", "A client retries it.", "execution"),
        T("applied", "rolled_back", "roll_back", "client", "A requested rollback has reverted it.", "execution"),
    ),
    folds=(
        Fold(("queued", "applying", "failed"), "give_up", "Its job was cancelled or quarantined before it began."),
        Fold(("failed", "queued", "applying", "applied"), "declare_done",
             "Its job was declared done by an operator: its effect has happened."),
    ),
)

PIPELINE_RUN = Lifecycle(
    "pipeline_run",
    means="Fan out over partitions, fan in to one consolidation, then advance the watermark.",
    states={
        "created": "The run exists and its time is captured; the plan is being made.",
        "workers_running": "The partitions are being fetched, page by page.",
        "consolidation_skipped": "All partitions ended and some failed: an alert is raised, the watermark stays.",
        "consolidation_triggered": "All partitions ended; the consolidation waits for a worker.",
        "consolidating": "Staged records are consolidated in portions.",
        "completed": "All records are consolidated, and the watermark advanced in the same transaction.",
        "failed": "Ended without success; the watermark stays. It can be retried until another run has completed.",
        "cancelled": "Stopped on request; the watermark stays. It can be retried like a failed run.",
    },
    initial="created",
    final=frozenset({"completed"}),
    rests=frozenset({"consolidation_skipped", "failed", "cancelled"}),
    transitions=(
        T("created", "workers_running", "fan_out", "worker", "The plan is made and its partitions are enqueued."),
        T("workers_running", "consolidation_triggered", "fan_in", "worker",
          "The last partition ended and none failed, or the run was started with force."),
        T("consolidation_triggered", "consolidating", "consolidate", "worker", "A worker takes up the consolidation."),
        T("consolidating", "completed", "complete", "worker",
          "No staged record is left: the watermark advances in this very transaction."),
        T("workers_running", "consolidation_skipped", "skip", "worker",
          "The last partition ended and at least one failed."),
        T("consolidation_skipped", "failed", "fail", "worker", "The alert is raised, and no operator forced the run."),
        T("consolidating", "failed", "fail", "worker or reaper", "The consolidation's attempts are used up."),
        T("consolidation_triggered", "failed", "fail", "worker or reaper",
          "The consolidation's attempts are used up before the first portion."),
        T("created", "failed", "fail", "worker or reaper", "The plan could not be made."),
        T("consolidation_skipped", "consolidation_triggered", "force", "operator",
          "An operator consolidates the fetched records in spite of failed partitions, with a reason."),
        T("failed", "workers_running", "retry", "client",
          "A client asks for the failed partitions again; completed partitions are kept."),
        T("consolidation_skipped", "workers_running", "retry", "client",
          "A client asks for the failed partitions again; completed partitions are kept."),
        T("failed", "consolidation_triggered", "retry", "client",
          "A client asks for the consolidation again; the staged records are kept."),
        T("created", "cancelled", "cancel", "client", "A client cancels it before it has a plan."),
        T("workers_running", "cancelled", "cancel", "client", "A client cancels it; pages stored so far stay staged."),
        T("consolidation_skipped", "cancelled", "cancel", "client", "A client cancels it instead of forcing it."),
        T("consolidation_triggered", "cancelled", "cancel", "client", "A client cancels it before the consolidation."),
        T("consolidating", "cancelled", "cancel", "client",
          "A client cancels it; what is consolidated stays, and the watermark too."),
        T("cancelled", "workers_running", "retry", "client",
          "A client asks for the partitions that were stopped or failed; completed partitions are kept."),
        T("cancelled", "consolidation_triggered", "retry", "client",
          "A client asks for the consolidation again; the staged records are kept."),
    ),
)

PARTITION = Lifecycle(
    "partition",
    means="One part of a pipeline run: a job with an offset. Pages move the offset, not the state.",
    states={
        "pending": "Planned; its job waits for a worker.",
        "in_progress": "A worker has it; no page is stored yet.",
        "fetching_pages": "At least one page is stored; a restart goes on at the next offset.",
        "completed": "Its last page is stored.",
        "failed": "Its attempts are used up; the pages stored so far stay staged.",
    },
    initial="pending",
    final=frozenset({"completed"}),
    rests=frozenset({"failed"}),
    transitions=(
        T("pending", "in_progress", "begin", "worker", "A worker claims its job for the first time."),
        T("in_progress", "fetching_pages", "store_page", "worker", "The first page and its offset are committed."),
        T("fetching_pages", "completed", "complete", "worker", "The last page is committed."),
        T("fetching_pages", "failed", "fail", "worker or reaper", "Its attempts are used up on a later page."),
        T("in_progress", "failed", "fail", "worker or reaper", "Its attempts are used up on the first page."),
        T("pending", "failed", "fail", "worker or reaper", "Its job ended before a worker could begin."),
        T("failed", "pending", "retry", "client", "Its run is retried, and no page of it is stored yet."),
        T("failed", "fetching_pages", "retry", "client", "Its run is retried; it goes on after the last stored page."),
    ),
)

OPS_RUN = Lifecycle(
    "ops_run",
    means="A build, deploy or backup. Its state follows from a job and its execution.",
    states={
        "queued": "Waits for a worker.",
        "claimed": "A worker has claimed it and has not sent an event yet.",
        "running": "The worker appends events.",
        "success": "Finished with success.",
        "failed": "Finished with an error, or without an event for too long while running.",
        "cancelled": "Stopped by a person, or claimed and never begun.",
    },
    initial="queued",
    final=frozenset({"success", "failed", "cancelled"}),
    transitions=(
        T("queued", "claimed", "claim", "worker", "A worker claims the next run."),
        T("claimed", "running", "begin", "worker", "The worker appends its first event."),
        T("running", "success", "succeed", "worker", "The worker finishes it with success."),
        T("running", "failed", "fail", "worker", "The worker finishes it with an error."),
        T("running", "failed", "stall", "reaper", "No sign of life for ten minutes."),
        T("running", "cancelled", "cancel", "worker or client", "The worker obeys a cancel."),
        T("claimed", "cancelled", "go_stale", "reaper", "No event within five minutes of the claim."),
        T("queued", "cancelled", "cancel", "client", "A client cancels it, or it expires, before a worker claims it."),
    ),
)

LIBRARY: dict[str, Lifecycle] = {
    lifecycle.name: lifecycle
    for lifecycle in (JOB, EXECUTION, BATCH_RUN, TARGET, PIPELINE_RUN, PARTITION, OPS_RUN)
}

OWN_NAMES = frozenset(
    {*LIBRARY, "alert", "alert_policy", "database", "limit", "operation", "queue", "recovery", "schedule", "worker"}
)
"""The entities whose transitions Detent itself records. A lifecycle of a user must not have such a name."""
