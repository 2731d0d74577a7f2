"""What repair reads and writes, inside one transaction.

The statements are written once, for PostgreSQL; `sqlite_translation` makes SQLite's out of them. A database adds what
truly differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from detent.model.records import Violation
from detent.store.repair.job_projection import DeadRow, Execution, Facts, Job, Key, Line, Projection, Queued

__all__ = ["LogLine", "RepairDatabase"]

_JOBS = """
SELECT id, tenant, task, queue, priority, due_at, expires_at, correlation_id, attempts_max, state, attempt, spared,
       ended, error, finished_at, lease_id, leased_at, started_at, committed_at, limit_key,
       coalesce((SELECT w.version FROM detent.workflow w WHERE w.job_id = id), 0)
  FROM detent.job WHERE id = ANY (%(these)s) ORDER BY id
"""
_EXECUTIONS = """
SELECT job_id, attempt, outcome, next_state, next_due_at, counted, committed_at, coalesce(done_at, aborted_at), error
  FROM detent.execution WHERE job_id = ANY (%(these)s) ORDER BY job_id, attempt
"""
_LINES = """
SELECT job_id, n, attempt, to_state, trigger, at, from_state
  FROM detent.transition_log
 WHERE job_id = ANY (%(these)s) AND entity = 'job' AND trigger NOT IN ('request_cancel', 'move', 'fork', 'repair')
 ORDER BY job_id, n
"""
# A waiting row with another priority than its lane's is in no lane.
_QUEUED = """
SELECT q.job_id, q.place, q.at, q.expires_at, q.holds_key, l.queue, l.task, l.tenant, l.limit_key, l.version,
       CASE WHEN q.priority IS NULL OR q.priority = l.priority THEN l.priority END
  FROM (SELECT job_id, 'ready' AS place, ready_at AS at, expires_at, holds_key, lane_id,
               CAST(NULL AS smallint) AS priority
          FROM detent.ready
        UNION ALL
        SELECT job_id, 'waiting', due_at, expires_at, holds_key, lane_id, priority FROM detent.waiting) q
  LEFT JOIN detent.lane l ON l.id = q.lane_id
 WHERE q.job_id = ANY (%(these)s) ORDER BY q.job_id
"""
_DEAD = "SELECT job_id, tenant, queue, task FROM detent.dead WHERE job_id = ANY (%(these)s)"
_KEYS = """
SELECT job_id, tenant, key FROM detent.job_key WHERE until_claim AND job_id = ANY (%(these)s) ORDER BY tenant, key
"""
_KEYS_NAMED = """
SELECT job_id, tenant, key FROM detent.job_key WHERE until_claim AND tenant || '/' || key = ANY (%(these)s)
"""
_LEASED = """
SELECT j.id FROM detent.job j JOIN detent.lease l ON l.id = j.lease_id
 WHERE j.id = ANY (%(these)s) AND j.id = ANY (l.job_ids)
"""
_JOBS_OF_LINES = "SELECT n, job_id FROM detent.transition_log WHERE n = ANY (%(these)s) AND job_id IS NOT NULL"
_LOG = """
INSERT INTO detent.transition_log
  (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, metadata,
   correlation_id, at)
VALUES (%(tenant)s, %(entity)s, %(entity_id)s, %(job_id)s, %(attempt)s, %(from_state)s, %(to_state)s, 'repair',
        %(actor)s, %(reason)s, %(metadata)s, %(correlation_id)s, %(now)s)
"""
_SET_JOB = """
UPDATE detent.job
   SET state = %(state)s, attempt = %(attempt)s, ended = %(ended)s, spared = %(spared)s, due_at = %(due_at)s,
       finished_at = %(finished_at)s, committed_at = %(committed_at)s, error = %(error)s, lease_id = %(lease_id)s,
       leased_at = %(leased_at)s
 WHERE id = %(id)s AND state = %(found)s
