"""The part of `Detent` that writes what the code declares: schedules, limits, and times of tasks.

Declaring touches no database. A worker writes the declarations when it starts, and `detent migrate --app` writes them
too. The database remembers the fingerprint of every declaration that code has made, so a program can tell three cases
apart: its declaration is new, it is in force already, or newer code has replaced it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from detent.app.keeping import Keeping
from detent.app.limiting import Limiting
from detent.declare.task import Options
from detent.model.limit_records import NewLimit
from detent.model.records import Moved
from detent.model.service_records import DeclaredKind, NewSchedule, TaskTimes
from detent.schedule.firing import from_now
from detent.store.contract import Verbs

__all__ = ["Declarations", "Declared"]

_FOREVER = 1e9
"""Seconds: about thirty years."""


class Declarations(msgspec.Struct, frozen=True):
    """What became of the declarations: `kind name` each. `written`: new, or changed. `replaced`: not written, because
    newer code has declared something else. `left`: schedules in the database that code declared once, for tasks of
    this application, and that its code no longer declares."""

    written: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Declared(Keeping, Limiting):
    """Schedules, limits and times, from code to database."""

    def put_declared(self, *, again: bool = False) -> Declarations:
        """Write the declared schedules and limits, and the times of the declared tasks. What was declared before in the
        same words is not written again. What newer code has replaced is left alone, or written with `again`."""
        written: list[str] = []
        replaced: list[str] = []
        store = self._wiring.store
        known = {(row.kind, row.name): row.fingerprint for row in store.declaration_list()}
        for kind, name, print_, write in self._declarations():
            if known.get((kind, name)) == print_:
                continue
            answer = store.together(lambda verbs: _declare(verbs, kind, name, print_, write, again=again))  # noqa: B023
            if answer != "same":
                (written if answer == "new" else replaced).append(f"{kind} {name}")
        self._put_times()
        return Declarations(tuple(written), tuple(replaced), tuple(self.left_schedules()))

    def put_limits(self) -> None:
        """Write the declarations now, as a worker does when it starts."""
        self.put_declared(again=True)

    def left_schedules(self) -> list[str]:
        """The names of schedules that code declared once, for tasks of this application, and that this application's
        code no longer declares."""
        store = self._wiring.store
        by_code = {row.name for row in store.declaration_list() if row.kind == "schedule"}
        return [
            row.name
            for row in store.schedule_list()
            if row.name in by_code and row.name not in self._schedules and row.task in self._tasks
        ]

    def schedule_origins(self) -> dict[str, str]:
        """Where each schedule comes from: `code`, `hand`, or `left the code`."""
        by_code = {row.name for row in self._wiring.store.declaration_list() if row.kind == "schedule"}
        left = set(self.left_schedules())
        return {
            row.name: "left the code" if row.name in left else "code" if row.name in by_code else "hand"
            for row in self._wiring.store.schedule_list()
        }

    def prune_schedules(self, *, actor: str, reason: str | None = None) -> list[Moved]:
        """Remove the schedules that `left_schedules` names."""
        return [self.unschedule(name, actor=actor, reason=reason) for name in self.left_schedules()]

    def _declarations(self) -> list[tuple[DeclaredKind, str, str, Callable[[Verbs], object]]]:
        found: list[tuple[DeclaredKind, str, str, Callable[[Verbs], object]]] = []
        for name, limit in self._declared_limits().items():
            found.append(("limit", name, _fingerprint(limit), _putting_limit(limit)))
        for name, schedule in sorted(self._schedules.items()):
            found.append(("schedule", name, _fingerprint(schedule), _putting_schedule(schedule)))
        return found

    def _put_times(self) -> None:
        store = self._wiring.store
        known = {one.task: one for one in store.times_list()}
        said = [_times(name, task.options) for name, task in sorted(self._tasks.items())]
        changed = [one for one in said if known.get(one.task, TaskTimes(task=one.task)) != one]
        if changed:
            store.times_put(changed)


def _declare(
    verbs: Verbs, kind: DeclaredKind, name: str, print_: str, write: Callable[[Verbs], object], *, again: bool
) -> str:
    answer = verbs.declaration_put(kind, name, print_, again)
    if answer == "new":
        write(verbs)
    return answer


def _putting_limit(item: NewLimit) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.limit_put(item)


def _putting_schedule(item: NewSchedule) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.schedule_put(from_now(item, verbs.now()))


def _fingerprint(item: NewLimit | NewSchedule) -> str:
    said = {name: getattr(item, name) for name in item.__struct_fields__ if name != "next_at"}
    text = msgspec.json.encode({name: value for name, value in sorted(said.items()) if value is not None})
    return hashlib.sha256(text).hexdigest()[:32]


def _times(name: str, options: Options) -> TaskTimes:
    silent = (options.stale_after, options.stalled_after)
    stale, stalled = (None if seconds is None else float(min(seconds, _FOREVER)) for seconds in silent)
    kept = None if options.result_ttl is None else float(options.result_ttl)
    return TaskTimes(task=name, stale_after=stale, stalled_after=stalled, result_ttl=kept)
