"""The errors that Detent raises.

    DetentError
    ├── Refused                   a request was refused, and nothing was changed
    │   ├── InvalidTransition     the lifecycle declares no such move
    │   ├── TransitionRace        another caller moved it first
    │   ├── LeaseLost             the caller does not hold this attempt, or no longer
    │   ├── AlreadyCommitted      the effect has happened, and cannot be stopped or repeated
    │   ├── KeyConflict           the key belongs to another job
    │   ├── IdConflict            the id belongs to another job
    │   ├── NotFound              no such row
    │   ├── NotUnknown            the outcome of the job's effect is known, so there is nothing to settle
    │   ├── MarkerMissing         another database has no table for markers of commits
    │   ├── BatchChanged          the batch's declaration has changed since its run was previewed
    │   ├── PreviewNotReady       a batch run cannot be applied before its preview is complete
    │   ├── DuplicateTarget       a batch run names a target twice
    │   ├── RunBusy               another action on the run must end first
    │   ├── InUse                 jobs need what was to be removed
    │   ├── NameTaken             another one has the name
    │   ├── RunInProgress         a run of the same watermark has not ended
    │   ├── PartOfRun             a job of a pipeline run cannot be retried by itself
    │   ├── NotRetryable          a failed pipeline run has nothing to continue with
    │   ├── UnknownTask           no task of that name is declared here
    │   ├── WrongSignature        a delivery to a webhook is not signed, or not with its secret
    │   ├── JobEnded              a workflow has ended, and takes no signals
    │   ├── MailboxFull           a workflow has too many unread signals
    │   ├── WrongToken            a token of a signal is not one of this database
    │   ├── TokenUsed             a token of a signal was used before, with another payload
    │   ├── WaitOver              the wait for which a token was made is over
    │   ├── CopyRefused           a workflow cannot be rewound or forked there, or not without force
    │   ├── StepAmbiguous         two steps of a workflow cannot be told apart
    │   ├── HistoryFull           a workflow has recorded as much as it can
    │   ├── WorkflowDrift         the code of a workflow does not fit its record
    │   ├── StepTooNew            a newer version of Detent has recorded a step of a workflow
    │   ├── ParkSwallowed         the function of a workflow went on although it was parked
    │   ├── UndoRefused           the steps of a job cannot be undone by another job
    │   ├── BeingUndone           another job undoes the steps of the job
    │   ├── MoveRefused           a database cannot be moved to that place, or not now
    │   └── WrongPlace            the call cannot be made from where it was made
    ├── InvalidInput              a value is not allowed (also a ValueError)
    │   ├── InvalidPayload        a value cannot be stored as JSON
    │   ├── InvalidArguments      arguments do not fit the signature of a task
    │   ├── InvalidLifecycle      a lifecycle contradicts itself
    │   └── InvalidSetting        a setting is out of range
    ├── DatabaseError             the database failed, not the request
    │   ├── DatabaseUnreachable   no connection could be made
    │   │   └── DatabaseInaccessible   a login is refused, or a database or directory does not exist
    │   ├── DatabaseBusy          locked, deadlocked or out of connections: retry
    │   ├── DatabaseFull          no space left
    │   ├── DatabaseReadOnly      it accepts no writes
    │   │   └── DatabaseMoved         `detent move` moves it to another database, or has moved it
    │   ├── DatabaseForbidden     the login lacks a privilege
    │   ├── NotADatabase          the path is not a database
    │   ├── OutcomeUnknown        the connection was lost during COMMIT
    │   ├── SchemaMissing         the database has no Detent schema, and creating one is not allowed
    │   ├── SchemaTooNew          a newer version of Detent has migrated it
    │   ├── SchemaTooOld          `detent migrate` has to be run
    │   ├── SchemaDiffers         a migration was applied with another text than this version has
    │   ├── SchemaUnreleased      an unreleased version of Detent created it
    │   ├── ReleaseTooOld         a newer release has installed its functions, triggers and views
    │   ├── LifecycleTooOld       the database has a newer version of an attached lifecycle
    │   ├── UnknownState          a row is in a state that this version does not know
    │   └── GuardViolation        a guard of the database refused a statement
    ├── JobFailed                 the awaited job ended without success
    ├── ResultExpired             the result of the job is no longer kept
    ├── JobTimeout                the awaited job did not end in time (also a TimeoutError)
    ├── WaitTimeout               a workflow waited, and nothing arrived in time (also a TimeoutError)
    ├── ChildFailed               a child of a workflow ended without success
    ├── UndoFailed                the undo of a workflow's step failed for good
    ├── WorkflowUndone            a workflow failed or was cancelled, and its steps were undone
    ├── RunStuck                  the awaited run cannot continue by itself
    └── RunTimeout                the awaited run did not get there in time (also a TimeoutError)

Each message is made from the fields of its error: what was refused, what was found, what to do.
`TABLE` at the end maps each class to its SQLSTATE, HTTP status and exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from detent.errors.awaited_jobs import JobFailed, JobTimeout, ResultExpired
from detent.errors.base import DetentError, Refused, clipped, essence, is_step_note, step_note
from detent.errors.database import (
    DatabaseBusy,
    DatabaseError,
    DatabaseForbidden,
    DatabaseFull,
    DatabaseInaccessible,
    DatabaseReadOnly,
    DatabaseUnreachable,
    GuardViolation,
    LifecycleTooOld,
    NotADatabase,
    OutcomeUnknown,
    ReleaseTooOld,
    SchemaDiffers,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    SchemaUnreleased,
    UnknownState,
)
from detent.errors.effects import MarkerMissing, NotUnknown
from detent.errors.move import DatabaseMoved, MoveRefused
from detent.errors.runs import (
    BatchChanged,
    DuplicateTarget,
    NotRetryable,
    PartOfRun,
    PreviewNotReady,
    RunBusy,
    RunInProgress,
    RunStuck,
    RunTimeout,
)
from detent.errors.webhooks import WrongSignature
from detent.errors.workflows import (
    BeingUndone,
    ChildFailed,
    CopyRefused,
    HistoryFull,
    JobEnded,
    MailboxFull,
    ParkSwallowed,
    StepAmbiguous,
    StepTooNew,
    TokenUsed,
    UndoFailed,
    UndoRefused,
    WaitOver,
    WaitTimeout,
    WorkflowDrift,
    WorkflowUndone,
    WrongToken,
)

__all__ = [
    "TABLE",
    "AlreadyCommitted",
    "BatchChanged",
    "BeingUndone",
    "ChildFailed",
    "Codes",
    "CopyRefused",
    "DatabaseBusy",
    "DatabaseError",
    "DatabaseForbidden",
    "DatabaseFull",
    "DatabaseInaccessible",
    "DatabaseMoved",
    "DatabaseReadOnly",
    "DatabaseUnreachable",
    "DetentError",
    "DuplicateTarget",
    "GuardViolation",
    "HistoryFull",
    "IdConflict",
    "InUse",
    "InvalidArguments",
    "InvalidInput",
    "InvalidLifecycle",
    "InvalidPayload",
    "InvalidSetting",
    "InvalidTransition",
    "JobEnded",
    "JobFailed",
    "JobTimeout",
    "KeyConflict",
    "LeaseLost",
    "LifecycleTooOld",
    "MailboxFull",
    "MarkerMissing",
    "MoveRefused",
    "NameTaken",
    "NotADatabase",
    "NotFound",
    "NotRetryable",
    "NotUnknown",
    "OutcomeUnknown",
    "ParkSwallowed",
    "PartOfRun",
    "PreviewNotReady",
    "Refused",
    "ReleaseTooOld",
    "ResultExpired",
    "RunBusy",
    "RunInProgress",
    "RunStuck",
    "RunTimeout",
    "SchemaDiffers",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaTooOld",
    "SchemaUnreleased",
    "StepAmbiguous",
    "StepTooNew",
    "TokenUsed",
    "TransitionRace",
    "UndoFailed",
    "UndoRefused",
    "UnknownState",
    "UnknownTask",
    "WaitOver",
    "WaitTimeout",
    "WorkflowDrift",
    "WorkflowUndone",
    "WrongPlace",
    "WrongSignature",
    "WrongToken",
    "essence",
    "is_step_note",
    "step_note",
]


@dataclass(eq=False)
class InvalidTransition(Refused):
    """The lifecycle declares no such move; the row is untouched.

    `allowed` are the states that can be reached from here. If the move is declared for another trigger, `trigger` is
    the one that was tried and `sources` are the states that it starts from.
    """

    entity: str
    entity_id: str
    from_state: str
    to_state: str
    allowed: Sequence[str] = ()
    trigger: str = ""
    sources: Sequence[str] = ()

    def __str__(self) -> str:
        tried = f"{self.entity} {self.entity_id} cannot go from {self.from_state} to {self.to_state}"
        if self.trigger and self.to_state in self.allowed:
            return f"{tried} by {self.trigger}; allowed: {self.trigger} from {', '.join(self.sources) or 'nowhere'}"
        return f"{tried}; allowed from {self.from_state}: {', '.join(self.allowed) or 'nothing, it is final'}"


@dataclass(eq=False)
class TransitionRace(Refused):
    """Another caller moved the row after it was read."""

    entity: str
    entity_id: str
    expected: str
    found: str

    def __str__(self) -> str:
        return (
            f"{self.entity} {self.entity_id} was moved by another caller: "
            f"expected {self.expected}, found {self.found}; read it again and decide anew"
        )


@dataclass(eq=False)
class LeaseLost(Refused):
    """The caller does not hold this attempt, or no longer; its writes are refused."""

    job_id: int
    attempt: int
    found: str

    def __str__(self) -> str:
        return (
            f"job {self.job_id} attempt {self.attempt} is not held by this caller: {self.found}; "
            f"only the holder of an unexpired lease may write"
        )


@dataclass(eq=False)
class AlreadyCommitted(Refused):
    """The job's effect has happened."""

    job_id: int
    attempt: int

    def __str__(self) -> str:
        return (
            f"job {self.job_id} is committed (attempt {self.attempt}): "
            f"its effect has happened and can be neither undone nor repeated"
        )