"""
_LANE = """
SELECT id FROM detent.lane
 WHERE queue = %(queue)s AND task = %(task)s AND tenant = %(tenant)s AND priority = %(priority)s
   AND limit_key = %(limit_key)s AND version = %(version)s ORDER BY id LIMIT 1
"""
_TO_READY = f"""
INSERT INTO detent.ready (lane_id, ready_at, job_id, holds_key, expires_at)
VALUES (({_LANE}), %(due_at)s, %(job_id)s, %(holds_key)s, %(expires_at)s)
"""
_TO_WAITING = f"""
INSERT INTO detent.waiting (lane_id, due_at, job_id, holds_key, expires_at, priority)
VALUES (({_LANE}), %(due_at)s, %(job_id)s, %(holds_key)s, %(expires_at)s, %(priority)s)
"""
_ADD_DEAD = """
INSERT INTO detent.dead (job_id, tenant, queue, task, reason, quarantined_at)
VALUES (%(job_id)s, %(tenant)s, %(queue)s, %(task)s, %(reason)s, %(at)s)
"""
_DROP_KEY = """
DELETE FROM detent.job_key WHERE job_id = %(job_id)s AND tenant = %(tenant)s AND key = %(key)s AND until_claim
"""
_COUNT_FINISHED = """
INSERT INTO detent.finished_delta (tenant, queue, task, state, jobs)
SELECT f.tenant, f.queue, f.task, f.state, sum(f.there) - sum(f.counted)
  FROM (SELECT tenant, queue, task, state, 0 AS counted, count(*) AS there FROM detent.job
         WHERE finished_at IS NOT NULL GROUP BY tenant, queue, task, state
        UNION ALL
        SELECT tenant, queue, task, state, jobs, 0 FROM detent.job_counts
         WHERE state <> 'pending' AND state <> 'running') f
 GROUP BY f.tenant, f.queue, f.task, f.state HAVING sum(f.counted) <> sum(f.there)
"""
_LIST_JOBS = (
    """
INSERT INTO detent.job_span AS s (created_at, block, first_id, last_id)
SELECT j.created_at, j.id >> 10, min(j.id), max(j.id) FROM detent.job j
 WHERE NOT EXISTS (SELECT 1 FROM detent.job_span k
                    WHERE k.created_at = j.created_at AND k.block = j.id >> 10
                      AND j.id BETWEEN k.first_id AND k.last_id)
 GROUP BY j.created_at, j.id >> 10
ON CONFLICT (created_at, block, first_id) DO UPDATE SET last_id = greatest(s.last_id, excluded.last_id)
""",
    """
DELETE FROM detent.unsuccessful WHERE NOT EXISTS (
  SELECT 1 FROM detent.job j WHERE j.id = detent.unsuccessful.job_id AND j.state = detent.unsuccessful.state)
""",
    """
INSERT INTO detent.unsuccessful (state, job_id)
SELECT j.state, j.id FROM detent.job j WHERE j.state IN ('failed', 'cancelled') AND NOT EXISTS (
  SELECT 1 FROM detent.unsuccessful u WHERE u.state = j.state AND u.job_id = j.id)
""",
)
_TOTAL_FINISHED = """
INSERT INTO detent.finished_total (queue, task, state, jobs)
SELECT queue, task, state, sum(jobs) FROM detent.finished_count GROUP BY queue, task, state
"""
_RATES_GO = """
DELETE FROM detent.transition_rate WHERE date_bin('1 hour', at, 'epoch') IN (
  SELECT f.hour
    FROM (SELECT hour, to_state, outcome, 0 AS rated, 0 AS rated_us, moves AS counted, ran_us AS counted_us
            FROM detent.transition_hour
          UNION ALL
          SELECT hour, 'running', '', 0, 0, moves, waited_us FROM detent.transition_hour WHERE outcome <> ''
          UNION ALL
          SELECT date_bin('1 hour', at, 'epoch'), to_state, outcome, moves, us, 0, 0 FROM detent.transition_rate) f
   GROUP BY f.hour, f.to_state, f.outcome HAVING sum(f.rated) <> sum(f.counted) OR sum(f.rated_us) <> sum(f.counted_us))
