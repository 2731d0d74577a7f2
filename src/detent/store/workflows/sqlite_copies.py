"""Rewinds and forks of workflows on SQLite."""

from __future__ import annotations

import json
from typing import NamedTuple

from detent.errors import DetentError, GuardViolation, NotFound
from detent.lifecycle.library import JOB
from detent.model.copy_records import Fork, Forked, Rewind, Rewound
from detent.store.jobs.sqlite_moves import SqliteMoves
from detent.store.sqlite.verb_base import Job
from detent.store.workflows.copy_rules import LAST, NAMES_MAX, REPLACEABLE, Why, refused, rewound_to
from detent.store.workflows.sqlite_steps import SqliteSteps

__all__ = ["SqliteCopies"]

_WORKFLOW = """
SELECT job_id, version, generation, seeds, payload, undo_of, undone_by FROM detent_workflow WHERE job_id = ?
"""
# The number of the first record of a step, or of the steps of a scope. A zero follows the slash.
_START = """
SELECT min(seq) FROM detent_workflow_step
 WHERE job_id = ?1 AND generation = ?2 AND (path = ?3 OR (path > ?3 || '/' AND path < ?3 || '0'))
"""
# What belongs to another step, as the end of a wait does, stays with it: its path is that of the step, a tilde and a
# word. Without every letter but the tilde at its end, a path ends with its last tilde.
_KEPT = """s.job_id = :job_id AND s.generation = :generation AND s.seq < :before AND s.kind <> 'undo'
   AND (instr(s.path, '~') = 0 OR s.path LIKE '%~' OR EXISTS (
     SELECT 1 FROM detent_workflow_step m
      WHERE m.job_id = :job_id AND m.generation = :generation AND m.seq < :before
        AND m.path = substr(s.path, 1, length(rtrim(s.path, replace(s.path, '~', ''))) - 1)))"""
_COPY = f"""
INSERT INTO detent_workflow_step
  (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo, began_at, done_at, value,
   error, signal_name, signal_seq)
SELECT :to, :to_generation, s.path, s.seq, s.kind, s.scope, 0, s.fingerprint, s.beside, s.secret,
       s.undo AND NOT :is_fork, s.began_at, s.done_at, coalesce(r.value, s.value),
       CASE WHEN r.value IS NULL THEN s.error END, s.signal_name, s.signal_seq
  FROM detent_workflow_step s
  LEFT JOIN (SELECT json_extract(value, '$[0]') AS path, json_extract(value, '$[1]') AS value
               FROM json_each(:replaced)) r ON r.path = s.path
 WHERE {_KEPT}
"""
# So that a copy of a step that happens once is still one.
_COPY_BEGUN = """
INSERT INTO detent_workflow_step_begun (job_id, generation, path, attempt, begun_at, secret, undo)
SELECT :to, :to_generation, b.path, 0, min(b.begun_at), max(b.secret), max(b.undo) AND NOT :is_fork
  FROM detent_workflow_step_begun b
 CROSS JOIN detent_workflow_step s ON s.job_id = :to AND s.generation = :to_generation AND s.path = b.path
 WHERE b.job_id = :job_id AND b.generation = :generation
 GROUP BY b.path
"""
_OTHERS = """
SELECT count(*) FROM detent_workflow_step WHERE job_id = ? AND generation = ? AND kind <> 'undo'
"""
_AFTER = "SELECT coalesce(max(seq), 0) + 1 FROM detent_workflow_step WHERE job_id = ? AND generation = ?"
_COPY_SIGNALS = """
INSERT INTO detent_workflow_signal (job_id, name, seq, payload, dedupe, actor, reason, sent_at)
SELECT :to, g.name, g.seq, g.payload, g.dedupe, g.actor, g.reason, g.sent_at
  FROM detent_workflow_step s
 CROSS JOIN detent_workflow_signal g ON g.job_id = :job_id AND g.name = s.signal_name AND g.seq = s.signal_seq
 WHERE s.job_id = :to AND s.generation = 1 AND s.signal_seq IS NOT NULL
"""
_TAKEN = """
SELECT g.name, g.payload FROM detent_workflow_step s
 CROSS JOIN detent_workflow_signal g ON g.job_id = s.job_id AND g.name = s.signal_name AND g.seq = s.signal_seq
 WHERE s.job_id = :job_id AND s.generation = :generation AND s.seq >= :before AND s.signal_seq IS NOT NULL
 ORDER BY g.seq
"""
_PUT_BACK = """
INSERT INTO detent_workflow_signal (job_id, name, seq, payload, actor, reason, sent_at) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_REWIND = """
UPDATE detent_workflow
   SET generation = :to_generation, parks = 0, undoing_since = NULL, undo_cause = NULL, undone_by = NULL,
       seeds = :seeds
 WHERE job_id = :job_id AND generation = :generation