@dataclass(eq=False)
class KeyConflict(Refused):
    """The key belongs to a job with another task or payload, or the `dedupe` to a signal with another payload; that job
    is untouched."""

    key: str
    tenant: str
    job_id: int
    of: Literal["job", "signal", "children"] = "job"

    def __str__(self) -> str:
        whose = f" of tenant {self.tenant!r}" if self.tenant else ""
        if self.of == "signal":
            return (
                f"job {self.job_id}{whose} has a signal of that name with dedupe {self.key!r} and another payload; "
                f"use another dedupe for another signal"
            )
        if self.of == "children":
            return (
                f"an earlier attempt of job {self.job_id}{whose} began step {self.key!r} with another number of "
                f"children; spawn as many as then: take their number from a recorded step"
            )
        return (
            f"key {self.key!r}{whose} belongs to job {self.job_id}, which has another task or payload; "
            f"use another key for other work"
        )


@dataclass(eq=False)
class IdConflict(Refused):
    """The id belongs to another job; that job is untouched."""

    job_id: int

    def __str__(self) -> str:
        return f"id {self.job_id} belongs to another job; reserve ids from the database"


@dataclass(eq=False)
class NotFound(Refused):
    """No such row."""

    entity: str
    entity_id: str

    def __str__(self) -> str:
        named = clipped(self.entity_id)
        if self.entity in ("batch", "pipeline"):
            return f"no {self.entity} {named} is declared here"
        if self.entity == "lifecycle":
            return f"there is no lifecycle {named}"
        pruned = " (it may have been pruned)" if self.entity == "job" else ""
        return f"there is no {self.entity.replace('_', ' ')} {named} in this database{pruned}"


