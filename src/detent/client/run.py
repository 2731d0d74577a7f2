"""The handle of a batch run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from detent.client.export import export_changes
from detent.client.pause import pauses_until
from detent.declare.settings import Settings
from detent.errors import InvalidInput, NotFound, RunStuck, RunTimeout
from detent.lifecycle.library import BATCH_RUN, TARGET
from detent.model import jsondoor
from detent.model.batch_records import BatchFilter, BatchRunRow, MismatchRow, ReconciliationRow, TargetRow
from detent.model.clock import Clock
from detent.model.records import EventRow, TransitionRow
from detent.store.contract import Verbs

__all__ = ["Mismatch", "Reconciliation", "Run", "TargetChange"]

_PAGE = 1000
_UNTIL = frozenset({*BATCH_RUN.states, "previewed"})
_NEWER_RUNS = 20
_REFS_SHOWN = 5
_COUNTED = ("queued", "applying", "applied", "failed", "rolled_back")


class TargetChange(Struct, frozen=True, kw_only=True):
    """A target as the preview found it, what it would be or is now, and where it stands. `error` is why its preview, or
    its last attempt, failed. `conflict` is true if it was refused because others had changed it; then `found` is what
    it was."""

    ref: str
    state: str
    changed: bool | None
    before: Any
    after: Any
    error: str | None
    attempts: int
    job_id: int | None
    conflict: bool = False
    found: Any = None


class Mismatch(Struct, frozen=True, kw_only=True):
    """A target that is not what it was made."""

    ref: str
    expected: Any
    actual: Any


class Run:
    """A run by its id. It shows the run as of the last look; `refresh()` looks again."""

    def __init__(self, row: BatchRunRow, verbs: Verbs, clock: Clock, settings: Settings) -> None:
        self.row = row
        self._verbs = verbs
        self._clock = clock
        self._settings = settings

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.row.batch} {self.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> int:
        """Its number."""
        return self.row.id

    @property
    def state(self) -> str:
        """Where it is in its lifecycle."""
        return self.row.state

    @property
    def batch(self) -> str:
        """The name of its batch."""
        return self.row.batch

    @property
    def payload(self) -> Any:
        """The batch's own fields as JSON values."""
        return jsondoor.decode(self.row.payload, depth_max=self._settings.depth_max)

    @property
    def total(self) -> int:
        """How many targets are known so far."""
        return self.row.total

    @property
    def counts(self) -> dict[str, int]:
        """Its targets by state, those that there are: `{"applied": 180, "failed": 20}`."""
        found = {state: getattr(self.row, state) for state in _COUNTED}
        found = {"preview": self.row.total - sum(found.values()), **found}
        return {state: count for state, count in found.items() if count}

    @property
    def is_previewed(self) -> bool:
        """Whether the change of every target is worked out."""
        return self.row.previewed_at is not None

    @property
    def tolerated(self) -> bool:
        """Whether so few targets failed that nobody need be told; also where none did."""
        return self.row.tolerated

    @property
    def error(self) -> str | None:
        """The critical error that stopped the run, or the error of the job that it waits for."""
        return self.row.critical or self.row.error

    @property
    def conflicts(self) -> int:
        """How many targets were refused because others had changed them."""
        return self.row.conflicts

    @property
    def rests(self) -> bool:
        """Whether nothing happens to it by itself: previewed, ended, or rolled back as far as it can be."""
        row = self.row
        if row.outstanding or row.reverting or row.queued or row.applying:
            return False
        return self.is_previewed if row.state == "preview" else row.state in (*BATCH_RUN.rests, "rolled_back")

    def refresh(self) -> Run:
        """Look again. `NotFound`."""
        row = self._verbs.batch_get(self.id)
        if row is None:
            raise NotFound("run", str(self.id))
        self.row = row
        return self

    def wait(self, timeout: float | None = None, until: Collection[str] | None = None) -> Run:
        """This handle, when the run is in one of the states `until`, where `previewed` is the state preview with every
        change worked out; without it, when the run rests.

        `RunTimeout` (a TimeoutError) after `timeout` seconds; the run goes on. `RunStuck` if it will not get there by
        itself: a job that the whole run waits for is dead, or the run has ended in another state. A run that waits for
        approval, in preview, is waited for.
        """
        wanted = None if until is None else _checked_until(until)
        for pause in pauses_until(lambda: self._has_come(wanted), timeout, self._clock, self._settings, self._late):
            self._clock.sleep(pause)
        return self

    def _has_come(self, wanted: frozenset[str] | None) -> bool:
        row = self.refresh().row
        if wanted is None:
            there = self.rests
        else:
            there = row.state in wanted or ("previewed" in wanted and row.state == "preview" and self.is_previewed)
        if not there and row.stuck:
            raise RunStuck(self.id, row.state, row.error or "")
        if not there and wanted is not None and row.state != "preview" and self.rests:
            why = f"it has ended and will not become {' or '.join(sorted(wanted))} by itself"
            raise RunStuck(self.id, row.state, why, "Retry its failed targets, or wait for another state.")
        return there

    def _late(self, waited: float) -> RunTimeout:
        return RunTimeout(self.id, self.state, waited)

    def changes(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> Iterator[TargetChange]:
        """Its targets in the order of the plan, one by one however many they are: of that state, of those refs, and
        such as would change or not."""
        if state is not None and state not in TARGET.states:
            raise InvalidInput("state", repr(state)[:80], ", ".join(TARGET.states))
        for row in self.targets(state=state, only=only, changed=changed):
            yield TargetChange(
                ref=row.ref,
                state=row.state,
                changed=row.changed,
                before=_value(row.before),
                after=_value(row.after),
                error=row.preview_error or row.error,
                attempts=row.attempts,
                job_id=row.apply_job_id,
                conflict=row.conflict is not None,
                found=_value(row.conflict),
            )

    def targets(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> Iterator[TargetRow]:
        """The same as they are on record."""
        refs = None if only is None else tuple(only)
        after_n = 0
        while True:
            page = self._verbs.target_list(
                self.id, state=state, refs=refs, changed=changed, after_n=after_n, limit=_PAGE
            )
            yield from page
            if len(page) < _PAGE:
                return
            after_n = page[-1].n

    def export(
        self,
        to: str | Path | TextIO,
        format: str = "csv",
        *,
        state: str | None = None,
        only: Collection[str] | None = None,
        changed: bool | None = None,
    ) -> int:
        """Write the difference to a file as `csv` or `json`; how many targets. A path gets the whole or nothing."""
        return export_changes(self.changes(state=state, only=only, changed=changed), to, format)

    def events(self, *, only: Collection[str] | None = None) -> Iterator[tuple[str, EventRow]]:
        """What the jobs of its targets wrote, target by target, with the ref each line is about."""
        for target in self.targets(only=only):
            for job_id in (target.apply_job_id, target.revert_job_id):
                if job_id is not None:
                    yield from ((target.ref, line) for line in self._lines(job_id))

    def _lines(self, job_id: int) -> Iterator[EventRow]:
        after_seq = 0
        while page := self._verbs.job_events(job_id, after_seq, _PAGE):
            yield from page
            after_seq = page[-1].seq

    def newer_runs(self) -> dict[int, list[str]]:
        """Runs of the same batch that began later and have changed targets that this run has applied: by id, with the
        first of those refs. A sample: of this run the first 1,000 applied targets, of the others the newest 20."""
        begun, mine = self.row.started_at, [target.ref for target in self._verbs.target_list(self.id, state="applied")]
        if begun is None or not mine:
            return {}
        chosen = BatchFilter(batch=self.batch, tenant=self.row.tenant)
        found: dict[int, list[str]] = {}
        for row in self._verbs.batch_list(chosen, None, _NEWER_RUNS):
            if row.id != self.id and row.applied and row.started_at is not None and row.started_at > begun:
                changed = self._verbs.target_list(row.id, refs=mine, state="applied", limit=_REFS_SHOWN)
                found |= {row.id: [target.ref for target in changed]} if changed else {}
        return found

    def history(self) -> list[TransitionRow]:
        """Every move of the run, with who and why."""
        return self._verbs.transitions(BATCH_RUN.name, str(self.id))

    def mismatches(self, *, open_only: bool = True) -> list[Mismatch]:
        """Targets that were found not to be what they were made, and are so still as far as anybody has looked."""
        return [*_mismatches(self._verbs, self.id, open_only)]

    def reconciliations(self) -> list[ReconciliationRow]:
        """Every look at the world, the newest first."""
        return self._verbs.reconciliation_list(self.id)


class Reconciliation:
    """One look at the world. Workers do it; whoever wants to know the outcome waits for it."""

    def __init__(self, row: ReconciliationRow, verbs: Verbs, clock: Clock, settings: Settings) -> None:
        self.row = row
        self._verbs = verbs
        self._clock = clock
        self._settings = settings

    def __repr__(self) -> str:
        return f"<Reconciliation {self.row.no} of run {self.row.run_id}: {self.row.checked} checked>"

    def wait(self, timeout: float | None = None) -> Reconciliation:
        """This handle, when every applied target was looked at. `RunTimeout`, or `RunStuck` where it gave up."""
        for pause in pauses_until(self._is_done, timeout, self._clock, self._settings, self._late):
            self._clock.sleep(pause)
        return self

    @property
    def mismatches(self) -> list[Mismatch]:
        """The targets that are not what they were made, each with ref, expected and actual; waits for the look."""
        self.wait()
        return [*_mismatches(self._verbs, self.row.run_id, True)]

    @property
    def checked(self) -> int:
        """How many targets were looked at so far."""
        return self.row.checked

    def _is_done(self) -> bool:
        looks = self._verbs.reconciliation_list(self.row.run_id, 1000)
        self.row = next((look for look in looks if look.no == self.row.no), self.row)
        if self.row.done_at is None:
            (job,) = self._verbs.job_get([self.row.job_id])
            if job is None or job.state in ("quarantined", "failed", "cancelled"):
                raise RunStuck(self.row.run_id, "reconciling", (job and job.error) or "its job is gone")
        return self.row.done_at is not None

    def _late(self, waited: float) -> RunTimeout:
        return RunTimeout(self.row.run_id, "reconciling", waited)


def _mismatches(verbs: Verbs, run_id: int, open_only: bool) -> Iterator[Mismatch]:
    after_n = 0
    while True:
        page: list[MismatchRow] = verbs.mismatch_list(run_id, open_only=open_only, after_n=after_n, limit=_PAGE)
        for row in page:
            yield Mismatch(ref=row.ref, expected=_value(row.expected), actual=_value(row.actual))
        if len(page) < _PAGE:
            return
        after_n = page[-1].n


def _value(text: str | None) -> Any:
    return None if text is None else jsondoor.decode(text, field="change")


def _checked_until(until: Collection[str]) -> frozenset[str]:
    wanted = frozenset({until} if isinstance(until, str) else until)
    if not wanted or wanted - _UNTIL:
        raise InvalidInput("until", repr(sorted(wanted - _UNTIL))[:80], ", ".join(sorted(_UNTIL)))
    return wanted