"""
_FORK = """
INSERT INTO detent_workflow (job_id, version, root_id, depth, forked_from, seeds, payload)
VALUES (?1, ?2, ?1, 0, ?3, ?4, ?5)
"""
_NO_WAITS = "DELETE FROM detent_workflow_wait WHERE job_id = ?"
_DUE_NOW = "UPDATE detent_job SET due_at = ? WHERE id = ? AND state = 'pending'"
_LEAVE_READY = "DELETE FROM detent_ready WHERE lane_id = ? AND ready_at = ? AND job_id = ?"
_LEAVE_WAITING = "DELETE FROM detent_waiting WHERE job_id = ?"

_LAST_STEPS = """
SELECT path FROM detent_workflow_step
 WHERE job_id = :job_id AND generation = :generation AND instr(path, '~') = 0 ORDER BY seq DESC LIMIT :most
"""
_UNDONE = """
SELECT s.path FROM detent_workflow_step s
 WHERE s.job_id = :job_id AND s.generation = :generation AND s.seq < :before AND EXISTS (
   SELECT 1 FROM detent_workflow_step u
    WHERE u.job_id = :job_id AND u.generation = :generation AND u.path = s.path || '~undo')
 ORDER BY s.seq LIMIT :most
"""
_UNDONE_BY_ANOTHER = """
SELECT path FROM detent_workflow_step
 WHERE job_id = :job_id AND generation = :generation AND seq < :before AND undo ORDER BY seq LIMIT :most
"""
_UNDOES_NOW = "SELECT 1 FROM detent_job WHERE id = ? AND state <> 'succeeded'"
# A group belongs to its parent and generation: the copy of its step could not wait for it.
_SPAWNED = """
SELECT s.path FROM detent_workflow_step s
  LEFT JOIN detent_workflow_step e
    ON e.job_id = s.job_id AND e.generation = s.generation AND e.path = s.path || '~join'
 WHERE s.job_id = :job_id AND s.generation = :generation AND s.kind = 'spawn' AND s.seq < :before
   AND coalesce(e.seq, :before) >= :before
   AND (e.job_id IS NOT NULL OR EXISTS (
     SELECT 1 FROM detent_child_group g
      WHERE g.parent_id = :job_id AND g.generation = :generation AND g.path = s.path))
 ORDER BY s.seq LIMIT :most
"""
_LIVING = """
SELECT g.path FROM detent_child_group g
 WHERE g.parent_id = :job_id AND g.generation = :generation
   AND NOT EXISTS (SELECT 1 FROM detent_workflow_step s
                    WHERE s.job_id = :job_id AND s.generation = :generation AND s.path = g.path AND s.seq < :before)
   AND CASE WHEN g.closed THEN g.succeeded + g.failed + g.dead < g.total
            ELSE EXISTS (SELECT 1 FROM detent_job c
                          WHERE c.parent_id = :job_id AND c.id >= g.first_id AND c.id < g.first_id + g.total
                            AND c.finished_at IS NULL) END
 ORDER BY g.path LIMIT :most
"""
_FOR_GOOD = f"""
SELECT x.path FROM (
  SELECT s.path, s.seq FROM detent_workflow_step s
   WHERE s.job_id = :job_id AND s.generation = :generation AND s.kind = 'transact' AND s.seq >= :before
  UNION
  SELECT b.path, coalesce(s.seq, {LAST}) FROM detent_workflow_step_begun b
    LEFT JOIN detent_workflow_step s ON s.job_id = b.job_id AND s.generation = b.generation AND s.path = b.path
   WHERE b.job_id = :job_id AND b.generation = :generation AND coalesce(s.seq, {LAST}) >= :before) x
 ORDER BY x.seq, x.path LIMIT :most