"""
# How long single jobs waited is not known any more: those of one row of figures get their mean.
_RATE_HOURS = """
INSERT INTO detent.transition_rate (seconds, at, to_state, outcome, bucket, moves, us, us_max)
SELECT 3600, f.hour, f.to_state, f.outcome, f.bucket, sum(f.moves), sum(f.us), max(f.us_max)
  FROM (SELECT hour, to_state, outcome, bucket, moves, ran_us AS us, ran_us_max AS us_max FROM detent.transition_hour
        UNION ALL
        SELECT hour, 'running', '', waited_us / moves, moves, waited_us, waited_us_max
          FROM detent.transition_hour WHERE outcome <> '') f
 WHERE NOT EXISTS (SELECT 1 FROM detent.transition_rate r
                    WHERE r.seconds IN (60, 3600) AND r.at >= f.hour AND r.at < f.hour + interval '1 hour')
 GROUP BY f.hour, f.to_state, f.outcome, f.bucket
"""
_RECOUNT = """
UPDATE detent.batch_run AS b
   SET (total, previewed, preview_failed, unchanged, queued, applying, applied, failed,
        rolled_back, reverting, revert_failed, conflicts) = (
       SELECT count(*), count(*) FILTER (WHERE g.changed IS NOT NULL),
              count(*) FILTER (WHERE g.preview_error IS NOT NULL), count(*) FILTER (WHERE NOT g.changed),
              count(*) FILTER (WHERE g.state = 'queued'), count(*) FILTER (WHERE g.state = 'applying'),
              count(*) FILTER (WHERE g.state = 'applied'), count(*) FILTER (WHERE g.state = 'failed'),
              count(*) FILTER (WHERE g.state = 'rolled_back'),
              count(*) FILTER (WHERE g.revert_state = 'reverting'),
              count(*) FILTER (WHERE g.revert_state = 'failed'),
              count(*) FILTER (WHERE g.conflict IS NOT NULL)
         FROM detent.target g WHERE g.run_id = b.id),
       outstanding = (SELECT count(*) FROM detent.batch_action a WHERE a.run_id = b.id AND a.done_at IS NULL),
       mismatches = (SELECT count(*) FROM detent.mismatch m WHERE m.run_id = b.id AND m.resolved_at IS NULL)
 WHERE id = %(run_id)s
"""

_COUNT_CHILDREN = """
UPDATE detent.child_group AS g
   SET (succeeded, failed, dead) = (
       SELECT count(*) FILTER (WHERE c.state = 'succeeded'),
              count(*) FILTER (WHERE c.state IN ('failed', 'cancelled')),
              count(*) FILTER (WHERE c.state = 'quarantined')
         FROM detent.job c
        WHERE c.parent_id = g.parent_id AND c.id >= g.first_id AND c.id < g.first_id + g.total)
 WHERE parent_id = %(parent_id)s AND path = %(path)s
