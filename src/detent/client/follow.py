"""Reading the events of a job, also those still to come."""

from __future__ import annotations

from collections.abc import Iterator

from detent.declare.settings import Settings
from detent.errors import NotFound
from detent.lifecycle.library import JOB
from detent.model.records import EventRow
from detent.store.contract import Verbs

__all__ = ["event_pages"]

_PAGE = 500
_FIRST_PAUSE = 0.01


def event_pages(
    verbs: Verbs, job_id: int, settings: Settings, *, follow: bool
) -> Iterator[tuple[list[EventRow], float]]:
    """Yield the events of a job in order, page by page, each page with the pause before the next one should be read.

    With `follow` this goes on until the job rests. `NotFound`.
    """
    pause, after_seq = _FIRST_PAUSE, 0
    while True:
        (row,) = verbs.job_get([job_id])
        if row is None:
            raise NotFound("job", str(job_id))
        lines = verbs.job_events(job_id, after_seq, _PAGE)
        after_seq = lines[-1].seq if lines else after_seq
        # The row was read before the lines: a job at rest then has no line that was missed.
        if len(lines) < _PAGE and (not follow or row.state in JOB.rests):
            yield lines, 0.0
            return
        pause = _FIRST_PAUSE if lines else min(pause * 1.5, settings.wait_poll)
        yield lines, 0.0 if len(lines) == _PAGE else pause
