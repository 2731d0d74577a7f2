"""The demo from its beginning to its end. Import it when DETENT_DATABASE_URL says where: the application reads it."""

from __future__ import annotations

from detent.app.detent import Detent
from detent.cli.demo import books
from detent.cli.demo.crew import Crew
from detent.cli.demo.stage import Stage
from detent.cli.failures import CommandFailed
from detent.model.clock import Clock

__all__ = ["SECONDS_MAX", "play"]

SECONDS_MAX = 240.0
"""On a machine that has nothing else to do it takes a dozen."""

_LOOK_EVERY = 0.2
_KILL_AFTER = 0.25
"""The share of the jobs at rest before a worker is killed."""


def play(app: Detent, crew: Crew, stage: Stage, clock: Clock) -> None:
    """Enqueue, start two workers, kill one that is at work, start another, and return when all is done and all workers
    have gone. `CommandFailed` where that takes too long, or nobody was there to be killed."""
    until = clock.monotonic() + SECONDS_MAX
    books.open_ledger(app)
    jobs = books.fill(app)
    total = books.progress(app).total
    stage.say(f"enqueued {jobs} jobs, which will send {total - jobs} more; started {crew.start()} and {crew.start()}")
    killed = False
    while crew.at_work:
        seen = books.progress(app)
        stage.show(seen)
        if not killed and seen.at_rest >= seen.total * _KILL_AFTER:
            killed = _kill_one(app, crew, stage)
        if clock.monotonic() > until:
            raise CommandFailed(f"not done after {SECONDS_MAX:.0f} seconds; {crew.last_words()}")
        clock.sleep(_LOOK_EVERY)
    stage.show(books.progress(app))
    if not killed:
        raise CommandFailed(f"no worker was seen at work; {crew.last_words()}")


def _kill_one(app: Detent, crew: Crew, stage: Stage) -> bool:
    """Kill a worker that holds jobs right now, and start another; whether there was one."""
    for name, jobs in books.holders(app).items():
        if name in crew.at_work:
            process = crew.kill(name)
            stage.say(f"killed {name} (process {process}) with SIGKILL: {jobs} jobs were in its hands")
            stage.say(f"started {crew.start()} in its place; the {jobs} jobs come back when their lease has run out")
            return True
    return False