@dataclass(eq=False)
class InUse(Refused):
    """Jobs need what was to be removed; it stays."""

    entity: str
    entity_id: str
    jobs: int

    def __str__(self) -> str:
        need = "job waits or runs" if self.jobs == 1 else "jobs wait or run"
        return (
            f"{self.entity} {self.entity_id!r} cannot be removed: {self.jobs} {need} under it; "
            f"remove it when there are none, and when no code declares it any more"
        )


@dataclass(eq=False)
class NameTaken(Refused):
    """Another one has the name; nothing was created."""

    entity: str
    name: str

    def __str__(self) -> str:
        return f"a {self.entity} {self.name!r} exists already; revoke it first, or choose another name"


@dataclass(eq=False)
class UnknownTask(Refused):
    """No task of that name is declared in this application."""

    task: str
    known: Sequence[str] = ()

    def __str__(self) -> str:
        return f"no task {clipped(self.task)!r} is declared here; declared: {', '.join(self.known) or 'none'}"


@dataclass(eq=False)
class WrongPlace(Refused):
    """The call cannot be made from where it was made."""

    call: str
    place: str
    instead: str

    def __str__(self) -> str:
        return f"{self.call} cannot be called {self.place}; {self.instead}"


@dataclass(eq=False)
class InvalidInput(DetentError, ValueError):
    """A value is not allowed: which one, what was found, what is allowed."""

    field: str
    found: str
    allowed: str

    def __str__(self) -> str:
        return f"{clipped(self.field)}: found {clipped(self.found)}; allowed: {self.allowed}"


class InvalidPayload(InvalidInput):
    """A value cannot be stored as JSON; `field` is the path to the part that is refused."""


class InvalidArguments(InvalidInput):
    """Arguments do not fit the signature of a task, or the fields of a batch or pipeline."""


