"""Claiming on SQLite, and renewing leases."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any, NamedTuple, Unpack

import msgspec
from msgspec.structs import replace

from detent.errors import DetentError
from detent.model.records import Claimed, Renewal, Started
from detent.store.jobs.contract import ClaimTerms
from detent.store.limits.claim_room import Room
from detent.store.limits.sqlite_lanes import LANE_BITS, Reached, SqliteLanes, Wanted
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import begun_micros, ids_json, micros

__all__ = ["CLAIM", "GIVE_KEYS_BACK", "LANES_MAX", "NEW_LEASE", "SqliteClaim"]

# The first row of each of these lanes.
_FIRSTS = """
SELECT json_group_array(json_array(r.ready_at, r.job_id, r.lane_id, r.holds_key))
  FROM json_each(?) n CROSS JOIN detent_ready r ON r.lane_id = n.value
   AND (r.ready_at, r.job_id) = (
     SELECT q.ready_at, q.job_id FROM detent_ready q
      WHERE q.lane_id = n.value AND (q.expires_at IS NULL OR q.expires_at > ?)
      ORDER BY q.ready_at, q.job_id LIMIT 1)
"""
# The first rows of tenants' lanes that have at least the given priority; at most a hundred lanes of each tenant.
_FIRSTS_OF_TENANTS = """
SELECT json_group_array(json_array(r.ready_at, r.job_id, r.lane_id, r.holds_key, t.key, l.priority))
  FROM json_each(?1) t
 CROSS JOIN detent_lane l ON l.id IN (
   SELECT m.id FROM detent_lane m
    WHERE m.tenant = t.key AND m.priority >= t.value ORDER BY m.priority DESC, m.id LIMIT 100)
 CROSS JOIN detent_ready r ON r.lane_id = l.id
   AND (r.ready_at, r.job_id) = (
     SELECT q.ready_at, q.job_id FROM detent_ready q
      WHERE q.lane_id = l.id AND (q.expires_at IS NULL OR q.expires_at > ?2)
      ORDER BY q.ready_at, q.job_id LIMIT 1)
"""
# All rows as one value: fetching them one by one takes the interpreter's lock for each, which other threads may hold.
_HEAD = """
SELECT json_group_array(json_array(ready_at, job_id, lane_id, holds_key)) FROM (
  SELECT ready_at, job_id, lane_id, holds_key FROM detent_ready
   WHERE lane_id = ? AND (ready_at, job_id) > (?, ?) AND (expires_at IS NULL OR expires_at > ?)
   ORDER BY ready_at, job_id LIMIT ?)
"""
# The same with the cost of each, which limits need, and whether its lane has more rows.
_FIRSTS_WITH_COST = _FIRSTS.replace(
    "r.holds_key)",
    """r.holds_key, coalesce((SELECT j.cost FROM detent_job j WHERE j.id = r.job_id), 1), EXISTS (
         SELECT 1 FROM detent_ready m
          WHERE m.lane_id = r.lane_id AND (m.ready_at, m.job_id) > (r.ready_at, r.job_id)))""",
)
# The same for a single lane, for which the ids and the last row are enough.
_HEAD_OF_ONE = """
SELECT json_group_array(job_id), count(*), max(ready_at), max(holds_key) FROM (
  SELECT ready_at, job_id, holds_key FROM detent_ready
   WHERE lane_id = ? AND (expires_at IS NULL OR expires_at > ?)
   ORDER BY ready_at, job_id LIMIT ?)
"""
# The same with the cost of each.
_HEAD_WITH_COST = _HEAD.replace("lane_id, holds_key)", "lane_id, holds_key, cost)").replace(
    "lane_id, holds_key FROM",
    "lane_id, holds_key, coalesce((SELECT j.cost FROM detent_job j WHERE j.id = job_id), 1) AS cost FROM",
)
# A claim takes the head of a lane, without expired jobs: `job_expire` cancels those.
_TAKE_HEAD = """
DELETE FROM detent_ready
 WHERE lane_id = ? AND (ready_at, job_id) <= (?, ?) AND (expires_at IS NULL OR expires_at > ?)
"""
GIVE_KEYS_BACK = "DELETE FROM detent_job_key WHERE until_claim AND job_id IN (SELECT value FROM json_each(?))"
CLAIM = """
UPDATE detent_job
   SET state = 'running', attempt = attempt + 1, lease_id = ?, started_at = NULL,
       leased_at = max(?, due_at, coalesce(leased_at, 0), coalesce(started_at, 0))
 WHERE id IN (SELECT value FROM json_each(?)) AND state = 'pending'
   AND (leased_at IS NULL
        OR NOT EXISTS (SELECT 1 FROM detent_execution e WHERE e.job_id = detent_job.id AND e.committed_at IS NOT NULL))
