"""The steps of workflows on SQLite: what is on record, and recording more.

Steps of many workflows are recorded with few statements. The path of a step is unique within a generation; no other
connection writes meanwhile, so what was read before the insert still holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from detent.errors import DetentError, LeaseLost
from detent.model.clock import from_micros
from detent.model.workflow_records import NewStep, StepBegun, StepRecorded, StepRow, WorkflowHistory
from detent.store.jobs.sqlite_endings import SqliteEndings
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import Insert, ids_json, micros
from detent.store.workflows.rules import UNDONE

__all__ = ["STEP_COLUMNS", "Held", "SqliteSteps", "step_row"]

STEP_COLUMNS = ", ".join(StepRow.__struct_fields__)
_AT = """max(:now, j.leased_at, coalesce(j.started_at, 0), coalesce(j.cancel_requested_at, 0))"""
_HELD = f"""
SELECT j.id, j.attempt, {_AT}, w.version, w.generation
  FROM json_each(:ids) asked CROSS JOIN detent_job j ON j.id = asked.value
 CROSS JOIN detent_lease l ON l.id = j.lease_id LEFT JOIN detent_workflow w ON w.job_id = j.id
 WHERE j.state = 'running' AND j.committed_at IS NULL AND l.expires_at > :now
"""
# The ordinary case, one step of a workflow that has begun: one statement checks the holder and records it.
_RECORD_ONE = f"""
INSERT INTO detent_workflow_step
  (job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo, began_at, done_at, value,
   error)
SELECT j.id, :generation, :path, :seq, :kind, :scope, j.attempt, :fingerprint, :beside, :secret, :undo,
       {_AT} - :ran_for, {_AT}, :value, :error
  FROM detent_job j CROSS JOIN detent_lease l ON l.id = j.lease_id CROSS JOIN detent_workflow w ON w.job_id = j.id
 WHERE j.id = :job_id AND j.attempt = :attempt AND j.state = 'running' AND j.committed_at IS NULL
   AND l.expires_at > :now AND w.version > 0 AND w.generation = :generation
   AND NOT EXISTS (SELECT 1 FROM detent_workflow_step s
                    WHERE s.job_id = :job_id AND s.generation = :generation AND s.path = :path)
RETURNING done_at
"""
_RECORD = Insert(
    "detent_workflow_step",
    "job_id, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo, began_at, done_at, value, "
    "error, signal_name, signal_seq",
)
_RECORDED = """
SELECT s.job_id, s.generation, s.path, s.kind, s.value, s.error, s.done_at
  FROM json_each(?) asked CROSS JOIN detent_workflow_step s
    ON s.job_id = json_extract(asked.value, '$[0]') AND s.generation = json_extract(asked.value, '$[1]')
   AND s.path = json_extract(asked.value, '$[2]')
"""
# The tree that a workflow belongs to is that of its parent.
_BEGIN = """
INSERT INTO detent_workflow (job_id, version, generation, root_id, depth)
SELECT j.id, :version, :generation, coalesce(p.root_id, j.parent_id, j.id),
       CASE WHEN j.parent_id IS NULL THEN 0 ELSE coalesce(p.depth, 0) + 1 END
  FROM detent_job j LEFT JOIN detent_workflow p ON p.job_id = j.parent_id WHERE j.id = :job_id
"""
_BEGIN_VERSION = "UPDATE detent_workflow SET version = :version WHERE job_id = :job_id AND version = 0"
_BEGUN_BEFORE = """
SELECT min(attempt), count(*), coalesce(max(attempt = ?4), 0) FROM detent_workflow_step_begun
 WHERE job_id = ?1 AND generation = ?2 AND path = ?3
"""
_BEGIN_STEP = """
INSERT INTO detent_workflow_step_begun (job_id, generation, path, attempt, begun_at, secret, undo)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_OF_JOB = """
SELECT version, generation, parks, undoing_since, depth, payload, undo_cause, forked_from, undo_of, undone_by, seeds
  FROM detent_workflow WHERE job_id = ?
"""
_SUSPECT = """
SELECT EXISTS (
  SELECT 1 FROM detent_execution INDEXED BY detent_execution_unlucky
   WHERE job_id = ? AND (outcome = 'crashed' OR outcome = 'expired' OR suspect) AND (outcome = 'crashed' OR suspect))
"""
_STEPS = f"""
SELECT {STEP_COLUMNS} FROM detent_workflow_step
 WHERE job_id = ? AND generation = ? AND path > ? ORDER BY path LIMIT ?
"""
_BEGUN = """
SELECT b.path, min(b.attempt), count(*) FROM detent_workflow_step_begun b
 WHERE b.job_id = ?1 AND b.generation = ?2 AND NOT EXISTS (
   SELECT 1 FROM detent_workflow_step s WHERE s.job_id = ?1 AND s.generation = ?2 AND s.path = b.path)
 GROUP BY b.path ORDER BY b.path
"""
_WAITS_NO_MORE = "DELETE FROM detent_workflow_wait WHERE job_id = ?"

_LAST_LETTER = "\U0010ffff"
_AFTER_JUMP = 16
"""How many rows are read after a finished scope was passed over: more each time, until the next one."""

