"""The lanes that a claim reads on SQLite: those of its groups that have ready jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from detent.store.limits.claim_room import Room
from detent.store.limits.sqlite_claim_room import SqliteLimitRoom
from detent.store.sqlite.driver.executor import Row

__all__ = ["LANE_BITS", "Reached", "Scan", "SqliteLanes", "Wanted"]

LANE_BITS = 32
"""The number of a lane is that of its group times 2^32, and a number of its own."""

# Groups of lanes that this claim may read and that have ready jobs. Other groups cost nothing.
_GROUPS = """
SELECT g.id FROM detent_lane_group g LEFT JOIN detent_queue q ON q.name = g.queue
 WHERE g.task IN (SELECT value FROM json_each(:tasks))
   AND (:queues IS NULL OR g.queue IN (SELECT value FROM json_each(:queues)))
   AND q.paused_at IS NULL
   AND (g.version = 0 OR :versions IS NULL
        OR EXISTS (SELECT 1 FROM json_each(:versions) v WHERE v.value ->> 0 = g.task AND v.value ->> 1 = g.version))
   AND EXISTS (SELECT 1 FROM detent_ready r WHERE r.lane_id > (g.id << 32) AND r.lane_id < ((g.id + 1) << 32))
 ORDER BY g.id
"""
_LANE = "l.tenant, l.priority, l.id, l.queue, l.task, l.limit_key"
# Lanes with ready jobs, in the order of their numbers. Each step is one look-up in an index.
_STEPS = f"""
WITH RECURSIVE step (id) AS (
  SELECT min(lane_id) FROM detent_ready WHERE lane_id > :lo AND lane_id <= :hi
  UNION ALL
  SELECT (SELECT min(r.lane_id) FROM detent_ready r WHERE r.lane_id > s.id AND r.lane_id <= :hi)
    FROM step s WHERE s.id IS NOT NULL LIMIT :most
)
SELECT {_LANE} FROM step s CROSS JOIN detent_lane l ON l.id = s.id
"""
_OF_TENANTS = f"""
SELECT {_LANE} FROM json_each(?) t CROSS JOIN detent_lane l ON l.tenant = t.value
 WHERE EXISTS (SELECT 1 FROM detent_ready r WHERE r.lane_id = l.id)
"""


class Wanted(NamedTuple):
    """What a claim asks for: tasks, queues, tenants and versions as JSON (None: any), and how many jobs."""

    tasks: str
    queues: str | None
    tenants: str | None
    versions: str | None
    limit: int

    @classmethod
    def of(
        cls,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        tenants: Sequence[str] | None,
        versions: Mapping[str, Sequence[int]] | None,
        limit: int,
    ) -> Wanted:
        """Return what a claim asks for."""
        pairs = None if versions is None else [(task, one) for task, ones in versions.items() for one in ones]
        return cls(json.dumps(list(tasks)), _listed(queues), _listed(tenants), _listed(pairs), limit)


@dataclass(slots=True)
class Reached:
    """The lane after which the next claim starts, if one claim cannot read all lanes."""

    after_lane: int | None = None


class Scan(NamedTuple):
    """Lanes with ready jobs in the order in which they were found, whether these are all, and their groups."""

    lanes: Sequence[Row]
    whole: bool
    groups: Sequence[int] = ()

    def first(self, limit: int, room: Room | None) -> Sequence[Row]:
        """Return the lanes from which to claim: all of them, or as many as there are jobs to claim, with room."""
        if self.whole:
            return self.lanes
        if room is None:
            return self.lanes[:limit]
        unders = [room.under(*lane[3:]) for lane in self.lanes]
        room.read(unders)
        found: list[Row] = []
        for lane, under in zip(self.lanes, unders, strict=True):
            if room.has_room(under):
                found.append(lane)
                if len(found) == limit:
                    break
        return found


class SqliteLanes(SqliteLimitRoom):
    """Finds the lanes of a claim."""

    def _scan(self, wanted: Wanted, after_lane: int | None, most: int) -> Scan:
        """Read up to `most` lanes that have ready jobs, starting after a lane and wrapping around."""
        if wanted.limit <= 0:
            return Scan([], True)
        asked = {"tasks": wanted.tasks, "queues": wanted.queues, "versions": wanted.versions}
        groups = [row[0] for row in self._db.rows(_GROUPS, asked)]
        if wanted.tenants is not None:
            lanes = self._db.rows(_OF_TENANTS, (wanted.tenants,))
            return Scan([lane for lane in lanes if lane[2] >> LANE_BITS in groups], True, groups)
        found: list[Row] = []
        for lo, hi in _ranges(groups, after_lane or 0):
            if len(found) <= most:
                found += self._db.rows(_STEPS, {"lo": lo, "hi": hi, "most": most + 1 - len(found)})
        return Scan(found[:most], len(found) <= most, groups)


def _listed(values: Sequence[Any] | None) -> str | None:
    return None if values is None else json.dumps(list(values))


def _ranges(groups: Sequence[int], after: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of lanes to read, above the first number and up to the second."""
    whole = [(group << LANE_BITS, (group + 1 << LANE_BITS) - 1) for group in groups]
    yield from ((max(lo, after), hi) for lo, hi in whole if hi > after)
    yield from ((lo, min(hi, after)) for lo, hi in whole if lo < after)
