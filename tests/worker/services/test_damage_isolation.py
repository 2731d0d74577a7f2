"""Rows that a service sets skipped: for how long, how many, and whom it tells."""

from __future__ import annotations

import pytest

from detent.errors import (
    TABLE,
    DatabaseBusy,
    DatabaseError,
    DatabaseForbidden,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseUnreachable,
    GuardViolation,
    NotADatabase,
    OutcomeUnknown,
    SchemaDiffers,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
)
from detent.model.records import BadRow
from detent.store.row_errors import cause_of, is_of_one_row
from detent.worker.services.damage_isolation import SkippedRows

OF_ALL = {
    *(
        DatabaseBusy,
        DatabaseForbidden,
        DatabaseFull,
        DatabaseReadOnly,
        DatabaseUnreachable,
        NotADatabase,
        OutcomeUnknown,
        SchemaDiffers,
    ),
    *(SchemaMissing, SchemaTooNew, SchemaTooOld),
}


def bad(number: int) -> BadRow:
    return BadRow("job", str(number), "boom", number)


def test_a_row_is_left_out_for_a_while_and_then_tried_again() -> None:
    skipped = SkippedRows(retry_after=60)
    skipped.add([bad(2), bad(1)], 100.0)
    assert skipped.skip(159.9) == [1, 2]
    assert skipped.skip(160.0) == []
    assert skipped.add([bad(1)], 160.0) == []
    assert skipped.skip(161.0) == [1]


def test_each_row_is_told_once_until_all_were_handled() -> None:
    skipped = SkippedRows()
    assert skipped.add([bad(1)], 0.0) == [bad(1)]
    assert skipped.add([bad(1), bad(2)], 100.0) == [bad(2)]
    assert skipped.reported == [bad(1), bad(2)]
    assert skipped.handled_all() is True
    assert skipped.handled_all() is False
    assert skipped.add([bad(1)], 200.0) == [bad(1)]


def test_it_remembers_a_bounded_number_of_rows() -> None:
    skipped = SkippedRows(rows_max=3)
    skipped.add([bad(number) for number in range(10)], 0.0)
    assert skipped.skip(1.0) == [7, 8, 9]
    assert len(skipped.reported) == 3


@pytest.mark.parametrize("kind", list(TABLE), ids=[kind.__name__ for kind in TABLE])
def test_which_errors_one_row_may_have_caused(kind: type[Exception]) -> None:
    """Every error that would strike any other statement as well is an outage, and no reason to pass over a row."""
    error = kind.__new__(kind)
    assert is_of_one_row(error) is not any(issubclass(kind, one) for one in OF_ALL)


def test_interrupts_are_no_rows_fault() -> None:
    assert not is_of_one_row(KeyboardInterrupt())
    assert is_of_one_row(KeyError("state"))


def test_a_cause_is_one_short_line() -> None:
    assert cause_of(GuardViolation("db", "no\nmore")) == "a guard of the database refused (db): no"
    assert len(cause_of(DatabaseError("db", "x" * 5000))) == 300
    assert cause_of(ValueError()) == "ValueError"
