"""Whether jobs come and go in any worker, as far as the agenda shows.

A service that looks at ended jobs need not look again if none can have ended since. A job ends under a lease, and a
lease is taken, renewed while its jobs run, and dropped. So if no lease has changed for a while, no job has ended that
the service has not seen.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from detent.model.service_records import Agenda

__all__ = ["JobActivity"]

_CALM_AFTER = timedelta(seconds=5)
_TAIL = timedelta(seconds=30)
"""How long after the last change of a lease a job may still end under it without a renewal, for leases of up to 90
s."""


class JobActivity:
    """Follows the agendas that the heartbeat gets. All times are from the database's clock."""

    def __init__(self) -> None:
        self._last: Agenda | None = None
        self._changed_at: datetime | None = None

    def update(self, agenda: Agenda) -> None:
        """Take the newest agenda."""
        if self._last is None or agenda.lease_checksum != self._last.lease_checksum:
            self._changed_at = agenda.now
        self._last = agenda

    @property
    def agenda(self) -> Agenda | None:
        """The newest agenda; None before the first."""
        return self._last

    @property
    def is_calm(self) -> bool:
        """Whether no jobs have come or gone in the last few seconds."""
        if self._last is None or self._changed_at is None:
            return False
        return self._last.lease_checksum is None or self._last.now >= self._changed_at + _CALM_AFTER

    def next_look(self, agenda: Agenda, looked_at: datetime | None) -> datetime | None:
        """Return when a service that last looked at `looked_at` should look again: at once after a change, and once
        more when the jobs of that change must have ended. None if not before the next change."""
        if looked_at is None or self._changed_at is None or looked_at < self._changed_at:
            return agenda.now
        return self._ended_by(agenda) if looked_at < self._ended_by(agenda) else None

    def _ended_by(self, agenda: Agenda) -> datetime:
        changed_at = self._changed_at or agenda.now
        return changed_at if agenda.lease_checksum is None else changed_at + _TAIL
