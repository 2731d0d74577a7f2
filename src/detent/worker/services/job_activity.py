"""Whether jobs come and go, anywhere, as far as the agenda tells.

Whoever looks at what became of jobs need not look again where none can have ended since. A job ends under a lease, and
a lease is taken, then renewed for as long as its jobs run, and goes: so where no lease has changed for a while, nothing
has ended that was not looked at.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from detent.model.service_records import Agenda

__all__ = ["JobActivity"]

_A_FEW = timedelta(seconds=5)
_TAIL = timedelta(seconds=30)
"""How long after the last change of a lease of up to a minute and a half a job may still end under it, unrenewed."""


class JobActivity:
    """Hears every agenda. Times are the database's."""

    def __init__(self) -> None:
        self._last: Agenda | None = None
        self._changed_at: datetime | None = None

    def heard(self, agenda: Agenda) -> None:
        """The newest agenda."""
        if self._last is None or agenda.stir != self._last.stir:
            self._changed_at = agenda.now
        self._last = agenda

    @property
    def agenda(self) -> Agenda | None:
        """The newest, where there is one."""
        return self._last

    @property
    def is_calm(self) -> bool:
        """Whether nothing has come or gone in the last few seconds."""
        if self._last is None or self._changed_at is None:
            return False
        return self._last.stir is None or self._last.now >= self._changed_at + _A_FEW

    def look_at(self, agenda: Agenda, looked_at: datetime | None) -> datetime | None:
        """When to look again, for one that has looked at `looked_at`: at once after a change, once more when its jobs
        must have ended; then not before the next change."""
        if looked_at is None or self._changed_at is None or looked_at < self._changed_at:
            return agenda.now
        return self._over_at(agenda) if looked_at < self._over_at(agenda) else None

    def _over_at(self, agenda: Agenda) -> datetime:
        changed_at = self._changed_at or agenda.now
        return changed_at if agenda.stir is None else changed_at + _TAIL
