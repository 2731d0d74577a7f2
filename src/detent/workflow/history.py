"""What an attempt knows of the record of its workflow, and what the function has asked for so far.

It decides without I/O: the identity of a step, whether it is on record, whether the code has drifted from the record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import datetime

from detent.errors import HistoryFull, InvalidInput, StepAmbiguous, StepTooNew, WorkflowDrift
from detent.model import database_facts
from detent.model.workflow_records import STEP_KINDS, NewStep, StepBegun, StepRow, WorkflowHistory
from detent.store.workflows.rules import scope_of
from detent.workflow.copied_steps import CopiedSteps

__all__ = ["StepHistory"]

_STEPS_MAX = 10_000
_BYTES_MAX = 64 * 1024 * 1024
_PATH_MAX = 1000
_TIMES = ("sleep", "deadline", "timeout", "token")
_AUXILIARY = "~"
"""In paths of rows that belong to another step: the end of a wait, a retry that was put off. Those of an unknown kind
are passed over: a newer release may note something about a step that this one need not know."""


class StepHistory:
    """The record of one generation. The caller holds the lock of its run."""

    def __init__(self, job_id: int, version: int) -> None:
        self.job_id = job_id
        self.version = version
        self.generation = 1
        self.parks = 0
        self.last_at: datetime | None = None
        """When the last step that the function has seen was recorded, or its last sleep has ended."""
        self.recorded_now = 0
        """How many steps this attempt has recorded, apart from times."""
        self._rows: dict[str, StepRow] = {}
        self._present: dict[str, int] = {}
        self._undo_seqs: dict[str, int] = {}
        self._begun: dict[str, StepBegun] = {}
        self._sequences: dict[str, list[int]] = defaultdict(list)
        self._by_seq: dict[int, StepRow] = {}
        self._reached: dict[str, int] = defaultdict(int)
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._in_flight: dict[str, set[str]] = defaultdict(set)
        self._asked: set[str] = set()
        self._unseen: set[str] = set()
        self.is_limited = True
        """Whether a generation can be full. An undo goes on all the same."""
        self._copies = CopiedSteps()
        self._bytes = 0
        self._seq = 0

    def load(self, page: WorkflowHistory) -> None:
        """Take over a page of the record. `StepTooNew`."""
        if page.version is not None:
            self.version = page.version
        self.generation = page.generation
        self.parks = page.parks
        self._copies.load(page)
        self._begun.update((one.path, one) for one in page.begun)
        for row in page.steps:
            self._add(row)
        self._unseen = {path for path in self._rows if _AUXILIARY not in path}
        for seqs in self._sequences.values():
            seqs.sort()

    def _add(self, row: StepRow) -> None:
        if row.kind not in STEP_KINDS and _AUXILIARY not in row.path:
            raise StepTooNew(self.job_id, row.path, row.kind, ".".join(map(str, database_facts.RELEASE)))
        self._rows[row.path] = row
        self._present[row.path] = row.seq
        if row.undo and row.error is None:
            self._undo_seqs[row.path] = row.seq
        self._seq = max(self._seq, row.seq)
        self._bytes += len(row.value or "") + len(row.error or "")
        if _AUXILIARY not in row.path:
            self._sequences[row.scope].append(row.seq)
            self._by_seq[row.seq] = row

    @property
    def is_replaying(self) -> bool:
        """Whether steps on record have not been asked for yet."""
        return bool(self._unseen)

    @property
    def steps(self) -> int:
        """How many steps are on record in this generation."""
        return len(self._present)

    # -- identity ----------------------------------------------------------------------------------------------

    def identify(self, scope: str, name: str, key: str | int | None = None) -> str:
        """Return the path of the step that the function asks for now. `StepAmbiguous`, `InvalidInput`."""
        base = f"{scope}/{name}" if scope else name
        if key is not None:
            path = f"{base}:{quoted(str(key))}"
            if path in self._asked:
                found = f"{key!r:.80} twice for step {base!r}"
                raise InvalidInput("key", found, "another key for each step of that name")
        else:
            self._counts[scope, name] += 1
            count = self._counts[scope, name]
            flying = self._in_flight[scope]
            if flying and any(one == base or one.startswith(f"{base}#") for one in flying):
                raise StepAmbiguous(self.job_id, base)
            path = base if count == 1 else f"{base}#{count}"
        if 4 * len(path) > _PATH_MAX and len(path.encode()) > _PATH_MAX:
            raise InvalidInput("step", f"a path of {len(path.encode())} bytes", f"at most {_PATH_MAX} bytes")
        self._asked.add(path)
        return path

    def identify_token(self, scope: str, signal: str) -> str:
        """Return the path of the token that the function asks for now."""
        base = f"{scope}/token {signal}" if scope else f"token {signal}"
        self._counts[scope, f"token {signal}{_AUXILIARY}"] += 1
        count = self._counts[scope, f"token {signal}{_AUXILIARY}"]
        return f"{base}{_AUXILIARY}" if count == 1 else f"{base}#{count}{_AUXILIARY}"

    # -- what is on record -------------------------------------------------------------------------------------

    def find(self, path: str, *, lazy: bool = False) -> StepRow | None:
        """Return the step if it is on record, and note that the function has come to it. A `lazy` step, a caught error
        and a spawn have a time that the first attempt did not know, so the function does not see it."""
        row = self._rows.get(path)
        self._asked.add(path)
        if row is not None and row.attempt == 0:
            self._copies.replayed(path)
        if row is not None and _AUXILIARY not in path:
            if row.seq > self._reached[row.scope]:
                self._reached[row.scope] = row.seq
            self._unseen.discard(path)
        if row is not None and row.error is None and row.kind != "spawn" and not lazy:
            self.note_time(row.done_at)
        return row

    def note_time(self, at: datetime) -> None:
        """Note that it is that late at least."""
        if self.last_at is None or at > self.last_at:
            self.last_at = at

    @property
    def copied_seed(self) -> str | None:
        """The seed of the record whose steps are being replayed, if they are copies; None if it is its own."""
        return self._copies.seed

    def seq_of(self, path: str) -> int:
        """Return the number of a step that is on record and has an undo."""
        return self._undo_seqs[path]

    def undoable(self) -> list[str]:
        """Return the steps that were on record when the attempt began, and have an undo and a value."""
        return [row.path for row in self._rows.values() if row.undo and row.kind != "scope" and row.error is None]

    @property
    def has_undo(self) -> bool:
        """Whether a step on record, or one inside a scope on record, has an undo."""
        return bool(self._undo_seqs)

    def begun(self, path: str) -> StepBegun | None:
        """Return what is known of a step that was begun and not recorded."""
        return self._begun.get(path)

    def is_next(self, scope: str, path: str) -> WorkflowDrift | None:
        """Return why a new step may not run now: steps of the same scope that come later are on record. Where steps run
        side by side, their order says nothing."""
        seqs = self._sequences.get(scope)
        if not seqs:
            return None
        place = bisect_right(seqs, self._reached[scope])
        if place == len(seqs):
            return None
        expected = self._by_seq[seqs[place]]
        if expected.beside or self._in_flight[scope] - {path}:
            return None
        return WorkflowDrift(self.job_id, path, expected.path)

    def leftover(self) -> list[str]:
        """Return the steps on record that the function did not ask for, if it has ended."""
        return [path for path in self._rows if _AUXILIARY not in path and path not in self._asked]

    def is_folded(self, path: str) -> bool:
        """Whether the step would be inside a scope on record, so that it was not loaded."""
        names = scope_of(path).split("/")
        outside = (self._rows.get("/".join(names[:n])) for n in range(1, len(names) + 1))
        return any(row is not None and row.kind == "scope" for row in outside)

    # -- in flight ---------------------------------------------------------------------------------------------

    def enter(self, scope: str, path: str) -> None:
        """Note that a step is in flight."""
        self._in_flight[scope].add(path)

    def leave(self, scope: str, path: str) -> None:
        """Note that a step is no longer in flight."""
        self._in_flight[scope].discard(path)

    def is_beside(self, scope: str, path: str) -> bool:
        """Whether other steps of the same scope are in flight."""
        return bool(self._in_flight[scope] - {path})

    # -- new records -------------------------------------------------------------------------------------------

    def next_seq(self) -> int:
        """Return the number of the next record. `HistoryFull`."""
        if self.is_limited and len(self._present) >= _STEPS_MAX:
            raise HistoryFull(self.job_id, f"{len(self._present):,} steps", f"{_STEPS_MAX:,}")
        if self.is_limited and self._bytes >= _BYTES_MAX:
            raise HistoryFull(self.job_id, f"{self._bytes:,} bytes", f"{_BYTES_MAX:,} bytes")
        self._seq += 1
        return self._seq

    def recorded(self, step: NewStep, done_at: datetime | None) -> None:
        """Note that a step is on record now, or will be with the next one."""
        self._present[step.path] = step.seq
        if step.undo:
            self._undo_seqs[step.path] = step.seq
        self._bytes += len(step.value or "") + len(step.error or "")
        self._begun.pop(step.path, None)
        self.recorded_now += step.kind not in _TIMES
        if _AUXILIARY not in step.path and step.seq > self._reached[step.scope]:
            self._reached[step.scope] = step.seq
        if done_at is not None:
            self.note_time(done_at)

    def end_scope(self, scope: str) -> None:
        """Forget the steps inside a scope that is recorded itself: it counts as one."""
        inside = f"{scope}/"
        self._present = {path: seq for path, seq in self._present.items() if not path.startswith(inside)}


def quoted(key: str) -> str:
    """Return a key in a form that cannot be mistaken for other parts of a path."""
    return key.replace("%", "%25").replace("/", "%2F").replace("~", "%7E")
