"""Every error Detent raises on purpose.

    DetentError
    ├── Refused                   the engine said no, and nothing was changed
    │   ├── InvalidTransition     the lifecycle declares no such move
    │   ├── TransitionRace        somebody else moved it first
    │   ├── LeaseLost             the caller does not hold this attempt (any more)
    │   ├── AlreadyCommitted      the effect has happened; there is nothing left to stop or to repeat
    │   ├── KeyConflict           the key belongs to another job
    │   ├── IdConflict            the id belongs to another job
    │   ├── NotFound              no such row
    │   ├── NotUnknown            what became of the job's effect is known: there is nothing to settle
    │   ├── MarkerMissing         another database has no table for the marks of commits there
    │   ├── BatchChanged          the batch is declared otherwise than when its run was previewed
    │   ├── PreviewNotReady       a batch run cannot be applied before its preview is complete
    │   ├── DuplicateTarget       a batch run would have one target twice
    │   ├── RunBusy               something else is done with the run, which must end first
    │   ├── InUse                 jobs need what was to be taken away
    │   ├── RunInProgress         a run of the same watermark has not ended
    │   ├── PartOfRun             a job that carries a pipeline run cannot be retried by itself
    │   ├── NotRetryable          a failed pipeline run has nothing to go on with
    │   ├── UnknownTask           no task of that name is declared here
    │   └── WrongPlace            the call cannot be made from where it was made
    ├── InvalidInput              the caller's value cannot be taken (also a ValueError)
    │   ├── InvalidPayload        a JSON value that the door turned away
    │   ├── InvalidArguments      a task's call does not fit its signature
    │   ├── InvalidLifecycle      a declaration that contradicts itself
    │   └── InvalidSetting        a setting out of its range
    ├── DatabaseError             the database, not the request
    │   ├── DatabaseUnreachable   no connection to be had
    │   │   └── NoWayIn           a login, a database or a directory that is refused or not there
    │   ├── DatabaseBusy          locked, deadlocked or out of connections; asking again is right
    │   ├── DatabaseFull          no space left
    │   ├── DatabaseReadOnly      it takes no writes
    │   ├── DatabaseForbidden     the login has no right to do this
    │   ├── NotADatabase          the path holds something else
    │   ├── OutcomeUnknown        the connection was lost during COMMIT
    │   ├── SchemaMissing         the database has no Detent schema and may not be given one
    │   ├── SchemaTooNew          migrated by a newer Detent than this one
    │   ├── SchemaTooOld          waits for `detent migrate`
    │   ├── SchemaDiffers         a migration was applied in other words than this Detent knows
    │   ├── SchemaUnreleased      made by an unreleased version of Detent
    │   ├── ReleaseTooOld         a newer release has installed its functions, triggers and views
    │   ├── LifecycleTooOld       the database has a newer version of an attached lifecycle
    │   ├── UnknownState          a row in a state this version does not know
    │   └── GuardViolation        a guard of the database refused a statement
    ├── JobFailed                 the awaited job rests without success
    ├── ResultExpired             the result of the job was kept for a time, and that is over
    ├── JobTimeout                the awaited job did not come to rest in time (also a TimeoutError)
    ├── RunStuck                  the awaited run does not get on by itself
    └── RunTimeout                the awaited run did not come that far in time (also a TimeoutError)

Fields come first, the message is made from them: what was refused, what was found, what would be allowed.
`TABLE` at the end maps each class to its SQLSTATE, HTTP status and exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from detent.errors.database import (
    DatabaseBusy,
    DatabaseError,
    DatabaseForbidden,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreachable,
    GuardViolation,
    LifecycleTooOld,
    NotADatabase,
    NoWayIn,
    OutcomeUnknown,
    ReleaseTooOld,
    SchemaDiffers,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    SchemaUnreleased,
    UnknownState,
)
from detent.errors.root import DetentError, Refused, clipped, essence
from detent.errors.runs import BatchChanged, NotRetryable, PartOfRun, RunInProgress, RunStuck, RunTimeout

__all__ = [
    "TABLE",
    "AlreadyCommitted",
    "BatchChanged",
    "Codes",
    "DatabaseBusy",
    "DatabaseError",
    "DatabaseForbidden",
    "DatabaseFull",
    "DatabaseReadOnly",
    "DatabaseUnreachable",
    "DetentError",
    "DuplicateTarget",
    "GuardViolation",
    "IdConflict",
    "InUse",
    "InvalidArguments",
    "InvalidInput",
    "InvalidLifecycle",
    "InvalidPayload",
    "InvalidSetting",
    "InvalidTransition",
    "JobFailed",
    "JobTimeout",
    "KeyConflict",
    "LeaseLost",
    "LifecycleTooOld",
    "MarkerMissing",
    "NoWayIn",
    "NotADatabase",
    "NotFound",
    "NotRetryable",
    "NotUnknown",
    "OutcomeUnknown",
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
    "TransitionRace",
    "UnknownState",
    "UnknownTask",
    "WrongPlace",
    "essence",
]


@dataclass(eq=False)
class InvalidTransition(Refused):
    """The lifecycle declares no such move; the row is untouched.

    `allowed` are the states one may go to from here. Where the move is declared for another trigger, `trigger` is the
    one that was tried and `sources` are the states that it starts from.
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
    """Somebody else moved the row between the look and the move."""

    entity: str
    entity_id: str
    expected: str
    found: str

    def __str__(self) -> str:
        return (
            f"{self.entity} {self.entity_id} was moved by somebody else: "
            f"expected {self.expected}, found {self.found}; look again and decide anew"
        )