"""
_CLAIMED = """
SELECT json_group_array(json_array(
         j.id, j.attempt, j.task, j.payload, j.tenant, j.queue, j.metadata, j.correlation_id, j.traceparent, j.run_id,
         j.spared, j.attempts_max))
  FROM json_each(?) asked CROSS JOIN detent_job j ON j.id = asked.value
 WHERE j.lease_id = ? AND j.state = 'running'
"""
NEW_LEASE = "INSERT INTO detent_lease (id, worker, leased_at, expires_at, job_ids) VALUES (?, ?, ?, ?, ?)"
_FIND = """
SELECT j.id, j.attempt, j.task, j.payload, j.tenant, j.queue, j.metadata, j.correlation_id, j.traceparent, j.run_id,
       j.spared, j.attempts_max, j.committed_at IS NOT NULL
  FROM detent_lease l, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE l.id = ? ORDER BY j.id
"""
_RENEW = """
UPDATE detent_lease SET expires_at = ? WHERE id IN (SELECT value FROM json_each(?)) RETURNING id
"""
_BEGUN = """
UPDATE detent_job
   SET started_at = max(leased_at, min(max(:now, coalesce(cancel_requested_at, 0)), leased_at + own.value))
  FROM json_each(:begun) own
 WHERE detent_job.id = CAST(own.key AS INTEGER) AND lease_id IN (SELECT value FROM json_each(:held))
   AND state = 'running' AND started_at IS NULL
"""
# A workflow that undoes its steps is not told to stop again.
_UNDOING = """(j.cancel_undo IS NOT 0 AND EXISTS (
   SELECT 1 FROM detent_workflow w WHERE w.job_id = j.id AND w.undoing_since IS NOT NULL AND w.undo_of IS NULL))"""
_UNWANTED = f"""
SELECT l.id, j.id, j.attempt
  FROM json_each(?) asked JOIN detent_lease l ON l.id = asked.value, json_each(l.job_ids) held
  JOIN detent_job j ON j.id = held.value AND j.lease_id = l.id AND j.state = 'running'
 WHERE j.cancel_requested_at IS NOT NULL AND NOT {_UNDOING} ORDER BY j.id
"""
_CANCELS = f"""
SELECT j.id, j.attempt
  FROM json_each(?) asked
  JOIN detent_job j ON j.id = asked.value ->> 0 AND j.attempt = asked.value ->> 1
 WHERE j.state = 'running' AND j.cancel_requested_at IS NOT NULL AND NOT {_UNDOING} ORDER BY j.id