"""
_KIND = "SELECT kind FROM detent_workflow_step WHERE job_id = ? AND generation = ? AND path = ? AND seq < ?"
_SCOPE = """
SELECT 1 FROM detent_workflow_step
 WHERE job_id = ? AND generation = ? AND kind = 'scope' AND seq < ? AND path IN (SELECT value FROM json_each(?)) LIMIT 1
"""


class _Record(NamedTuple):
    """The workflow whose record is copied."""

    job_id: int
    version: int
    generation: int
    seeds: str | None
    payload: str | None
    undo_of: int | None
    undone_by: int | None


class SqliteCopies(SqliteSteps, SqliteMoves):
    """`workflow_rewind` and `workflow_fork`."""

    def workflow_rewind(self, item: Rewind) -> Rewound | DetentError:
        now = self._now()
        job = self._jobs([item.job_id]).get(item.job_id)
        if job is None:
            return NotFound("job", str(item.job_id))
        if job.state != "pending" and "rewind" not in (way.trigger for way in JOB.between(job.state, "pending")):
            return refused(job.id, "rewound", item.to, "running" if job.state == "running" else "succeeded", ())
        if job.state == "pending" and job.cancel_requested_at is not None:
            # The steps that the next generation repeats would never be undone.
            return refused(job.id, "rewound", item.to, "being cancelled", ())
        found = self._record_of(item.job_id)
        if found is None:
            return refused(item.job_id, "rewound", item.to, "nothing", ())
        before = self._first_number(found, item.to)
        if (why := self._refused(found, before, item.force, is_rewind=True)) is not None:
            return refused(item.job_id, "rewound", item.to, *why)
        assert before is not None
        generation = found.generation + 1
        kept = self._copy(found, before, item.job_id, generation, ())
        ((there,),) = self._db.rows(_OTHERS, (item.job_id, found.generation))
        at = max(now, job.last_at)
        signals = self._put_back(found, before, item, at)
        self._db.change(_NO_WAITS, (job.id,))
        seeds = self._seeds(found, item.seed, job.id, generation)
        where = {"job_id": job.id, "generation": found.generation, "to_generation": generation, "seeds": seeds}
        self._expect(self._db.change(_REWIND, where), 1, [job.id], job.state)
        if job.state == "pending":
            self._leave_queue(job)
            self._log(job, "pending", "rewind", item.actor, item.reason, now, rewound_to(item))
            self._expect(self._db.change(_DUE_NOW, (at, job.id)), 1, [job.id], "pending")
            self._enter_queue([(self._lane_of(job), at, job.id, 0, job.expires_at)], at)
        else:
            self._bring_back(job, "rewind", item.actor, item.reason, now, rewound_to(item))
        return Rewound(item.job_id, generation, kept, there - kept, signals)

    def workflow_fork(self, item: Fork) -> Forked | DetentError:
        now = self._now()
        jobs = self._jobs([item.job_id, item.new_id])
        if item.job_id not in jobs:
            return NotFound("job", str(item.job_id))
        found = self._record_of(item.job_id)
        if found is None:
            return refused(item.job_id, "forked", item.at, "nothing", ())
        before = LAST if item.at is None else self._first_number(found, item.at)
        why = self._refused(found, before, item.force, is_rewind=False)
        if why is None and before is not None:
            why = self._not_replaced(found, before, item)
        if why is not None or before is None:
            return refused(item.job_id, "forked", item.at, *(why or ("no step", [])))
        job = jobs.get(item.new_id)
        if job is None or job.state != "pending" or job.attempt != 0:
            raise GuardViolation(self._database, f"job {item.new_id}: only a job that has not begun becomes a fork")
        # It leaves the lane of jobs that have not begun, and enters that of its version.
        self._leave_queue(job)
        steps = self._copy(found, before, job.id, 1, item.replaced, is_fork=True)
        seeds = self._seeds(found, item.seed, job.id, 1)
        payload = found.payload if item.keeps_payload else None
        self._db.change(_FORK, (job.id, found.version, item.job_id, seeds, payload))
        self._db.change(_COPY_SIGNALS, {"to": job.id, "job_id": item.job_id})
        self._log(job, "pending", "fork", item.actor, item.reason, now, item.metadata)
        self._enter_queue([(self._lane_of(job), job.due_at, job.id, 0, job.expires_at)], max(now, job.last_at))
        return Forked(job.id, item.job_id, steps)

    def _record_of(self, job_id: int) -> _Record | None:
        return next((_Record._make(row) for row in self._db.rows(_WORKFLOW, (job_id,))), None)

    def _first_number(self, found: _Record, path: str) -> int | None:
        ((start,),) = self._db.rows(_START, (found.job_id, found.generation, path))
        return None if start is None else int(start)

    def _refused(
        self, found: _Record, before: int | None, force: bool, *, is_rewind: bool
    ) -> tuple[Why, list[str]] | None:
        """Return why the record is not divided before this number (None: no such step), and because of which steps."""
        where = {"job_id": found.job_id, "generation": found.generation, "before": before, "most": NAMES_MAX}
        if found.undo_of is not None:
            return "undo", []
        if is_rewind and self._db.rows(_UNDOES_NOW, (found.undone_by,)):
            return "being undone", [str(found.undone_by)]
        if before is None:
            del where["before"]
            return "no step", [row[0] for row in self._db.rows(_LAST_STEPS, where)]
        undone = _UNDONE if found.undone_by is None else _UNDONE_BY_ANOTHER
        looks: list[tuple[Why, str]] = [("undone", undone), ("spawned", _SPAWNED)]
        # A fork leaves the children of the other job alone; a rewind would spawn others beside them.
        looks += [("living", _LIVING)] if is_rewind else []
        looks += [] if force else [("force", _FOR_GOOD)]
        for why, statement in looks:
            if names := [row[0] for row in self._db.rows(statement, where)]:
                return why, names
        return None

    def _not_replaced(self, found: _Record, before: int, item: Fork) -> tuple[Why, list[str]] | None:
        for path, _ in item.replaced:
            kinds = self._db.rows(_KIND, (found.job_id, found.generation, path, before))
            if not kinds:
                return "not copied", [path]
            if kinds[0][0] not in REPLACEABLE or "~" in path:
                return "no value", [path]
            names = path.split("/")
            outer = json.dumps(["/".join(names[:n]) for n in range(1, len(names))])
            if self._db.rows(_SCOPE, (found.job_id, found.generation, before, outer)):
                return "in scope", [path]
        return None

    def _copy(
        self,
        found: _Record,
        before: int,
        to: int,
        generation: int,
        replaced: tuple[tuple[str, str], ...],
        *,
        is_fork: bool = False,
    ) -> int:
        """Copy the steps before this number; return how many. What a fork has copied is for the other job to undo."""
        places = {"job_id": found.job_id, "generation": found.generation, "to": to, "to_generation": generation}
        more = {"before": before, "is_fork": int(is_fork), "replaced": json.dumps(replaced)}
        copied = self._db.change(_COPY, {**places, **more})
        self._db.change(_COPY_BEGUN, {**places, "is_fork": int(is_fork)})
        return copied

    def _put_back(self, found: _Record, before: int, item: Rewind, at: int) -> int:
        """Put the signals that were taken by repeated steps into the mailbox again, in their order; return how many."""
        where = {"job_id": found.job_id, "generation": found.generation, "before": before}
        taken = self._db.rows(_TAKEN, where)
        first = self.ids_reserve(len(taken)) if taken else 0
        for n, (name, payload) in enumerate(taken):
            self._db.change(_PUT_BACK, (found.job_id, name, first + n, payload, item.actor, item.reason, at))
        return len(taken)

    def _leave_queue(self, job: Job) -> None:
        if not self._db.change(_LEAVE_WAITING, (job.id,)):
            lane = self._lane(self._lane_of(job))
            self._in_place(job, self._db.change(_LEAVE_READY, (lane, job.due_at, job.id)))

    def _seeds(self, found: _Record, seed: str, to: int, generation: int) -> str:
        """Return from what chance follows while the copies are replayed: one line more for the record of which they are
        copies, with the number after the last of them."""
        ((after,),) = self._db.rows(_AFTER, (to, generation))
        return f"{found.seeds or ''}{after} {seed}/{found.generation}\n"