class InvalidLifecycle(InvalidInput):
    """The declaration of a lifecycle contradicts itself."""


class InvalidSetting(InvalidInput):
    """A setting or option is unknown or out of range."""


class Codes(NamedTuple):
    """The code of an error in SQL, in HTTP and as an exit code of the command line."""

    sqlstate: str
    http: int
    exit: int


TABLE: dict[type[DetentError], Codes] = {
    DetentError: Codes("DT000", 500, 1),
    Refused: Codes("DT001", 409, 4),
    InvalidTransition: Codes("DT002", 409, 4),
    TransitionRace: Codes("DT003", 409, 4),
    LeaseLost: Codes("DT004", 409, 4),
    AlreadyCommitted: Codes("DT005", 409, 4),
    KeyConflict: Codes("DT006", 409, 4),
    IdConflict: Codes("DT007", 409, 4),
    NotFound: Codes("DT008", 404, 3),
    UnknownTask: Codes("DT009", 404, 3),
    WrongPlace: Codes("DT010", 409, 4),
    NotUnknown: Codes("DT011", 409, 4),
    MarkerMissing: Codes("DT012", 409, 4),
    InUse: Codes("DT060", 409, 4),
    WrongSignature: Codes("DT061", 401, 4),
    NameTaken: Codes("DT062", 409, 4),
    BatchChanged: Codes("DT019", 409, 4),
    PreviewNotReady: Codes("DT013", 409, 4),
    DuplicateTarget: Codes("DT014", 409, 4),
    RunBusy: Codes("DT015", 409, 4),
    PartOfRun: Codes("DT016", 409, 4),
    NotRetryable: Codes("DT017", 409, 4),
    RunInProgress: Codes("DT018", 409, 4),
    InvalidInput: Codes("DT020", 422, 2),
    InvalidPayload: Codes("DT021", 422, 2),
    InvalidArguments: Codes("DT022", 422, 2),
    InvalidLifecycle: Codes("DT023", 422, 2),
    InvalidSetting: Codes("DT024", 422, 2),
    DatabaseError: Codes("DT030", 503, 5),
    DatabaseUnreachable: Codes("DT031", 503, 5),
    DatabaseInaccessible: Codes("DT042", 503, 5),
    DatabaseBusy: Codes("DT032", 503, 5),
    DatabaseFull: Codes("DT033", 507, 5),
    DatabaseReadOnly: Codes("DT034", 503, 5),
    DatabaseForbidden: Codes("DT045", 403, 5),
    NotADatabase: Codes("DT035", 500, 5),
    OutcomeUnknown: Codes("DT036", 503, 5),
    SchemaMissing: Codes("DT037", 503, 5),
    SchemaTooNew: Codes("DT038", 503, 5),
    SchemaTooOld: Codes("DT039", 503, 5),
    UnknownState: Codes("DT040", 500, 1),
    GuardViolation: Codes("DT041", 409, 4),
    SchemaDiffers: Codes("DT043", 503, 5),
    LifecycleTooOld: Codes("DT044", 409, 4),
    SchemaUnreleased: Codes("DT046", 503, 5),
    ReleaseTooOld: Codes("DT047", 409, 4),
    DatabaseMoved: Codes("DT048", 503, 5),
    MoveRefused: Codes("DT049", 409, 4),
    JobFailed: Codes("DT050", 409, 1),
    JobTimeout: Codes("DT051", 504, 124),
    ResultExpired: Codes("DT054", 410, 1),
    RunStuck: Codes("DT052", 409, 1),
    RunTimeout: Codes("DT053", 504, 124),
    JobEnded: Codes("DT070", 409, 4),
    MailboxFull: Codes("DT071", 409, 4),
    StepAmbiguous: Codes("DT072", 409, 4),
    HistoryFull: Codes("DT073", 409, 4),
    WorkflowDrift: Codes("DT074", 409, 4),
    ParkSwallowed: Codes("DT075", 409, 4),
    WaitTimeout: Codes("DT076", 504, 124),
    ChildFailed: Codes("DT077", 409, 1),
    UndoFailed: Codes("DT078", 409, 1),
    WorkflowUndone: Codes("DT079", 409, 1),
    WrongToken: Codes("DT080", 401, 4),
    TokenUsed: Codes("DT081", 409, 4),
    WaitOver: Codes("DT082", 409, 4),
    UndoRefused: Codes("DT083", 409, 4),
    BeingUndone: Codes("DT084", 409, 4),
    CopyRefused: Codes("DT085", 409, 4),
    StepTooNew: Codes("DT086", 409, 4),
}