"""

_READ = msgspec.json.Decoder(list[tuple[Any, ...]]).decode
_READ_CLAIMED = msgspec.json.Decoder(list[Claimed]).decode
LANES_MAX = 200
"""Number of lanes that a claim reads, or its limit if that is more."""
_ROUNDS_MAX = 5
"""How often a claim continues with the next lanes, if it found no job in the lanes before."""
_ALONE_MAX = 16
"""Up to this many lanes are read one by one."""
_BEFORE_ALL = (-(1 << 63), -(1 << 63))


class _Chosen(NamedTuple):
    """What to claim: the ids as JSON, how many, the last row in each lane, and whether any job holds a key."""

    ids: str
    total: int
    ends: dict[int, tuple[int, int]]
    hold_keys: bool


def _chosen(heads: Sequence[Row]) -> _Chosen:
    ends = {head[2]: (head[0], head[1]) for head in heads}
    return _Chosen(ids_json(head[1] for head in heads), len(heads), ends, any(head[3] for head in heads))


class SqliteClaim(SqliteLanes):
    """`job_claim`, `claim_find`, `job_start`, `lease_renew` and `cancel_find`."""

    def job_claim(self, **terms: Unpack[ClaimTerms]) -> list[Claimed]:
        """Claim in one step, and read what was claimed in a second one."""
        ids = self.claim_take(**terms)
        return self.claim_taken(terms["lease_id"], ids) if ids else []

    def claim_take(
        self,
        *,
        lease_id: int,
        worker: str,
        queues: Sequence[str] | None,
        tasks: Sequence[str],
        limit: int,
        lease: float,
        tenants: Sequence[str] | None = None,
        after_tenant: str | None = None,
        versions: Mapping[str, Sequence[int]] | None = None,
        reached: Reached | None = None,
    ) -> str:
        """Claim, and return the ids of the jobs in order as JSON, or nothing. Reads the lanes first, then the heads of
        those it may enter: about 2 * limit rows. If there are more lanes, `reached` says after which to start, and gets
        how far the claim has come."""
        wanted = Wanted.of(tasks, queues, tenants, versions, limit)
        room = self._room(queues, tasks, limit)
        now = self._now()
        reached = reached or Reached()
        for _ in range(_ROUNDS_MAX):
            scan = self._scan(wanted, reached.after_lane, max(limit, LANES_MAX))
            lanes = scan.first(limit, room)
            reached.after_lane = None if scan.whole else (lanes if len(lanes) == limit else scan.lanes)[-1][2]
            if room is not None:
                taken = _chosen(self._choose_within(room, lanes, limit, after_tenant, now))
            elif not scan.whole:
                taken = _chosen(self._choose_of_many(lanes, scan.groups, limit, after_tenant, now))
            elif len(lanes) == 1:
                taken = self._choose_of_one(lanes[0][2], limit, now)
            else:
                # Within a tenant by priority, then time; tenants take turns after the one served last.
                taken = _chosen(list(islice(self._in_order(lanes, limit, after_tenant, now), limit)))
            if taken.total or scan.whole:
                break
        if room is not None:
            self._spend(room)
        ids, total, ends, hold_keys = taken
        if not total:
            return ""
        self._db.change_many(_TAKE_HEAD, [(lane, *end, now) for lane, end in ends.items()])
        if hold_keys:
            self._db.change(GIVE_KEYS_BACK, (ids,))
        self._expect(self._db.change(CLAIM, (lease_id, now, ids)), total, ids, "pending")
        self._db.change(NEW_LEASE, (lease_id, worker, now, now + micros(lease), ids))
        return ids

    def claim_taken(self, lease_id: int, ids: str) -> list[Claimed]:
        """Return those of these jobs that the lease still holds."""
        ((claimed,),) = self._db.rows(_CLAIMED, (ids, lease_id))
        return _READ_CLAIMED(claimed)

    def _choose_of_many(
        self, lanes: Sequence[Row], groups: Sequence[int], limit: int, after_tenant: str | None, now: int
    ) -> list[Row]:
        """Choose at most one job of each of these lanes. A job of its tenant in another lane goes first if it has a
        higher priority, or is older."""
        lowest: dict[str, int] = {}
        for tenant, priority, *_ in lanes:
            lowest[tenant] = min(priority, lowest.get(tenant, priority))
        firsts = self._at_once(_FIRSTS_OF_TENANTS, (json.dumps(lowest), now))
        # A lane that is not among the first hundred of its tenant is read separately.
        found = {row[2] for row in firsts}
        if others := {lane[2]: lane for lane in lanes if lane[2] not in found}:
            for row in self._at_once(_FIRSTS, (ids_json(others), now)):
                firsts.append((*row, *others[row[2]][:2]))
        lines: dict[str, list[Row]] = {}
        for row in sorted(firsts, key=lambda row: (-row[5], row[0], row[1])):
            if row[2] >> LANE_BITS in groups:
                lines.setdefault(row[4], []).append(row)
        return list(islice(_in_turn([iter(lines[tenant]) for tenant in _turns(lines, after_tenant)]), limit))

    def _choose_of_one(self, lane: int, limit: int, now: int) -> _Chosen:
        ((ids, total, ready_at, hold_keys),) = self._db.rows(_HEAD_OF_ONE, (lane, now, limit))
        last = int(ids[ids.rfind(",") + 1 : -1].strip("[")) if total else 0
        return _Chosen(ids, total, {lane: (ready_at, last)}, bool(hold_keys))

    def _choose_within(
        self,
        room: Room,
        lanes: Sequence[Row],
        limit: int,
        after_tenant: str | None,
        now: int,
        skip: Container[int] = (),
    ) -> list[Row]:
        """Choose like `_in_order`, without jobs for which a limit has no room, and without those in `skip`. The tenant
        keeps its turn."""
        under = {lane[2]: room.under(*lane[3:]) for lane in lanes}
        room.read(under.values())

        def goes_on(lane: int) -> bool:
            return room.has_room(under[lane])

        def takes(row: Row) -> bool:
            return row[1] not in skip and room.takes(under[row[2]], row[4])

        heads: list[Row] = []
        for head in self._in_order(lanes, limit, after_tenant, now, _HEAD_WITH_COST, goes_on, takes):
            room.spend(under[head[2]], head[1], head[4])
            heads.append(head)
            if len(heads) == limit:
                break
        return heads

    def _in_order(
        self,
        lanes: Sequence[Row],
        limit: int,
        after_tenant: str | None,
        now: int,
        head: str = _HEAD,
        goes_on: Callable[[int], bool] = lambda lane: True,
        takes: Callable[[Row], bool] = lambda row: True,
    ) -> Iterator[Row]:
        portion = limit // max(1, len(lanes)) + 1
        lanes = sorted(lanes, key=lambda lane: (lane[0], -lane[1], lane[2]))
        # Of many lanes hardly more than the first rows are taken, so those are fetched together.
        firsts: dict[int, Row] | None = None
        if len(lanes) > _ALONE_MAX:
            found = self._at_once(_FIRSTS_WITH_COST, (ids_json(lane[2] for lane in lanes), now))
            firsts = {row[2]: row for row in found}
        lines = {
            tenant: chain.from_iterable(
                heapq.merge(*(self._walk(lane[2], portion, now, head, goes_on, firsts) for lane in equals))
                for _, equals in groupby(of_tenant, key=lambda lane: lane[1])
            )
            for tenant, of_tenant in ((t, list(g)) for t, g in groupby(lanes, key=lambda lane: lane[0]))
        }
        # `takes` is called for a row only in its turn.
        return _in_turn([filter(takes, lines[tenant]) for tenant in _turns(lines, after_tenant)])

    def _walk(
        self,
        lane: int,
        portion: int,
        now: int,
        head: str,
        goes_on: Callable[[int], bool],
        firsts: Mapping[int, Row] | None,
    ) -> Iterator[Row]:
        """Yield the rows of a lane in order, in portions. The first row may be known already."""
        after: tuple[int, int] = _BEFORE_ALL
        if firsts is not None:
            if lane not in firsts or not goes_on(lane):
                return
            first = firsts[lane]
            yield first
            if not first[5]:
                return
            after = first[0], first[1]
        while goes_on(lane) and (rows := self._at_once(head, (lane, *after, now, portion))):
            yield from rows
            if len(rows) < portion:
                return
            after = rows[-1][:2]
            portion *= 2

    def _at_once(self, statement: str, params: Sequence[Any]) -> list[Row]:
        ((rows,),) = self._db.rows(statement, params)
        return _READ(rows)

    def claim_find(self, lease_id: int) -> list[Claimed]:
        found = self._db.rows(_FIND, (lease_id,))
        return [replace(Claimed(*row), committed=bool(committed)) for *row, committed in found]

    def job_start(self, items: Sequence[tuple[int, int]]) -> list[Started | DetentError]:
        now = self._now()
        jobs = self._jobs(job_id for job_id, _ in items)
        answers: list[Started | DetentError] = []
        for job_id, attempt in items:
            job = jobs.get(job_id)
            lost = self._lost(job, job_id, attempt, now)
            if job is not None and lost is None:
                self._start(job, now)
            answers.append(lost or Started(job_id, attempt))
        return answers

    def lease_renew(
        self, lease_ids: Sequence[int], lease: float, begun: Mapping[int, float] | None = None
    ) -> list[Renewal]:
        now = self._now()
        asked = ids_json(lease_ids)
        held = {row[0] for row in self._db.rows(_RENEW, (now + micros(lease), asked))}
        if begun:
            told = {job_id: begun_micros(after) for job_id, after in begun.items()}
            self._db.change(_BEGUN, {"now": now, "begun": json.dumps(told), "held": ids_json(held)})
        unwanted: dict[int, list[tuple[int, int]]] = {}
        for lease_id, job_id, attempt in self._db.rows(_UNWANTED, (ids_json(held),)):
            unwanted.setdefault(lease_id, []).append((job_id, attempt))
        return [Renewal(found, found in held, tuple(unwanted.get(found, ()))) for found in lease_ids]

    def cancel_find(self, items: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(job_id, attempt) for job_id, attempt in self._db.rows(_CANCELS, (json.dumps(items),))]


def _turns(tenants: Iterable[str], after_tenant: str | None) -> list[str]:
    """Return the tenants in the order of their turns, after the one served last."""
    return sorted(tenants, key=lambda tenant: (after_tenant is not None and tenant <= after_tenant, tenant))


def _in_turn(lines: Sequence[Iterator[Row]]) -> Iterator[Row]:
    """Yield one row of each tenant in turn until there are none."""
    while lines:
        left = []
        for line in lines:
            for row in islice(line, 1):
                left.append(line)
                yield row
        lines = left