Place = tuple[int, int, str]
"""A job, a generation and a path."""


class Held(NamedTuple):
    """A job whose attempt may write: the time of what it writes, and its workflow if that has begun."""

    job_id: int
    attempt: int
    at: int
    version: int | None
    generation: int | None


class SqliteSteps(SqliteEndings):
    """`workflow_load`, `step_begin` and `step_record`."""

    def workflow_load(
        self, job_id: int, attempt: int, *, after: str | None = None, limit: int = 1000
    ) -> WorkflowHistory | DetentError:
        now = self._now()
        job = self._jobs([job_id]).get(job_id)
        lost = self._lost(job, job_id, attempt, now)
        if job is None or lost is not None:
            return lost or LeaseLost(job_id, attempt, "no such job")
        self._db.change(_WAITS_NO_MORE, (job_id,))
        cancelled = job.cancel_requested_at is not None
        at = from_micros(max(now, job.last_at))
        ((suspect,),) = self._db.rows(_SUSPECT, (job_id,))
        found = self._db.rows(_OF_JOB, (job_id,))
        if not found:
            return WorkflowHistory(None, 1, at, [], None, cancelled=cancelled, suspect=bool(suspect))
        version, generation, parks, undoing_since, depth, payload, cause, forked_from, *more = found[0]
        undo_of, undone_by, seeds = more
        undoing = undoing_since is not None
        if undoing:
            steps, following = self._steps_to_undo((job_id, undo_of), generation, after or "", limit)
        else:
            steps, following = self._steps(job_id, generation, after or "", limit)
        begun = self._db.rows(_BEGUN, (job_id, generation)) if after is None else []
        return WorkflowHistory(
            version or None,
            generation,
            at,
            steps,
            following,
            tuple(StepBegun(*row) for row in begun),
            cancelled,
            parks,
            undoing,
            depth,
            payload,
            cause,
            forked_from,
            seeds,
            bool(suspect),
            undo_of,
            undone_by is not None or (undoing and bool(self._recorded([(job_id, generation, UNDONE)]))),
        )

    def workflow_load_many(
        self, items: Sequence[tuple[int, int]], limit: int = 1000
    ) -> list[WorkflowHistory | DetentError]:
        return [self.workflow_load(job_id, attempt, limit=limit) for job_id, attempt in items]

    def _steps(self, job_id: int, generation: int, after: str, limit: int) -> tuple[list[StepRow], str | None]:
        """Return steps in the order of their paths, without those inside recorded scopes, and where to continue. The
        path of a step begins with that of its scope, so those inside of it follow one another and are passed over."""
        steps: list[StepRow] = []
        portion = limit + 1
        open_scope = ""
        while True:
            read = self._db.rows(_STEPS, (job_id, generation, after, portion))
            jumped = False
            for row in read:
                scope = str(row[5])
                if scope != open_scope:
                    inside = self._recorded_scope(job_id, generation, scope)
                    # Only forward: a damaged row may name a scope that its path is not in.
                    if inside is not None and str(row[2]).startswith(f"{inside}/"):
                        after, portion, jumped = f"{inside}/{_LAST_LETTER}", _AFTER_JUMP, True
                        break
                    open_scope = scope
                if len(steps) == limit:
                    return steps, steps[-1].path
                after = str(row[2])
                steps.append(step_row(row))
            if jumped:
                continue
            if len(read) < portion:
                return steps, None
            portion = min(portion * 2, limit + 1)

    def _steps_to_undo(
        self, ids: Sequence[int | None], generation: int, after: str, limit: int
    ) -> tuple[list[StepRow], str | None]:
        """Return all steps of a workflow, and of the one that it undoes, in the order of their paths."""
        read = [self._db.rows(_STEPS, (job_id, generation, after, limit + 1)) for job_id in ids if job_id is not None]
        rows = sorted((step_row(row) for rows in read for row in rows), key=lambda row: row.path)
        return rows[:limit], rows[limit - 1].path if len(rows) > limit else None

    def _recorded_scope(self, job_id: int, generation: int, scope: str) -> str | None:
        """Return the outermost scope on record that this one is in, or is."""
        if not scope:
            return None
        names = scope.split("/")
        places = [(job_id, generation, "/".join(names[:n])) for n in range(1, len(names) + 1)]
        return min((step.path for step in self._recorded(places).values() if step.kind == "scope"), default=None)

    def step_begin(self, items: Sequence[NewStep]) -> list[StepBegun | DetentError]:
        now = self._now()
        held = self._held((item.job_id for item in items), now)
        answers: list[StepBegun | DetentError] = []
        for item in items:
            holder = held.get(item.job_id)
            if holder is None or holder.attempt != item.attempt:
                answers.append(self._why_not(item.job_id, item.attempt, now))
                continue
            held[item.job_id] = self._begun(holder, item.version, item.generation)
            place = (item.job_id, item.generation, item.path)
            ((first, tries, is_known),) = self._db.rows(_BEGUN_BEFORE, (*place, item.attempt))
            if not is_known:
                flags = (int(item.secret), int(item.undo))
                self._db.change(_BEGIN_STEP, (*place, item.attempt, holder.at, *flags))
            answers.append(StepBegun(item.path, item.attempt if first is None else first, tries + (not is_known)))
        return answers

    def step_record(self, items: Sequence[NewStep]) -> list[StepRecorded | DetentError]:
        now = self._now()
        if len(items) == 1 and (recorded := self._record_one(items[0], now)) is not None:
            return [recorded]
        return self._record(items, self._held((item.job_id for item in items), now), now)

    def _record_one(self, item: NewStep, now: int) -> StepRecorded | None:
        """Record a step of a workflow that has begun; None if it is on record, or if it may not be recorded."""
        values = {
            "now": now,
            "job_id": item.job_id,
            "attempt": item.attempt,
            "generation": item.generation,
            "path": item.path,
            "seq": item.seq,
            "kind": item.kind,
            "scope": item.scope,
            "fingerprint": item.fingerprint,
            "beside": int(item.beside),
            "secret": int(item.secret),
            "undo": int(item.undo),
            "ran_for": micros(item.ran_for),
            "value": item.value,
            "error": item.error,
        }
        for (done_at,) in self._db.rows(_RECORD_ONE, values):
            return StepRecorded(item.path, True, item.kind, item.value, item.error, from_micros(done_at))
        return None

    def _record(
        self, items: Sequence[NewStep], held: dict[int, Held], now: int, signal: tuple[str, int] | None = None
    ) -> list[StepRecorded | DetentError]:
        """Record steps of holders. `signal` is what the only step takes."""
        asked = [(item.job_id, item.generation, item.path) for item in items]
        known = self._recorded(asked)
        answers: list[StepRecorded | DetentError] = []
        rows: list[Row] = []
        for item, place in zip(items, asked, strict=True):
            holder = held.get(item.job_id)
            if holder is None or holder.attempt != item.attempt:
                answers.append(self._why_not(item.job_id, item.attempt, now))
                continue
            if (recorded := known.get(place)) is not None:
                answers.append(recorded)
                continue
            if not holder.version or holder.generation != item.generation:
                holder = held[item.job_id] = self._begun(holder, item.version, item.generation)
                if holder.generation != item.generation:
                    why = f"generation {holder.generation} is current, not {item.generation}"
                    answers.append(LeaseLost(item.job_id, item.attempt, why))
                    continue
            rows.append(
                (
                    *(*place, item.seq, item.kind, item.scope, item.attempt, item.fingerprint, int(item.beside)),
                    *(int(item.secret), int(item.undo), holder.at - micros(item.ran_for), holder.at, item.value),
                    *(item.error, *(signal or (None, None))),
                )
            )
            done_at = from_micros(holder.at)
            made = StepRecorded(item.path, True, item.kind, item.value, item.error, done_at)
            known[place] = replace(made, created=False)
            answers.append(made)
        if rows:
            _RECORD.run(self._db, rows)
        return answers

    def _recorded(self, places: Sequence[Place]) -> dict[Place, StepRecorded]:
        """Return those of these steps that are on record."""
        rows = self._db.rows(_RECORDED, (json.dumps(list(dict.fromkeys(places))),))
        return {
            (job_id, generation, path): StepRecorded(path, False, kind, value, error, from_micros(done_at))
            for job_id, generation, path, kind, value, error, done_at in rows
        }

    def _held(self, ids: Iterable[int], now: int) -> dict[int, Held]:
        """Return those of these jobs that are held by some attempt and not committed."""
        rows = self._db.rows(_HELD, {"ids": ids_json(dict.fromkeys(ids)), "now": now})
        return {row[0]: Held._make(row) for row in rows}

    def _begun(self, holder: Held, version: int, generation: int) -> Held:
        """Record that a workflow has begun, unless that is on record."""
        if holder.version:
            return holder
        values = {"job_id": holder.job_id, "version": version, "generation": generation}
        if holder.version is None:
            self._db.change(_BEGIN, values)
            return holder._replace(version=version, generation=generation)
        self._db.change(_BEGIN_VERSION, values)
        return holder._replace(version=version)

    def _why_not(self, job_id: int, attempt: int, now: int) -> LeaseLost:
        """Return why an attempt that was not found held may not write."""
        lost = self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, now)
        return lost or LeaseLost(job_id, attempt, "it has committed")


def step_row(row: Row) -> StepRow:
    """Return a step as it was read, with the columns `STEP_COLUMNS`."""
    job_id, generation, path, seq, kind, scope, attempt, fingerprint, *rest = row
    beside, secret, undo, began_at, done_at, value, error, signal_name, signal_seq = rest
    return StepRow(
        job_id=job_id,
        generation=generation,
        path=path,
        seq=seq,
        kind=kind,
        scope=scope,
        attempt=attempt,
        fingerprint=fingerprint,
        beside=bool(beside),
        secret=bool(secret),
        undo=bool(undo),
        began_at=from_micros(began_at),
        done_at=from_micros(done_at),
        value=value,
        error=error,
        signal_name=signal_name,
        signal_seq=signal_seq,
    )
