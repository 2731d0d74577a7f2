"""Looking: rows of the record, and the past folded out of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import UnknownState
from detent.lifecycle.library import JOB
from detent.model.clock import from_micros, to_micros
from detent.model.records import Count, EventRow, ExecutionRow, JobRow, TransitionRow
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verbs.base import ids_json
from detent.store.sqlite.verbs.searching import JOB_COLUMNS, SearchVerbs, fields_named

__all__ = ["LookingVerbs"]

_JOB_FIELDS = JobRow.__struct_fields__
_EXECUTION_FIELDS = ExecutionRow.__struct_fields__
_EVENT_FIELDS = EventRow.__struct_fields__
_LINE_FIELDS = TransitionRow.__struct_fields__

_GET = f"SELECT {JOB_COLUMNS} FROM json_each(?) asked JOIN detent_job j ON j.id = asked.value"
_EXECUTIONS = f"SELECT {', '.join(_EXECUTION_FIELDS)} FROM detent_executions WHERE job_id = ? ORDER BY attempt"
_EVENTS = f"""
SELECT {", ".join(_EVENT_FIELDS)} FROM detent_event WHERE job_id = ? AND seq > ? ORDER BY seq LIMIT ?
"""
_LINE = f"SELECT {', '.join(_LINE_FIELDS)} FROM detent_transition"
_OF_TARGET = f"""
SELECT {", ".join(_LINE_FIELDS)}
  FROM detent_target_transition WHERE run_id = ? AND target_n = ? ORDER BY attempt, rank, n
"""
# A job's lines and its executions' carry its number; an index finds them by it.
_OF_JOB = f"{_LINE} WHERE job_id = :job AND entity = :entity AND entity_id = :id ORDER BY attempt, rank, n"
_OF_ENTITY = f"{_LINE} WHERE job_id IS NULL AND entity = :entity AND entity_id = :id ORDER BY attempt, rank, n"
_COUNTS = "SELECT tenant, queue, state, sum(jobs) FROM detent_job_counts GROUP BY tenant, queue, state ORDER BY 1, 2, 3"
_COUNTS_AS_OF = """
SELECT j.tenant, j.queue, then_.to_state, count(*)
  FROM (SELECT job_id, to_state,
               row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC, rank DESC, n DESC) AS back
          FROM detent_transition WHERE entity = 'job' AND at <= ?) then_
  JOIN detent_job j ON j.id = then_.job_id
 WHERE then_.back = 1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


class LookingVerbs(SearchVerbs):
    """The viewer's verbs."""

    def job_get(self, ids: Sequence[int]) -> list[JobRow | None]:
        """In the order asked; None for what is not there."""
        found = {row[0]: self._job(row) for row in self._db.rows(_GET, (ids_json(dict.fromkeys(ids)),))}
        return [found.get(job_id) for job_id in ids]

    def job_executions(self, job_id: int) -> list[ExecutionRow]:
        """Out of the view `executions`."""
        rows = self._db.rows(_EXECUTIONS, (job_id,))
        return [ExecutionRow(**fields_named(_EXECUTION_FIELDS, row)) for row in rows]

    def job_events(self, job_id: int, after_seq: int = 0, limit: int = 1000) -> list[EventRow]:
        """In the order of their numbers."""
        rows = self._db.rows(_EVENTS, (job_id, after_seq, limit))
        return [EventRow(**fields_named(_EVENT_FIELDS, row)) for row in rows]

    def transitions(self, entity: str, entity_id: str) -> list[TransitionRow]:
        """Out of the view `transition`."""
        return [TransitionRow(**fields_named(_LINE_FIELDS, row)) for row in self._lines(entity, entity_id)]

    def state_as_of(self, entity: str, entity_id: str, at: datetime) -> str | None:
        """The last line that is not younger than the moment."""
        moment = to_micros(at, field="at")
        past = [row[3] for row in self._lines(entity, entity_id) if row[5] <= moment]
        return past[-1] if past else None

    def counts(self) -> list[Count]:
        """From the view, which walks through no job at rest."""
        return [Count(*row) for row in self._db.rows(_COUNTS)]

    def counts_as_of(self, at: datetime) -> list[Count]:
        """From the last line of each job."""
        return [Count(*row) for row in self._db.rows(_COUNTS_AS_OF, (to_micros(at, field="at"),))]

    def now(self) -> datetime:
        """The injected clock: SQLite has none of its own."""
        return from_micros(self._now())

    def _lines(self, entity: str, entity_id: str) -> list[Row]:
        if entity == "target":
            run_id, _, n = entity_id.partition("/")
            is_one = all(part.isascii() and part.isdecimal() for part in (run_id, n))
            return self._db.rows(_OF_TARGET, (int(run_id), int(n))) if is_one else []
        if entity not in ("job", "execution"):
            return self._db.rows(_OF_ENTITY, {"entity": entity, "id": entity_id})
        number = entity_id.partition("/")[0]
        if not number.isascii() or not number.isdecimal():
            return []
        where = {"job": int(number), "entity": entity, "id": int(number) if entity == "job" else entity_id}
        return [(row[0], str(row[1]), *row[2:]) for row in self._db.rows(_OF_JOB, where)]

    def _job(self, row: Row) -> JobRow:
        job = JobRow(**fields_named(_JOB_FIELDS, row))
        if job.state not in JOB.states:
            known = tuple(JOB.states)
            raise UnknownState(self._database, "nothing was changed", "job", str(job.id), job.state, known)
        return job
