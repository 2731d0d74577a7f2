"""What must be true after every step, and when everything has come to rest."""

from __future__ import annotations

from typing import Any, Literal

from detent.model.clock import to_micros
from detent.store.invariants import load
from prove.simulation.application import outside
from prove.simulation.database import Database
from prove.simulation.people import People
from prove.simulation.world import world

__all__ = ["Breach", "Checks", "Violated"]

Breach = Literal["lost", "doubled", "stuck", "wrong"]
"""The kinds of broken promises, as the table of figures counts them."""

_FINAL = ("succeeded",)
_DOUBLE = "SELECT job_id, what, count(*) FROM effect GROUP BY job_id, what HAVING count(*) > 1"
_STATES = "SELECT id, state, attempt, lease_id FROM detent_job"
_LEASES = "SELECT id, expires_at FROM detent_lease"
_EXPIRED = "SELECT job_id, attempt, aborted_at FROM detent_execution WHERE outcome = 'expired'"
_HOLDERS = """
SELECT j.id, j.attempt, '', l.expires_at FROM detent_job j JOIN detent_lease l ON l.id = j.lease_id
 WHERE j.committed_at IS NOT NULL
UNION ALL
SELECT j.id, j.attempt, s.path, l.expires_at FROM detent_job j JOIN detent_lease l ON l.id = j.lease_id
  JOIN detent_workflow_step s ON s.job_id = j.id AND s.attempt = j.attempt
"""
"""What attempts that are in progress have committed and recorded, and when their lease expires."""
_FOREIGN = """
SELECT f.job_id, f.attempt FROM effect f JOIN detent_job j ON j.id = f.job_id
 WHERE f.what = 'commit' AND NOT (j.attempt = f.attempt AND j.committed_at IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM detent_execution e
                    WHERE e.job_id = f.job_id AND e.attempt = f.attempt AND e.committed_at IS NOT NULL)
"""
"""Effects of attempts that are not the one that is on record as committed."""
_SENT_TWICE = """
SELECT job_id, name, count(*) FROM detent_workflow_signal WHERE dedupe IS NOT NULL
 GROUP BY job_id, name, dedupe HAVING count(*) > 1
"""
_OF_DEFINITIONS = {"constraints_are_in_place", "definitions_are_in_place", "guards_are_in_place", "storage_is_sound"}


class Violated(AssertionError):
    """A promise was broken."""

    def __init__(self, what: str, breach: Breach = "wrong") -> None:
        super().__init__(what)
        self.breach = breach


class Checks:
    """The promises, against the database and the world outside it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._invariants = [one for one in load("sqlite") if one.name not in _OF_DEFINITIONS]
        self._before: dict[int, tuple[str, int, int | None]] = {}
        self._leases: dict[int, int] = {}
        self._expired: set[tuple[int, int]] = set()
        self._recorded: set[tuple[int, int, str]] = set()
        self._seen = -1
        """The changes of the database that were checked."""

    def reset(self) -> None:
        """Forget the last schedule."""
        self._before = {}
        self._leases = {}
        self._expired = set()
        self._recorded = set()
        self._seen = -1

    def after_step(self, name: str) -> None:
        """Check what is cheap enough for every step."""
        if world().in_block is not None or self._database.changes == self._seen:
            return
        self._seen = self._database.changes
        rows = self._database.rows
        if double := rows(_DOUBLE):
            raise Violated(
                f"INV_001: the effect of job {double[0][0]} ({double[0][1]}) was committed {double[0][2]} times",
                "doubled",
            )
        if foreign := rows(_FOREIGN):
            raise Violated(
                f"INV_002: attempt {foreign[0][1]} of job {foreign[0][0]} committed, and another is on record"
            )
        now = to_micros(world().clock.now(), field="now")
        for job_id, attempt, path, expires_at in rows(_HOLDERS):
            if (job_id, attempt, path) not in self._recorded:
                self._recorded.add((job_id, attempt, path))
                if expires_at <= now:
                    raise Violated(
                        f"INV_002: job {job_id} wrote {path or 'its commit'} under an expired lease ({name})"
                    )
        for job_id, attempt, at in rows(_EXPIRED):
            if (job_id, attempt) not in self._expired:
                self._expired.add((job_id, attempt))
                lease = self._before[job_id][2] or 0
                if self._leases.get(lease, at) > at:
                    raise Violated(f"the lease of job {job_id} was taken away before it had expired")
        self._leases = dict(rows(_LEASES))
        states = {row[0]: (row[1], row[2], row[3]) for row in rows(_STATES)}
        for job_id, (state, attempt, _) in self._before.items():
            if job_id not in states:
                raise Violated(f"job {job_id} is lost ({name})", "lost")
            next_state, next_attempt, _lease = states[job_id]
            if state in _FINAL and next_state != state:
                raise Violated(f"INV_003: job {job_id} went from {state} to {next_state} ({name})")
            if next_attempt < attempt:
                raise Violated(f"INV_002: job {job_id} went from attempt {attempt} back to {next_attempt} ({name})")
        self._before = states

    def invariants(self) -> None:
        """Check all invariants of the record."""
        now = to_micros(world().clock.now(), field="now")
        for one in self._invariants:
            if found := self._database.rows(one.sql, {"now": now}):
                raise Violated(f"{one.name}: {found[0]}")

    def at_rest(self, people: People) -> None:
        """Check that everything has come to an end, and nothing is missing."""
        rows = self._database.rows
        states: dict[int, Any] = {row[0]: row[1] for row in rows(_STATES)}
        for job_id, task in people.accepted.items():
            if job_id not in states:
                raise Violated(f"job {job_id} was accepted and is lost", "lost")
            effects = rows("SELECT what, count(*) FROM effect WHERE job_id = ? GROUP BY what", (job_id,))
            if task == "commits" and (states[job_id] == "succeeded") != bool(effects):
                raise Violated(f"job {job_id} is {states[job_id]} with effects {effects}")
            charges = [key for key, charged in outside().charged.items() if charged == job_id]
            if task == "charges" and (len(charges) > 1 or (states[job_id] == "succeeded" and not charges)):
                raise Violated(
                    f"job {job_id} is {states[job_id]} and was charged {len(charges)} times",
                    "doubled" if len(charges) > 1 else "lost",
                )
            again = outside().failures[job_id, "fires"] + people.retried[job_id]
            if task == "fires" and outside().calls[job_id, "fires"] > 1 + again:
                raise Violated(f"job {job_id} was called {outside().calls[job_id, 'fires']} times", "doubled")
            if task == "order" and states[job_id] == "succeeded" and dict(effects) != {"book": 1}:
                raise Violated(f"job {job_id} succeeded with effects {effects}")
        for key, ids in people.keys.items():
            if len(ids) > 1:
                raise Violated(f"{key} made the jobs {sorted(ids)}", "doubled")
        for job_id, name, count in rows(_SENT_TWICE):
            raise Violated(f"job {job_id} has a signal {name!r}, sent under one key, {count} times", "doubled")
        for job_id, state in states.items():
            if state in ("pending", "running"):
                raise Violated(f"job {job_id} is stuck: {state}", "stuck")
        self.invariants()
