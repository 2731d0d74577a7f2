"""What a child reports to its supervisor about its leases."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from detent.worker.supervisor.channel import Channel

__all__ = ["LeaseReports"]


class LeaseReports:
    """Reports new leases and leases that are done.

    Jobs may begin before their lease is reported, because the supervisor also renews the lease it sees on the board. A
    lease that is done by then is never reported: otherwise the supervisor would renew it for ever.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._unreported: int | None = None

    def add(self, lease_id: int) -> None:
        """Note a new lease. Called before any of its jobs begins."""
        self._unreported = lease_id

    def send(self) -> None:
        """Report the new lease, if it is not done yet."""
        with self._lock:
            lease_id, self._unreported = self._unreported, None
            if lease_id is not None:
                self._channel.send("lease", id=lease_id)

    def send_done(self, leases: list[int], tally: Mapping[str, int]) -> None:
        """Report leases of which every job has ended and was written."""
        with self._lock:
            if self._unreported in leases:
                self._unreported = None
            self._channel.send("done", leases=leases, tally=tally)
