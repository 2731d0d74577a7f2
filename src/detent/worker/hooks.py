"""The user's own functions on jobs that were given up, on a thread of their own: slow ones hold nobody up."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from detent.app.detent import Detent
from detent.worker.channel import Channel

__all__ = ["Hooks"]


class Hooks:
    """Calls them one after another, in the order of telling."""

    def __init__(self, app: Detent, channel: Channel) -> None:
        self._app = app
        self._channel = channel
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="detent-hook")

    def tell(self, job_ids: Iterable[int], *, confirm: bool = False) -> None:
        """Tell of these; with `confirm` the supervisor hears when each was told."""
        for job_id in job_ids:
            self._thread.submit(self._app.tell_failure, job_id)
            if confirm:
                self._thread.submit(self._channel.send, "told", jobs=[job_id])

    def wait(self, seconds: float) -> None:
        """Until all of them were told, or so long."""
        with suppress(TimeoutError):
            self._thread.submit(lambda: None).result(seconds)
