"""Moves a whole database into another one, and continues a move that was interrupted at any moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from detent.errors import GuardViolation, InvalidInput, MoveRefused, SchemaMissing
from detent.model.clock import Clock
from detent.model.ids import new_move_id
from detent.model.move_records import MoveProgress, MoveReport, MoveRow, NewMove
from detent.model.records import Violation
from detent.store.contract import Store
from detent.store.move.contract import Activity, Place, Row
from detent.store.move.tables import Table, copied_tables

__all__ = ["PORTION_BYTES_MAX", "PORTION_ROWS_MAX", "Mover", "cancel_move"]

PORTION_ROWS_MAX = 2_000
PORTION_BYTES_MAX = 8 << 20
"""A transaction copies at most so many rows, and ends after so many bytes of text."""

_NAMED_MAX = 5


def cancel_move(source: Store, actor: str, reason: str | None = None) -> bool:
    """Open a database again whose move has not ended. Return False if it is not moving. `MoveRefused` if it has moved:
    then the other database is in use."""
    source.ready(create=False)
    for row in source.database_moves():
        if row.state == "moved":
            instead = "to go back, stop its workers and move it from there into a new database"
            raise MoveRefused(source.name, _moved_to(row), instead)
    return source.movable().cancel(actor, reason)


class Mover:
    """One call of `detent move`. Not for use by several threads.

    With `force`, a source that violates invariants is moved as it is. `watch` is told of the progress.
    """

    def __init__(
        self,
        source: Store,
        target: Store,
        clock: Clock,
        *,
        actor: str,
        reason: str | None = None,
        force: bool = False,
        watch: Callable[[MoveProgress], None] = lambda _: None,
        rows_max: int = PORTION_ROWS_MAX,
        bytes_max: int = PORTION_BYTES_MAX,
    ) -> None:
        self._source_store = source
        self._target_store = target
        self._source = source.movable()
        self._target = target.movable()
        self._clock = clock
        self._actor = actor
        self._reason = reason
        self._force = force
        self._watch = watch
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._tables = copied_tables()

    def run(self) -> MoveReport:
        """Move the source into the target, or continue. When this returns, the target is open and the source is closed
        for good. `MoveRefused` if that cannot be, and whatever the databases raise; then calling it again continues."""
        begun = self._clock.monotonic()
        self._check_source()
        out = self._move_out()
        copied = 0
        if out is None or out.state == "moving":
            self._check_target(out)
            move_id = self._begin(out)
            copied = self._copy(move_id)
            counts = self._finish(move_id)
        else:
            self._check_arrived(out)
            counts = self._target.counts(self._tables)
        left = tuple(f"{name}: {table}" for name, table in self._source.attached())
        seconds = self._clock.monotonic() - begun
        return MoveReport(
            source=self._source.name,
            target=self._target.name,
            tables={name: rows for name, rows in counts.items() if rows},
            copied=copied,
            seconds=seconds,
            left_behind=left,
        )

    # -- what is refused ---------------------------------------------------------------------------------------

    def _refuse(self, found: str, instead: str) -> MoveRefused:
        return MoveRefused(self._source.name, found, instead)

    def _check_source(self) -> None:
        self._source_store.ready(create=False)
        if self._source_store.whereabouts[0] == self._target_store.whereabouts[0] and self._is_same():
            raise self._refuse("the target is the same database", "give another one")
        if not self._source.is_of_this_release():
            found = "its functions, triggers or views are not those of this version of Detent"
            raise self._refuse(found, "run `detent migrate` on it first")

    def _is_same(self) -> bool:
        here = self._source_store.whereabouts[1]()
        return here is not None and here == self._target_store.whereabouts[1]()

    def _move_out(self) -> MoveRow | None:
        return next((row for row in self._source_store.database_moves() if row.direction == "out"), None)

    def _move_in(self) -> MoveRow | None:
        return next((row for row in self._target_store.database_moves() if row.direction == "in"), None)

    def _check_target(self, out: MoveRow | None) -> None:
        """Check what can be checked before anything is written."""
        if out is None:
            self._check_quiet(self._source.name, self._source.activity())
        name, into = self._target.name, None if out is None else self._arriving(out)
        if out is not None and into is None and out.place != name:
            found = f"it is moving to {out.place} since {out.began_at.isoformat()}"
            raise self._refuse(found, f"continue with --to {out.place}, or undo that with --cancel")
        self._target_store.ready()
        into = self._move_in()
        if into is not None and into.state == "loading" and into.identity != self._identity():
            raise self._refuse(f"{name} is being filled from {into.place}", "give another target, which is empty")
        if not self._target.is_of_this_release():
            found = f"the functions, triggers or views of {name} are not those of this version of Detent"
            raise self._refuse(found, "run `detent migrate` on it first, or give a new database")
        if into is not None and into.state == "loading":
            return
        if (full := self._target.table_with_rows()) is not None:
            raise self._refuse(f"{name} is not empty: its table {full} has rows", "give a target that is empty")
        self._check_quiet(name, self._target.activity())

    def _check_quiet(self, name: str, found: Activity) -> None:
        if found.workers:
            named = ", ".join(found.workers[:_NAMED_MAX])
            many = "1 worker of" if len(found.workers) == 1 else f"{len(found.workers)} workers of"
            instead = "stop them, or drain them with `detent workers drain`, and wait until they have ended"
            raise self._refuse(f"{many} {name} are alive or were in the last 10 s ({named})", instead)
        if found.running_count:
            named = ", ".join(map(str, found.running))
            jobs = f"job {named} is" if found.running_count == 1 else f"{found.running_count} jobs are"
            which = "" if found.running_count == 1 else f" (such as {named})"
            instead = (
                "drain the workers and wait until the jobs have ended; jobs of a worker that died are released by the "
                "next worker when their lease has expired"
            )
            raise self._refuse(f"{jobs} running{which}", instead)

    def _check_arrived(self, out: MoveRow) -> None:
        """The source has moved. If it moved here, make sure that the target is open: only that can be missing."""
        into = self._arriving(out)
        if into is None:
            raise self._refuse(_moved_to(out), "use that one")
        if into.state == "loading":
            self._target.open_in(out.move_id)

    def _arriving(self, out: MoveRow) -> MoveRow | None:
        """Return the row of this move in the target; None if it does not go there, whatever the target is called."""
        try:
            self._target_store.ready(create=False)
        except SchemaMissing:
            return None
        into = self._move_in()
        return into if into is not None and into.move_id == out.move_id else None

    def _identity(self) -> str:
        rows = self._source_store.identity_list()
        if not rows:
            raise self._refuse("it has no identity, so its effect keys cannot be kept", "run `detent identities renew`")
        return max(rows, key=lambda row: row.n).identity

    # -- the steps ---------------------------------------------------------------------------------------------

    def _begin(self, out: MoveRow | None) -> str:
        """Close the source, then the target. Return the move's id."""
        if out is None:
            move = NewMove(
                move_id=new_move_id(),
                source=self._source.name,
                target=self._target.name,
                identity=self._identity(),
                actor=self._actor,
                reason=self._reason,
            )
            if not self._force and (found := self._source_store.verify(self._watch_verify("check the source"))):
                instead = "see `detent verify` and `detent repair`, or add --force to move it as it is"
                raise self._refuse(_broken("it violates", found), instead)
            if (activity := self._source.close_out(move)) is not None:
                self._check_quiet(self._source.name, activity)
        else:
            move = NewMove(
                move_id=out.move_id,
                source=self._source.name,
                target=out.place,
                identity=out.identity,
                actor=out.actor,
                reason=out.reason,
            )
        into = self._move_in()
        if into is None or into.move_id != move.move_id:
            # An earlier move from this source was cancelled. The source has lived on since, so its rows are old.
            is_stale = into is not None and into.state == "loading"
            if (full := self._target.begin_in(move, wiped=is_stale)) is not None:
                filled = f"{self._target.name} is no longer empty: its table {full} has rows"
                raise self._refuse(filled, "run `detent move --cancel`, and give a target that is empty")
        return move.move_id

    def _copy(self, move_id: str) -> int:
        """Copy what is missing. Return how many rows were copied."""
        self._watch(MoveProgress(step="count the rows"))
        counts = self._source.counts(self._tables)
        places, total = self._target.places(), sum(counts.values())
        done = sum(place.copied for place in places.values())
        before = done
        for table in self._tables:
            place = places.get(table.name, Place())
            if place.complete:
                continue
            self._check_not_cancelled(move_id)
            with self._source.rows(table, place.last_key) as rows:
                for portion, is_last in portions(rows, table, self._rows_max, self._bytes_max):
                    key = table.key_of(portion[-1]) if portion else place.last_key
                    then = Place(place.copied + len(portion), key, is_last)
                    self._write(move_id, table, portion, place, then)
                    place, done = then, done + len(portion)
                    self._watch(MoveProgress(step=f"copy {table.name}", rows=done, total=total))
        return done - before

    def _write(self, move_id: str, table: Table, rows: Sequence[Row], was: Place, then: Place) -> None:
        try:
            is_written = self._target.write(move_id, table, rows, was, then)
        except (GuardViolation, InvalidInput) as error:
            which = f"one of {len(rows)} rows of {table.name} from {table.key_of(rows[0])} to {then.last_key}"
            instead = "undo the move with `detent move --cancel`, and mend the row"
            raise self._refuse(f"{self._target.name} refuses {which}: {error}", instead) from error
        if not is_written:
            raise self._refuse("another call moves it too, or has cancelled the move", "see which one, and let it end")

    def _finish(self, move_id: str) -> dict[str, int]:
        """Put everything in its place and check it. Then the source is closed for good, and the target opens. Return
        how many rows each table has."""
        self._watch(MoveProgress(step="install the guards"))
        self._target.finish_load(move_id, self._source.counters())
        counts = self._compare(move_id)
        if found := self._target_store.verify(self._watch_verify("check the target")):
            known = {_essence(one) for one in self._source_store.verify(self._watch_verify("check the source"))}
            if strange := [one for one in found if not self._force or _essence(one) not in known]:
                instead = "nothing was opened; undo the move with `detent move --cancel`"
                self._check_not_cancelled(move_id)
                raise self._refuse(_broken(f"{self._target.name} would violate", strange), instead)
        if not self._source.mark_moved(move_id):
            self._check_not_cancelled(move_id)
        self._target.open_in(move_id)
        return counts

    def _check_not_cancelled(self, move_id: str) -> None:
        out = self._move_out()
        if out is None or out.move_id != move_id:
            raise self._refuse("the move was cancelled meanwhile", "run it again")

    def _compare(self, move_id: str) -> dict[str, int]:
        self._watch(MoveProgress(step="compare the counts"))
        here, there = self._source.counts(self._tables), self._target.counts(self._tables)
        for name, rows in here.items():
            if there[name] != rows:
                self._check_not_cancelled(move_id)
                found = f"its table {name} has {rows:,} rows, and {self._target.name} has {there[name]:,} of them"
                raise self._refuse(found, "undo the move with `detent move --cancel`")
        return here

    def _watch_verify(self, step: str) -> Callable[[int], None]:
        return lambda left: self._watch(MoveProgress(step=f"{step} ({left} invariants left)"))


def portions(rows: Iterator[Row], table: Table, rows_max: int, bytes_max: int) -> Iterator[tuple[list[Row], bool]]:
    """Cut rows into portions of bounded size; the last one is marked, and may be empty."""
    texts = table.texts()
    portion: list[Row] = []
    size = 0
    for row in rows:
        if len(portion) >= rows_max or size >= bytes_max:
            yield portion, False
            portion, size = [], 0
        portion.append(row)
        for at in texts:
            if (value := row[at]) is not None:
                size += len(value)
    yield portion, True


def _moved_to(row: MoveRow) -> str:
    at = "" if row.ended_at is None else f" at {row.ended_at.isoformat()}"
    return f"it was moved to {row.place}{at}"


def _essence(violation: Violation) -> tuple[str, str, str]:
    return violation.invariant, violation.entity, violation.entity_id


def _broken(says: str, found: Sequence[Violation]) -> str:
    names = sorted({one.invariant for one in found})
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    many = "1 invariant" if len(names) == 1 else f"{len(names)} invariants"
    return f"{says} {many} ({', '.join(names[:_NAMED_MAX])}{more})"
