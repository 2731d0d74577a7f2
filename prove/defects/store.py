"""Defects of the store that the simulation and the exhaustive model must find."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import every_order, kills, people, simulation

__all__ = ["KILLED", "ORDERS", "SIMULATED"]

_ENDINGS = "store/jobs/sqlite_endings.py"
_RULES = "store/jobs/sqlite_ending_rules.py"
_CANCELS = "store/jobs/sqlite_cancels.py"
_MOVES = "store/jobs/sqlite_moves.py"
_CLAIM = "store/jobs/sqlite_claim.py"
_BASE = "store/sqlite/verb_base.py"
_GROUP = "store/sqlite/driver/group_commit.py"
_EXECUTION_CHECK = (
    "   AND NOT EXISTS (SELECT 1 FROM detent_execution e WHERE e.job_id = j.id AND e.committed_at IS NOT NULL)\n"
)

KILLED = (
    Defect(
        "job without its key",
        "store",
        "a key is written in another transaction than its job",
        (
            Edit(
                "store/sqlite/driver/executor.py",
                "return self._cursor.executemany(sql, params).rowcount",
                'self._cursor.execute("COMMIT")\n'
                '        self._cursor.execute("BEGIN IMMEDIATE")\n'
                "        return self._cursor.executemany(sql, params).rowcount",
            ),
        ),
        kills("sqlite", "send under a key"),
    ),
)
"""Found by kills at statements."""

SIMULATED = (
    Defect(
        "fence",
        "store",
        "an attempt may commit and finish although another one is current",
        (
            Edit(_ENDINGS, "if found is not None and found[0] == attempt and found[1] > now:", "if found is not None:"),
            Edit(
                _ENDINGS,
                "AND attempt = :attempt AND state = 'running' AND committed_at IS NULL\n   AND (SELECT",
                "AND state = 'running' AND committed_at IS NULL\n   AND (SELECT",
            ),
            Edit(_ENDINGS, "AND state = 'running' AND attempt = coalesce(:attempt, attempt)", "AND state = 'running'"),
        ),
        simulation(),
    ),
    Defect(
        "lease",
        "store",
        "an attempt may commit and record steps although its lease has expired",
        (
            Edit(_ENDINGS, "and found[0] == attempt and found[1] > now:", "and found[0] == attempt:"),
            Edit(
                _ENDINGS,
                "FROM detent_lease l WHERE l.id = lease_id) > :clock",
                "FROM detent_lease l WHERE l.id = lease_id) > 0",
            ),
            Edit(_ENDINGS, 'return LeaseLost(holding.job_id, holding.attempt, "its lease has expired")', "return None"),
            Edit(_BASE, "if job.lease_expires_at is None or job.lease_expires_at <= now:", "if False:"),
        ),
        simulation(),
    ),
    Defect(
        "one commit",
        "store",
        "a job may be committed twice: neither the index nor a check above it refuses that",
        (
            Edit(
                "store/sqlite/schema/0001_tables.sql",
                "CREATE UNIQUE INDEX detent_execution_one_commit ON detent_execution (job_id) "
                "WHERE committed_at IS NOT NULL;",
                "",
            ),
            Edit(
                _ENDINGS, "j.state = 'running' AND j.committed_at IS NULL\n" + _EXECUTION_CHECK, "j.state = 'running'\n"
            ),
            Edit(
                _ENDINGS,
                "AND state = 'running' AND committed_at IS NULL\n   AND (SELECT",
                "AND state = 'running'\n   AND (SELECT",
            ),
            Edit(
                _ENDINGS, "committed_at = {_AT}\n WHERE id", "committed_at = coalesce(committed_at, {_AT})\n WHERE id"
            ),
            Edit(_GROUP, "return job_id in self._unmarked", "return False"),
        ),
        simulation(),
    ),
    Defect(
        "reaper",
        "store",
        "the reaper takes leases away that have not expired: neither what finds them nor what acts on them asks",
        (
            Edit(_ENDINGS, "WHERE expires_at <= ? AND NOT", "WHERE ? IS NOT NULL AND NOT"),
            Edit(_ENDINGS, "WHERE l.id = ? AND l.expires_at <= ?", "WHERE l.id = ? AND ? IS NOT NULL"),
        ),
        simulation(),
    ),
    Defect(
        "clock",
        "store",
        "a move may be earlier than the end of the attempt before it",
        (Edit(_BASE, "CASE WHEN j.state = 'pending' AND j.ended > 0", "CASE WHEN j.ended < 0"),),
        simulation(),
    ),
    Defect(
        "forgotten key",
        "store",
        "a job is enqueued without its key",
        (Edit("store/jobs/sqlite_enqueue.py", "        if keys:\n", "        if False:\n"),),
        simulation(),
    ),
    Defect(
        "repeated at any price",
        "store",
        "a job that must not be repeated is pending again after a crash",
        (Edit(_RULES, "not job.idempotent and job.started_at is not None):", "False):"),),
        simulation(),
    ),
    Defect(
        "half an ending",
        "store",
        "the row of a job that is due again does not enter the queue",
        (
            Edit(
                _ENDINGS,
                "self._enter_queue([(self._lane_of(job), due_at, job.id, 0, expires_at)], at)",
                "pass",
            ),
        ),
        simulation(),
    ),
)
"""Found by schedules of the simulation."""

ORDERS = (
    Defect(
        "commit forgotten by the reaper",
        "store",
        "the reaper gives a job back whose attempt has committed",
        (
            Edit(_ENDINGS, "committed = [job.id for job in jobs if job.committed_at is not None]", "committed = []"),
            Edit(_ENDINGS, "expired = [job for job in jobs if job.committed_at is None]", "expired = list(jobs)"),
        ),
        every_order(),
    ),
    Defect(
        "claimed and still ready",
        "store",
        "a claim leaves the row in the queue",
        (Edit(_CLAIM, "self._db.change_many(_TAKE_HEAD, [(lane, *end, now) for lane, end in ends.items()])", "pass"),),
        every_order(),
    ),
    Defect(
        "expired and claimed",
        "store",
        "a claim takes jobs that have expired",
        (
            Edit(
                _CLAIM,
                "WHERE lane_id = ? AND (expires_at IS NULL OR expires_at > ?)\n   ORDER BY",
                "WHERE lane_id = ? AND (expires_at IS NULL OR ? > 0)\n   ORDER BY",
            ),
            Edit(
                _CLAIM,
                "AND (ready_at, job_id) <= (?, ?) AND (expires_at IS NULL OR expires_at > ?)",
                "AND (ready_at, job_id) <= (?, ?) AND (expires_at IS NULL OR ? > 0)",
            ),
        ),
        every_order(),
    ),
    Defect(
        "abort after the commit",
        "store",
        "an attempt that has committed may be reported as failed",
        (Edit(_ENDINGS, "if _committed_by(job, item.attempt):", "if False:"),),
        every_order(),
    ),
    Defect(
        "one free expiry too many",
        "store",
        "one more attempt may expire without being counted",
        (Edit(_ENDINGS, "free = spared.get(job.id, 0) < free_max", "free = spared.get(job.id, 0) <= free_max"),),
        every_order(),
    ),
    Defect(
        "one attempt too many",
        "store",
        "a job is tried again when its attempts are used up",
        (
            Edit(
                _RULES,
                "elif (item.fatal or used >= job.attempts_max) and not",
                "elif (item.fatal or used > job.attempts_max) and not",
            ),
        ),
        every_order(),
    ),
    Defect(
        "no backoff",
        "store",
        "a job that failed is due at once",
        (Edit(_RULES, "due_at = at + micros(item.delay) if", "due_at = at if"),),
        every_order(),
    ),
    Defect(
        "everything counts",
        "store",
        "an attempt that was given back is on record as used up",
        (Edit(_ENDINGS, "spared == job.spared, suspect", "True, suspect"),),
        every_order(),
    ),
    Defect(
        "cancel beside a worker",
        "store",
        "a running job is cancelled at once",
        (Edit(_CANCELS, 'if state == "pending" and not (asked.undo', "if not (asked.undo"),),
        every_order(),
    ),
    Defect(
        "cancel after the commit",
        "store",
        "a committed job may be cancelled",
        (Edit(_CANCELS, "if job.committed_at is not None:", "if False:"),),
        every_order(),
    ),
    Defect(
        "cancel without its line",
        "store",
        "a requested cancel is not on record",
        (
            Edit(
                _CANCELS,
                'at = self._log(job, job.state, "request_cancel", asked.actor, asked.reason, now, asked.metadata)',
                "at = max(now, job.last_at)",
            ),
        ),
        every_order(),
    ),
    Defect(
        "recovery without an end",
        "store",
        "a recovered job stays as it is",
        (Edit(_ENDINGS, "self._succeed(dict.fromkeys(running), None, None, now)", "pass"),),
        every_order(),
    ),
    Defect(
        "promoted twice",
        "store",
        "a promoted job keeps its row among those that wait",
        (
            Edit(
                "store/jobs/sqlite_upkeep.py",
                "self._db.change(_NOT_WAITING, (ids_json(row[2] for row in due),))",
                "pass",
            ),
        ),
        every_order(),
    ),
    Defect(
        "paused and claimed",
        "store",
        "a claim does not see that a queue is paused",
        (Edit("store/jobs/sqlite_moves.py", "self._db.change(_SET_QUEUE, (queue, now, actor, reason))", "pass"),),
        every_order(),
    ),
    Defect(
        "start of a stranger",
        "store",
        "an attempt starts a job that it does not hold",
        (Edit(_CLAIM, "if job is not None and lost is None:", "if job is not None:"),),
        every_order(),
    ),
    Defect(
        "dead and alive",
        "store",
        "a job that was retried stays among the dead letters",
        (
            Edit(
                _MOVES,
                "        self._db.change(_NOT_DEAD, (job.id,))\n        late",
                "        late",
            ),
        ),
        people(),
    ),
    Defect(
        "any move",
        "store",
        "a person may move a job from any state to any other",
        (
            Edit(
                _MOVES,
                "if trigger not in (transition.trigger for transition in",
                "if None in (transition.trigger for transition in",
            ),
        ),
        people(),
    ),
    Defect(
        "settled without being unknown",
        "store",
        "a person may settle the effect of a job of which it is known",
        (Edit(_MOVES, 'if why != "unknown":', "if False:"),),
        people(),
    ),
)
"""Found by every order of moves."""
