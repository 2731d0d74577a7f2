"""The application of workers that become zombies: each of their moments may stop the process that comes to it.

The prover writes the name of a moment into a file (`arm`). The first process that comes to that moment takes the file
away and stops itself by SIGSTOP, exactly there.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from detent import Context, Detent, Retry
from detent.client.engine import Engine
from detent.declare.workflow_context import WorkflowContext
from detent.errors import DetentError
from detent.store.contract import Store
from prove.coverage import error_points

__all__ = ["FOLDER", "MOMENTS", "Stops", "make_app"]

FOLDER = "ZOMBIE_FOLDER"
"""The environment variable with the folder of the files."""
PATIENT = Retry(100, base=0.05, cap=0.5)
INSERT = "INSERT INTO ledger (job_id, attempt) VALUES (:job_id, :attempt)"

MOMENTS: dict[str, tuple[str, ...]] = {
    "effect": (
        *("before job_claim", "after job_claim", "started", "in the block", "committed"),
        *("before lease_renew", "after lease_renew"),
    ),
    "report": ("before job_finish", "after job_finish"),
    "once": ("before job_start", "after job_start"),
    "flow": (
        *("in a step", "before step_record", "after step_record", "in a transaction"),
        *("before workflow_park", "after workflow_park"),
    ),
}
"""The moments of a job by its task. `before` and `after` are those of calls of the store."""
_VERBS = {moment.partition(" ")[2] for moments in MOMENTS.values() for moment in moments if "_" in moment}


class Stops:
    """The files of one database: which moment is armed, which process has stopped, and what its calls were answered."""

    def __init__(self, folder: Path) -> None:
        self._armed = folder / "armed"
        self._stopped = folder / "stopped"
        self._answers = folder / "answers"
        self._calls = folder / "calls"

    def arm(self, moment: str) -> None:
        """Let the next process that comes to this moment stop there."""
        new = self._armed.with_suffix(".new")
        new.write_text(moment)
        new.rename(self._armed)

    def disarm(self) -> None:
        """Let no process stop any more."""
        self._armed.unlink(missing_ok=True)

    def take_stopped(self) -> int:
        """Return the process that has stopped, once; 0 if none has."""
        with suppress(FileNotFoundError, ValueError):
            pid = int(self._stopped.read_text())
            self._stopped.unlink()
            return pid
        return 0

    def at(self, moment: str) -> None:
        """Stop this process if the moment is armed."""
        with suppress(FileNotFoundError):
            if self._armed.read_text() != moment:
                return
            mine = self._armed.with_suffix(f".{os.getpid()}")
            self._armed.rename(mine)
            mine.write_text(str(os.getpid()))
            mine.rename(self._stopped)
            # To this thread: if the signal went to another one, this one would run on for a moment.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    def note_errors(self, answer: Any) -> None:
        """Keep the points of the errors in an answer of the store."""
        _append(self._answers, error_points(answer))

    def errors(self) -> list[str]:
        """Return the points of all errors that the workers were answered."""
        return self._answers.read_text().splitlines() if self._answers.exists() else []

    def note_call(self, job_id: int) -> None:
        """Keep that a function was called."""
        _append(self._calls, [str(job_id)])

    def calls(self) -> list[str]:
        """Return the id of the job for each call."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []


def _append(path: Path, lines: Any) -> None:
    if text := "".join(f"{line}\n" for line in lines):
        with path.open("a") as file:
            file.write(text)


class _StoppingStore:
    """A store that may stop the process before and after some of its calls."""

    def __init__(self, store: Store, stops: Stops) -> None:
        self._store = store
        self._stops = stops

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)
        return self._stopping(name, verb) if name in _VERBS else verb

    def claim_ahead(self, **terms: Any) -> Any:
        """Prepare a claim, which stops like one that is made at once."""
        return self._stopping("job_claim", self._store.claim_ahead(**terms))

    def _stopping(self, name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self._stops.at(f"before {name}")
            try:
                answer = verb(*args, **named)
            except DetentError as error:
                self._stops.note_errors(error)
                raise
            self._stops.note_errors(answer)
            if answer:
                self._stops.at(f"after {name}")
            return answer

        return call


def make_app(url: str | None = None, folder: str = "") -> Detent:
    """Return the application. With a folder, its processes may be stopped. `later` is for how many seconds attempts
    after the first work, so that the first may go on in the middle of another."""
    stops, app = Stops(Path(folder)), Detent(url)

    @app.task(name="effect", retry=PATIENT)
    def effect(ctx: Context, seconds: float, later: float) -> str:
        stops.at("started")
        time.sleep(later if ctx.attempt > 1 else seconds)
        try:
            with ctx.commit() as tx:
                tx.execute(INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt})
                stops.at("in the block")
        except DetentError as error:
            stops.note_errors(error)
            raise
        stops.at("committed")
        return f"attempt {ctx.attempt}"

    @app.task(name="report", retry=PATIENT)
    def report(ctx: Context, later: float) -> str:
        time.sleep(later if ctx.attempt > 1 else 0)
        return f"attempt {ctx.attempt}"

    @app.task(name="once", idempotent=False)
    def once(ctx: Context) -> str:
        stops.note_call(ctx.job_id)
        return f"attempt {ctx.attempt}"

    def call(ctx: WorkflowContext, later: float) -> str:
        stops.at("in a step")
        time.sleep(later if ctx.attempt > 1 else 0)
        return f"attempt {ctx.attempt}"

    def book(tx: Any, ctx: WorkflowContext) -> str:
        tx.execute(INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt})
        stops.at("in a transaction")
        return f"attempt {ctx.attempt}"

    @app.workflow(name="flow", retry=PATIENT)
    def flow(ctx: WorkflowContext, later: float) -> str:
        try:
            ctx.step("call", call, ctx, later)
            ctx.transact("book", book, ctx)
            ctx.sleep(0.2)
        except DetentError as error:
            stops.note_errors(error)
            raise
        return f"attempt {ctx.attempt}"

    return app


app = make_app(folder=os.environ.get(FOLDER, ""))
if FOLDER in os.environ:
    _stopping = cast(Store, _StoppingStore(app.store, Stops(Path(os.environ[FOLDER]))))
    app.rewire(Engine(app.settings, None, _stopping))
