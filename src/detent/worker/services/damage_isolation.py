"""Keeps one damaged row from stopping a service: a batch that fails is handled row by row.

A row that fails by itself is skipped for a while, so that it does not stop the following batches. It is reported once,
in the log and as an alert. After a while it is tried again, because it may have been repaired.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from detent.errors import DatabaseError
from detent.model.records import BadRow
from detent.store.contract import Store
from detent.store.row_errors import is_of_one_row

__all__ = ["POLICY", "DamageIsolation", "SkippedRows"]

log = logging.getLogger("detent.worker")

T = TypeVar("T")

POLICY = "row_damaged"
_RETRY_AFTER = 60.0
_MAX = 10_000
_LOGGED_MAX = 5
_NAMED_MAX = 20


class SkippedRows:
    """The rows that one service skips for now, and those that were reported. It does no I/O."""

    def __init__(self, retry_after: float = _RETRY_AFTER, rows_max: int = _MAX) -> None:
        self._retry_after = retry_after
        self._rows_max = rows_max
        self._until: dict[int, float] = {}
        self._reported: dict[tuple[str, str], BadRow] = {}

    def skip(self, now: float) -> list[int]:
        """Return the ids to skip now. Ids whose time is over are forgotten, so that they are tried again."""
        self._until = {skip_id: until for skip_id, until in self._until.items() if now < until}
        return sorted(self._until)

    def add(self, bad: Sequence[BadRow], now: float) -> list[BadRow]:
        """Skip these rows; return those that were not reported yet. Above the maximum, the oldest are forgotten."""
        for row in bad:
            self._until[row.skip_id] = now + self._retry_after
        while len(self._until) > self._rows_max:
            self._until.pop(next(iter(self._until)))
        new = [row for row in bad if (row.entity, row.entity_id) not in self._reported]
        for row in new:
            self._reported[row.entity, row.entity_id] = row
        while len(self._reported) > self._rows_max:
            self._reported.pop(next(iter(self._reported)))
        return new

    def handled_all(self) -> bool:
        """Note that a whole batch was handled without skipping. Return whether rows had been reported before."""
        had, self._reported = bool(self._reported), {}
        return had

    @property
    def reported(self) -> list[BadRow]:
        """The reported rows that may still be damaged, the oldest first."""
        return list(self._reported.values())


class DamageIsolation:
    """Runs the batches of one service, row by row if they fail."""

    def __init__(self, service: str, store: Store, skipped: SkippedRows | None = None) -> None:
        self._service = service
        self._store = store
        self._skipped = skipped or SkippedRows()

    def run(
        self,
        now: float,
        batch: Callable[[], T],
        each: Callable[[Sequence[int]], T],
        bad_of: Callable[[T], Sequence[BadRow]],
    ) -> T:
        """Return what `batch` returns. If a row makes it fail, or rows are skipped, return what `each` returns for all
        other rows. Errors of the database itself are raised."""
        skip = self._skipped.skip(now)
        if not skip:
            try:
                done = batch()
            except Exception as error:
                if not is_of_one_row(error):
                    raise
            else:
                if self._skipped.handled_all():
                    self._resolve()
                return done
        done = each(skip)
        bad = bad_of(done)
        if bad:
            self._report(self._skipped.add(bad, now))
        return done

    def report(self, bad: Sequence[BadRow], now: float) -> None:
        """Report rows that the service skipped by itself, each once, in the log and as an alert."""
        self._report(self._skipped.add(bad, now))

    def _report(self, new: Sequence[BadRow]) -> None:
        for row in new[:_LOGGED_MAX]:
            log.error(
                "service %s cannot handle %s %s and goes on without it: %s; run `detent verify`",
                *(self._service, row.entity, row.entity_id, row.cause),
            )
        if len(new) > _LOGGED_MAX:
            log.error("service %s goes on without %d more rows", self._service, len(new) - _LOGGED_MAX)
        rows = self._skipped.reported
        if not rows:
            return
        first = rows[0]
        more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
        message = (
            f"service {self._service} cannot handle {first.entity} {first.entity_id}: {first.cause}{more}; "
            f"everything else goes on; run `detent verify`"
        )
        named = [f"{row.entity} {row.entity_id}" for row in rows[:_NAMED_MAX]]
        facts = msgspec.json.encode({"rows": named, "count": len(rows)}).decode()
        try:
            self._store.alert_raise(POLICY, f"service:{self._service}", "critical", message, facts, float(len(rows)))
        except DatabaseError as error:
            if not is_of_one_row(error):
                raise
            log.error("no alert can be raised for service %s: %s", self._service, error)

    def _resolve(self) -> None:
        text = f"service {self._service} can handle every row again"
        self._store.alert_resolve(POLICY, f"service:{self._service}", text)