"""
_GRAPH_OF_NODE = "SELECT graph_id FROM detent.graph_node WHERE job_id = %(job_id)s"
_LIST_UNREAD = (
    "DELETE FROM detent.workflow_unread WHERE job_id = %(job_id)s",
    """
    INSERT INTO detent.workflow_unread (job_id, name, seq)
    SELECT g.job_id, g.name, g.seq FROM detent.workflow_signal g
     WHERE g.job_id = %(job_id)s AND NOT EXISTS (
       SELECT 1 FROM detent.workflow_step s
        WHERE s.job_id = g.job_id AND s.signal_name = g.name AND s.signal_seq = g.seq AND s.signal_seq IS NOT NULL)
    """,
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """What a step records in the log before it acts."""

    entity: str
    entity_id: str
    from_state: str
    to_state: str
    metadata: str
    job_id: int | None = None
    attempt: int = 0
    tenant: str = ""
    correlation_id: str | None = None


class RepairDatabase(ABC):
    """A database under repair. `now` is the time of its transaction, in its own type."""

    def __init__(self, now: Any) -> None:
        self._now = now

    # -- what databases do differently -------------------------------------------------------------------------

    @abstractmethod
    def _execute(self, sql: str, params: Mapping[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement, and return its rows and how many it changed."""

    @abstractmethod
    def _listed(self, values: Sequence[int | str]) -> Any:
        """Return a list as this database takes it in one parameter."""

    @abstractmethod
    def _new_id(self) -> int:
        """Reserve an id for a lease."""

    @abstractmethod
    def _make_lane(self, lane: tuple[str, str, str, int, str, int]) -> None:
        """Insert a lane (queue, task, tenant, priority, limit key, version) unless it exists."""

    @abstractmethod
    def lease(self, job_id: int) -> None:
        """Add a job to the row of its lease. If the row is missing, insert one that has just expired."""

    @abstractmethod
    def violations(self) -> list[Violation]:
        """Return the rows that break an invariant now."""

    @abstractmethod
    def owner_must(self, kind: str, name: str) -> str | None:
        """Return what only an owner can do about a part of the schema; None if `restore` can do it."""

    @abstractmethod
    def restore(self, kind: str, name: str) -> None:
        """Install a guard again; let a sequence continue above all numbers in use."""

    @abstractmethod
    def lock_out_writers(self) -> None:
        """Keep other transactions from writing until this one ends."""

    @abstractmethod
    def undo_if_refused(self, work: Callable[[], None]) -> str | None:
        """Do the work whole or not at all. Return the message of the guard or constraint that refused it."""

    # -- reading -----------------------------------------------------------------------------------------------

    def jobs_of_lines(self, numbers: Sequence[int]) -> dict[int, int]:
        """Return the job of each line of the log, by the line's number."""
        return dict(self._of(_JOBS_OF_LINES, numbers))

    def keys_named(self, names: Sequence[str]) -> list[Key]:
        """Return the keys held until the first claim that have these names (tenant/key)."""
        return [Key._make(row) for row in self._of(_KEYS_NAMED, names)]

    def facts(self, job_ids: Sequence[int]) -> list[Facts]:
        """Return everything that the database has about those of the jobs that exist."""
        executions = self._by_job(_EXECUTIONS, job_ids, Execution._make)
        lines = self._by_job(_LINES, job_ids, Line._make)
        queued = self._by_job(_QUEUED, job_ids, Queued._make)
        dead = self._by_job(_DEAD, job_ids, DeadRow._make)
        keys = self._by_job(_KEYS, job_ids, Key._make)
        leased = {job_id for (job_id,) in self._of(_LEASED, job_ids)}
        return [
            Facts(
                job,
                tuple(executions[job.id]),
                tuple(lines[job.id]),
                tuple(queued[job.id]),
                next(iter(dead[job.id]), None),
                job.id in leased,
                tuple(keys[job.id]),
            )
            for job in map(Job._make, self._of(_JOBS, job_ids))
        ]

    def _of(self, sql: str, these: Sequence[int | str]) -> list[Any]:
        return self._execute(sql, {"these": self._listed(these)})[0]

    def _by_job(self, sql: str, job_ids: Sequence[int], make: Callable[[Any], Any]) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = defaultdict(list)
        for row in self._of(sql, job_ids):
            found[row[0]].append(make(row))
        return found

    # -- writing -----------------------------------------------------------------------------------------------

    def log(self, line: LogLine, actor: str, reason: str) -> None:
        """Record a step, with trigger `repair`."""
        values = {name: getattr(line, name) for name in LogLine.__slots__}
        self._execute(_LOG, values | {"actor": actor, "reason": reason, "now": self._now})

    def set_job(self, job: Job, to: Projection) -> None:
        """Rewrite the row of a job. A running job without a lease gets a new one."""
        leased = to.state == "running"
        values = {name: getattr(to, name) for name in ("state", "attempt", "ended", "spared", "due_at", "error")}
        values |= {
            "id": job.id,
            "found": job.state,
            "finished_at": to.finished_at,
            "committed_at": to.committed_at,
            "lease_id": self._new_id() if leased and job.lease_id is None else job.lease_id,
            "leased_at": self._now if leased and to.leased_at is None else to.leased_at,
        }
        self._execute(_SET_JOB, values)

    def queue(self, job: Job, due_at: Any, holds_key: bool) -> None:
        """Give a job its one row, in ready, or in waiting if it is due later; delete any other."""
        self.unqueue(job.id)
        lane = (job.queue, job.task, job.tenant, job.priority, job.limit_key or "", job.version)
        self._make_lane(lane)
        values = dict(zip(("queue", "task", "tenant", "priority", "limit_key", "version"), lane, strict=True))
        values |= {"due_at": due_at, "job_id": job.id, "holds_key": holds_key, "expires_at": job.expires_at}
        self._execute(_TO_READY if due_at <= self._now else _TO_WAITING, values)

    def unqueue(self, job_id: int) -> None:
        """Delete the rows of a job in ready and waiting."""
        self._execute("DELETE FROM detent.ready WHERE job_id = %(job_id)s", {"job_id": job_id})
        self._execute("DELETE FROM detent.waiting WHERE job_id = %(job_id)s", {"job_id": job_id})

    def add_dead(self, job: Job, reason: str, at: Any) -> None:
        """Give a job its one row among the dead letters."""
        self.remove_dead(job.id)
        values = {"job_id": job.id, "tenant": job.tenant, "queue": job.queue, "task": job.task}
        self._execute(_ADD_DEAD, values | {"reason": reason, "at": at})

    def remove_dead(self, job_id: int) -> None:
        """Delete the row of a job among the dead letters."""
        self._execute("DELETE FROM detent.dead WHERE job_id = %(job_id)s", {"job_id": job_id})

    def drop_key(self, key: Key) -> None:
        """Release a key."""
        self._execute(_DROP_KEY, key._asdict())

    def free_slot(self, limit_key: str, job_id: int) -> None:
        """Delete the slot of a job under a limit."""
        sql = "DELETE FROM detent.limit_slot WHERE limit_key = %(limit_key)s AND job_id = %(job_id)s"
        self._execute(sql, {"limit_key": limit_key, "job_id": job_id})

    def recount(self, run_id: int) -> None:
        """Set the counts of a batch run from its targets, actions and mismatches."""
        self._execute(_RECOUNT, {"run_id": run_id})

    def count_children(self, parent_id: int, path: str) -> None:
        """Set the counts of a group of children from the children."""
        self._execute(_COUNT_CHILDREN, {"parent_id": parent_id, "path": path})

    def count_graph(self, job_id: int, *, is_graph: bool) -> None:
        """Set what a graph and its nodes count from its nodes and their jobs, and do what follows from it: a node that
        waits for nothing is due, and a graph whose nodes have ended ends. `job_id` is that of the graph or of a
        node."""
        if not is_graph:
            found, _ = self._execute(_GRAPH_OF_NODE, {"job_id": job_id})
            if not found:
                return
            ((job_id,),) = found
        self._count_graph(job_id)

    def _count_graph(self, graph_id: int) -> None:
        raise NotImplementedError

    def list_unread(self, job_id: int) -> None:
        """List the signals of a job that no step has taken."""
        for statement in _LIST_UNREAD:
            self._execute(statement, {"job_id": job_id})

    def count_finished(self) -> None:
        """Set the counts of finished jobs from the jobs."""
        self._execute(_COUNT_FINISHED)

    def total_finished(self) -> None:
        """Set the totals of finished jobs from the counts by tenant."""
        self._execute("DELETE FROM detent.finished_total")
        self._execute(_TOTAL_FINISHED)

    def rate_hours(self) -> None:
        """Set the rates of every hour that differs from the figures, as one row for the whole hour."""
        self._execute(_RATES_GO)
        self._execute(_RATE_HOURS)

    def list_jobs(self) -> None:
        """Let lists by time and by state find every job."""
        for statement in _LIST_JOBS:
            self._execute(statement)
