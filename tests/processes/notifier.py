"""An application with a target of outgoing webhooks, whose process dies where a test asks it to.

`KILL_AT` names a file. If it says `place`, a process dies after the target's place was moved and before its deliveries
are enqueued; if it says `failures`, after the deliveries of failures are enqueued and before the failures are removed
from their list. The file is removed, so that it happens once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from detent import Context, Detent, Retry
from detent.model.records import NewJob
from detent.store.contract import Verbs
from detent.webhooks import announcements

app = Detent()
if "NOTIFY_URL" in os.environ:
    app.notify(
        "erp", os.environ["NOTIFY_URL"], secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", on=("job.*", "alert.*")
    )


@app.task(name="fail", retry=Retry(0))
def fail(ctx: Context) -> None:
    raise RuntimeError("as it must")


@app.task(name="pass")
def pass_(ctx: Context) -> None: ...


def die_at(place: str) -> None:
    path = Path(os.environ.get("KILL_AT", "/none"))
    if path.exists() and path.read_text() == place:
        path.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """Verbs whose `job_enqueue` may be the last thing that their process does."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verbs, name)

    def job_enqueue(self, items: Sequence[NewJob]) -> Any:
        die_at("place")
        return self._verbs.job_enqueue(items)


moving = announcements._moving
announce_ends = announcements.Announcements.announce_ends


def deadly_moving(
    name: str, before: str, after: str, jobs: Sequence[NewJob], ending: Sequence[tuple[int, int, str]]
) -> Callable[[Any], bool]:
    move = moving(name, before, after, jobs, ending)
    return lambda verbs: move(Deadly(verbs))


def deadly_announce(self: announcements.Announcements, ends: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    unended = announce_ends(self, ends)
    die_at("failures")
    return unended


announcements._moving = deadly_moving
announcements.Announcements.announce_ends = deadly_announce  # type: ignore[method-assign]
