"""Checks the record while it is in use (R2), in small steps whatever its size."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from detent.errors import DatabaseBusy, DatabaseForbidden
from detent.model.clock import Clock, SystemClock
from detent.model.records import Violation
from detent.model.service_records import WalkPlace
from detent.store.contract import Store
from detent.worker.log_limit import DAMAGE
from detent.worker.services.service import Service

__all__ = ["Invariants"]

log = logging.getLogger("detent.worker")

_LOOK_EVERY = 10.0
_FIRST_AFTER = 60.0
_FIRST: tuple[Literal["schema", "jobs", "queue"], ...] = ("schema", "jobs", "queue")
_FIRST_ROWS = 200
_PAUSE_MIN = 1.0
_REST = 600.0
"""Seconds between two passes, so that a small record is not checked all day."""
_PAUSE_FACTOR = 100
_STEP_SECONDS = 0.2
_ROWS_MIN = 10
_ROWS_MAX = 2_000
_REMEMBERED_MAX = 10_000
_NAMED_MAX = 20
_LINES_MAX = 2
_POLICY = "invariant_violated"


class Invariants:
    """Checks one step at a time. Each step is followed by a pause of a hundred times its duration, so that the check
    takes about a hundredth of a core. A long step is followed by a smaller one.

    Each violation is reported once. One that was repaired and comes back is reported again by a later pass. A pass
    begins with the newest rows, and the next one begins ten minutes after its end. No state is kept between processes.
    """

    def __init__(self, store: Store, clock: Clock | None = None, rows_max: int = _ROWS_MAX) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._rows = self._rows_max = rows_max
        self._place = WalkPlace()
        self._not_before: float | None = None
        self._known: set[Violation] = set()
        self._found: set[Violation] = set()
        self._is_forbidden = False

    def service(self) -> Service:
        """Return the service: by one worker. The pauses between steps are at least about as long as that of the
        service."""
        return Service("invariants", _LOOK_EVERY, self.run, alone=True)

    def run(self, now: float) -> None:
        """Take the next step, if it is due.

        The first call checks the cheap parts at once, so that a worker that starts on a damaged database reports it;
        the first pass begins a minute later. If the worker's login may not read the tables, that is logged once, and
        the check is left to `detent verify`.
        """
        is_first = self._not_before is None
        if self._is_forbidden or (self._not_before is not None and now < self._not_before):
            return
        began_at = self._clock.monotonic()
        pause = _FIRST_AFTER if is_first else _PAUSE_MIN
        try:
            if is_first:
                self.look_first()
            elif self.step():
                pause = _REST
        except DatabaseForbidden as error:
            self._is_forbidden = True
            log.warning("This worker does not check the record: %s. Run `detent verify` as the owner instead.", error)
        except DatabaseBusy:
            self._rows = max(_ROWS_MIN, self._rows // 2)
            raise
        finally:
            took = self._clock.monotonic() - began_at
            self._not_before = now + took + max(pause, _PAUSE_FACTOR * took)
        if took > _STEP_SECONDS:
            self._rows = max(_ROWS_MIN, self._rows // 2)
        elif took < _STEP_SECONDS / 4:
            self._rows = min(self._rows_max, self._rows * 2)

    def look_first(self) -> None:
        """Check the schema, the newest jobs and the head of the queue, a bounded number of rows, and report what is
        new."""
        found: set[Violation] = set()
        for part in _FIRST:
            found |= set(self._store.verify_step(WalkPlace(part=part), min(self._rows, _FIRST_ROWS)).violations)
        self._report(found)

    def step(self) -> bool:
        """Check the next part of the record and report what is new; return whether the pass has ended with it."""
        done = self._store.verify_step(self._place, self._rows)
        self._report(set(done.violations))
        self._place = done.then or WalkPlace()
        if done.then is None:
            self._known, self._found = self._found, set()
            self._alert(self._known)
            self._resolve({one.invariant for one in self._known})
        return done.then is None

    def _report(self, found: set[Violation]) -> None:
        """Log and alert violations that were not found before."""
        new = sorted(found - self._known - self._found, key=lambda one: (one.invariant, one.entity, one.entity_id))
        new = new[: max(0, _REMEMBERED_MAX - len(self._found))]
        self._log(new)
        self._found |= {*new, *(found & self._known)}
        self._alert(new)

    def _log(self, new: Sequence[Violation]) -> None:
        """Log each violation. More than two are logged as one line, which names one row of each invariant."""
        if len(new) <= _LINES_MAX:
            for one in new:
                log.error(
                    "invariant %s does not hold for %s %s: %s",
                    one.invariant,
                    one.entity,
                    one.entity_id,
                    one.detail,
                    extra=DAMAGE if one.invariant == "storage_is_sound" else None,
                )
            return
        named = [
            f"{invariant} ({rows[0].entity} {rows[0].entity_id}" + (f" and {len(rows) - 1} more)" if rows[1:] else ")")
            for invariant, rows in _by_invariant(new)
        ]
        log.error("%d rows break invariants: %s; run `detent verify`", len(new), ", ".join(named))

    def _alert(self, violations: Iterable[Violation]) -> None:
        """Raise one alert for each invariant, however many rows break it."""
        for invariant, rows in _by_invariant(violations):
            first = min(rows, key=lambda one: (one.entity, one.entity_id))
            named = [f"{one.entity} {one.entity_id}" for one in rows[:_NAMED_MAX]]
            self._store.alert_raise(
                _POLICY,
                f"invariant:{invariant}",
                "critical",
                f"invariant {invariant} does not hold for {first.entity} {first.entity_id}: {first.detail}"
                + (f", and {len(rows) - 1} more" if len(rows) > 1 else ""),
                msgspec.json.encode({"violations": len(rows), "rows": named}).decode(),
                len(rows),
            )

    def _resolve(self, broken: set[str]) -> None:
        """Resolve, after a whole pass, the alerts of invariants that hold for every row again."""
        for row in self._store.alert_list("firing", _REMEMBERED_MAX):
            invariant = row.scope.removeprefix("invariant:")
            if row.policy == _POLICY and invariant not in broken:
                self._store.alert_resolve(_POLICY, row.scope, f"invariant {invariant} holds again")


def _by_invariant(violations: Iterable[Violation]) -> list[tuple[str, list[Violation]]]:
    broken: dict[str, list[Violation]] = {}
    for one in violations:
        broken.setdefault(one.invariant, []).append(one)
    return sorted(broken.items())