@dataclass(eq=False)
class LeaseLost(Refused):
    """The caller does not hold this attempt (any more); whatever it did since is void."""

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
            f"its effect has happened and is not undone or repeated"
        )


@dataclass(eq=False)
class KeyConflict(Refused):
    """The key belongs to a job with another task or payload; that job is untouched."""

    key: str
    tenant: str
    job_id: int

    def __str__(self) -> str:
        whose = f" of tenant {self.tenant!r}" if self.tenant else ""
        return (
            f"key {self.key!r}{whose} belongs to job {self.job_id}, which has another task or payload; "
            f"use a key of its own for other work"
        )


@dataclass(eq=False)
class IdConflict(Refused):
    """The id belongs to another job; that job is untouched."""

    job_id: int

    def __str__(self) -> str:
        return f"id {self.job_id} belongs to another job; ids are reserved from the database, never made up"


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
class NotUnknown(Refused):
    """The job is quarantined, but not because nobody knows whether its effect has happened."""

    job_id: int
    reason: str | None

    def __str__(self) -> str:
        return (
            f"job {self.job_id} is quarantined for {self.reason or 'no recorded reason'!r}, not as unknown; "
            f"only what is unknown can be settled: retry it, discard it, or force it"
        )


@dataclass(eq=False)
class MarkerMissing(Refused):
    """Another database has no table for the marks of commits there; nothing was run in it."""

    table: str
    ddl: str

    def __str__(self) -> str:
        return (
            f"a commit in another database needs the table {self.table} there, and it is missing; "
            f"create it with app.prepare_foreign(connection), or with:\n{self.ddl}"
        )


@dataclass(eq=False)
class PreviewNotReady(Refused):
    """A batch run is applied only after everybody could read what it would do; nothing was moved."""

    run_id: int
    previewed: int
    total: int
    failed: int
    complete: bool = False  # every target was looked at, and `failed` of them could not be previewed

    def __str__(self) -> str:
        if self.complete:
            return (
                f"run {self.run_id} cannot be applied: {self.failed} of {self.total} targets could not be previewed; "
                f"name those to apply, or leave out the others"
            )
        return (
            f"run {self.run_id} cannot be applied yet: {self.previewed} of {self.total} targets known so far are "
            f"previewed; wait until the preview is complete"
        )


@dataclass(eq=False)
class DuplicateTarget(Refused):
    """A batch run would have one target twice; none of this call was stored."""

    run_id: int
    ref: str
    n: int
    found_n: int

    def __str__(self) -> str:
        return (
            f"run {self.run_id} names the target {self.ref!r} twice, as number {self.found_n} and {self.n}; "
            f"each target once, and in the same order when asked again"
        )


@dataclass(eq=False)
class RunBusy(Refused):
    """Something else is done with the run, which must end first."""

    run_id: int
    asked: str
    found: str

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.asked} is refused, since {self.found}"


@dataclass(eq=False)
class InUse(Refused):
    """Jobs need what was to be taken away; it stays."""

    entity: str
    entity_id: str
    jobs: int

    def __str__(self) -> str:
        need = "job waits or runs" if self.jobs == 1 else "jobs wait or run"
        return (
            f"{self.entity} {self.entity_id!r} cannot be removed: {self.jobs} {need} under it; "
            f"allowed when none does, and no code declares it any more"
        )


@dataclass(eq=False)
class UnknownTask(Refused):
    """No task of that name is declared here."""

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
    """The caller's value cannot be taken: which one, what was found, what is allowed."""

    field: str
    found: str
    allowed: str

    def __str__(self) -> str:
        return f"{clipped(self.field)}: found {clipped(self.found)}; allowed: {self.allowed}"


class InvalidPayload(InvalidInput):
    """A JSON value that the door turned away; `field` is the path to the culprit."""


class InvalidArguments(InvalidInput):
    """A task's call does not fit its signature."""


class InvalidLifecycle(InvalidInput):
    """A lifecycle declaration that contradicts itself."""


class InvalidSetting(InvalidInput):
    """A setting out of its range."""


@dataclass(eq=False)
class JobFailed(DetentError):
    """The awaited job rests without success. `error` is the whole story, the message what it comes down to."""

    job_id: int
    state: str
    error: str

    def __str__(self) -> str:
        return f"job {self.job_id} is {self.state}: {essence(self.error) or 'no error recorded'}"


@dataclass(eq=False)
class ResultExpired(DetentError):
    """The job succeeded, and its task says for how long such results are kept: that time is over."""

    job_id: int
    until: datetime

    def __str__(self) -> str:
        return (
            f"job {self.job_id} succeeded, and its result was kept until {self.until.isoformat()}; "
            f"a longer result_ttl of its task keeps those to come for longer"
        )


@dataclass(eq=False)
class JobTimeout(DetentError, TimeoutError):
    """The awaited job did not come to rest in time; it goes on all the same."""

    job_id: int
    state: str
    waited: float

    def __str__(self) -> str:
        waited = f"{round(self.waited, 3):g} s"
        return f"job {self.job_id} is still {self.state} after {waited} of waiting; it goes on all the same"


class Codes(NamedTuple):
    """What an error is called at the doors that know no classes."""

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
    NoWayIn: Codes("DT042", 503, 5),
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
    JobFailed: Codes("DT050", 409, 1),
    JobTimeout: Codes("DT051", 504, 124),
    ResultExpired: Codes("DT054", 410, 1),
    RunStuck: Codes("DT052", 409, 1),
    RunTimeout: Codes("DT053", 504, 124),
}
