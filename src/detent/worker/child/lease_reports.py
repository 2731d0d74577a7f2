"""What a child tells its supervisor of leases."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from detent.worker.supervisor.channel import Channel

__all__ = ["LeaseReports"]


class LeaseReports:
    """The supervisor renews what it has seen on the board, too: so jobs begin before it is told of their lease. Of one
    that is over by then it never hears: told of after its end, it would be renewed for ever."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._untold: int | None = None

    def took(self, lease_id: int) -> None:
        """Before any of its jobs begins."""
        self._untold = lease_id

    def tell(self) -> None:
        """There is time now."""
        with self._lock:
            lease_id, self._untold = self._untold, None
            if lease_id is not None:
                self._channel.send("lease", id=lease_id)

    def done(self, leases: list[int], tally: Mapping[str, int]) -> None:
        """All that was held under them is written."""
        with self._lock:
            if self._untold in leases:
                self._untold = None
            self._channel.send("done", leases=leases, tally=tally)
