"""Errors of workflows."""

from __future__ import annotations

from dataclasses import dataclass

from detent.errors.base import DetentError, Refused, essence

__all__ = [
    "BeingUndone",
    "ChildFailed",
    "CopyRefused",
    "HistoryFull",
    "JobEnded",
    "MailboxFull",
    "ParkSwallowed",
    "StepAmbiguous",
    "StepTooNew",
    "TokenUsed",
    "UndoFailed",
    "UndoRefused",
    "WaitOver",
    "WaitTimeout",
    "WorkflowDrift",
    "WorkflowUndone",
    "WrongToken",
]


@dataclass(eq=False)
class JobEnded(Refused):
    """A signal was sent to a workflow that has ended."""

    job_id: int
    state: str

    def __str__(self) -> str:
        return (
            f"job {self.job_id} takes no signals: it is {self.state}; "
            f"to start another workflow with the signal, use app.workflows.signal(key, …, start=call) with another key"
        )


@dataclass(eq=False)
class MailboxFull(Refused):
    """A workflow has too many signals that it has not taken."""

    job_id: int
    unread: int

    def __str__(self) -> str:
        return (
            f"job {self.job_id} has {self.unread:,} unread signals, which is the most a workflow can have; "
            f"wait until it has taken some, or cancel it"
        )


@dataclass(eq=False)
class WrongToken(Refused):
    """A token of a signal was not made by a workflow of this database, or it was changed."""

    def __str__(self) -> str:
        return "the token was refused: it is incomplete, or not one of this database; use the whole link as it was sent"


@dataclass(eq=False)
class TokenUsed(Refused):
    """A token of a signal was used before, with another payload. Each token counts once."""

    job_id: int
    signal: str

    def __str__(self) -> str:
        return (
            f"the token for signal {self.signal!r} of job {self.job_id} was used before, with another payload; "
            f"a token counts once, and its first payload stays"
        )


@dataclass(eq=False)
class WaitOver(Refused):
    """The wait for which a token was made is over."""

    job_id: int
    signal: str

    def __str__(self) -> str:
        return (
            f"the token for signal {self.signal!r} of job {self.job_id} came too late: it counts for one wait, "
            f"and that wait is over; use the token of a later question, if there is one"
        )


@dataclass(eq=False)
class CopyRefused(Refused):
    """A workflow was not rewound or forked: its record cannot be divided at that step, or not without force."""

    job_id: int
    word: str
    step: str | None
    why: str

    def __str__(self) -> str:
        where = "" if self.step is None else f" {'to' if self.word == 'rewound' else 'at'} {self.step!r}"
        return f"job {self.job_id} was not {self.word}{where}: {self.why}"


@dataclass(eq=False)
class StepAmbiguous(Refused):
    """Two steps of one name are in flight at once, so their records could not be told apart."""

    job_id: int
    path: str

    def __str__(self) -> str:
        return (
            f"two steps {self.path!r} of job {self.job_id} are in flight at once, and their records could not be told "
            f"apart; give each a key: Step({self.path!r}, key=…)"
        )


@dataclass(eq=False)
class HistoryFull(Refused):
    """A workflow has recorded as much as one generation can hold."""

    job_id: int
    found: str
    most: str

    def __str__(self) -> str:
        return (
            f"job {self.job_id} has recorded {self.found}, and a generation holds at most {self.most}; go on with "
            f"ctx.continue_as_new(…), or put finished parts into ctx.scope(…)"
        )


@dataclass(eq=False)
class WorkflowDrift(Refused):
    """The code of a workflow has changed, so that it no longer fits what is on record."""

    job_id: int
    asked: str
    expected: str

    def __str__(self) -> str:
        return (
            f"job {self.job_id} was about to run step {self.asked!r}, but step {self.expected!r} is on record and "
            f"comes next; the code has changed. Raise the workflow's version and branch on ctx.version, or put the old "
            f"order back; then retry the job"
        )


@dataclass(eq=False)
class StepTooNew(Refused):
    """A newer version of Detent has recorded a step of a kind that this version does not know."""

    job_id: int
    step: str
    kind: str
    release: str

    def __str__(self) -> str:
        return (
            f"job {self.job_id} cannot go on here: step {self.step!r} is on record as {self.kind!r}, which Detent "
            f"{self.release} does not know; nothing was run, and a worker of the newer version that recorded it "
            f"continues it. Upgrade Detent here"
        )


@dataclass(eq=False)
class ParkSwallowed(Refused):
    """The function of a workflow went on although its attempt was parked: it has caught BaseException."""

    job_id: int
    waited_for: str

    def __str__(self) -> str:
        return (
            f"job {self.job_id} was parked to wait for {self.waited_for}, but its function caught the exception that "
            f"ends the attempt and went on; catch Exception instead of BaseException around waits"
        )


@dataclass(eq=False)
class WaitTimeout(DetentError, TimeoutError):
    """Nothing arrived before the deadline of a wait."""

    job_id: int
    waited_for: str

    def __str__(self) -> str:
        return f"job {self.job_id} waited for {self.waited_for}, and nothing arrived in time"


@dataclass(eq=False)
class ChildFailed(DetentError):
    """A child of a workflow ended without success. If there are several, `failed` says how many."""

    job_id: int
    child_id: int
    state: str
    error: str | None = None
    failed: int = 1
    total: int = 1

    def __str__(self) -> str:
        why = f": {essence(self.error)}" if self.error else ""
        which = f"child {self.child_id} of job {self.job_id} is {self.state}{why}"
        return which if self.total == 1 else f"{self.failed:,} of {self.total:,} children failed; {which}"


@dataclass(eq=False)
class UndoFailed(DetentError):
    """The undo of a step failed for good. The steps before it are not undone yet."""

    job_id: int
    path: str
    why: str

    def __str__(self) -> str:
        return (
            f"the undo of step {self.path!r} of job {self.job_id} failed: {self.why}; "
            f"mend the cause and retry the job: its undo goes on with this step"
        )


@dataclass(eq=False)
class UndoRefused(Refused):
    """The steps of a job cannot be undone by another job."""

    job_id: int
    found: str
    allowed: str

    def __str__(self) -> str:
        return f"the steps of job {self.job_id} cannot be undone: {self.found}; {self.allowed}"


@dataclass(eq=False)
class BeingUndone(Refused):
    """A job cannot be retried while another job undoes its steps."""

    job_id: int
    undo_id: int

    def __str__(self) -> str:
        return (
            f"job {self.job_id} cannot be retried: job {self.undo_id} undoes its steps and has not succeeded yet; "
            f"wait for it (detent jobs why {self.undo_id}), or retry that one if it has stopped"
        )


@dataclass(eq=False)
class WorkflowUndone(DetentError):
    """The steps of a workflow were undone, because it failed or was cancelled."""

    job_id: int
    cause: str

    def __str__(self) -> str:
        return f"the steps of job {self.job_id} were undone: {essence(self.cause)}"
