"""The demo's verdict can say no: each thing that could be wrong is planted, and found."""

from __future__ import annotations

import pytest
from msgspec import structs

from detent.app.detent import Detent
from detent.cli.demo.books import EXPECTED, WRITERS, Books
from detent.declare.context import Context
from detent.model.records import JobRow, Violation


@pytest.fixture
def books(sqlite_url: str) -> Books:
    """As they are when all went well: rows like a real one, as many as there should be."""
    app = Detent(sqlite_url)
    row = app.task(name="nothing")(nothing).enqueue().refresh().row
    app.close()
    jobs: list[JobRow] = []
    for task, count in EXPECTED.items():
        state = "quarantined" if task == "poison" else "succeeded"
        jobs += [structs.replace(row, id=len(jobs) + n + 1, task=task, state=state, attempt=2) for n in range(count)]
    return Books(jobs, [(job.id, job.task) for job in jobs if job.task in WRITERS], [])


def nothing(ctx: Context) -> None: ...


def test_good_books_have_no_faults(books: Books) -> None:
    assert books.faults() == []
    assert books.lines()[0] == ("photo", 160, 160, 0, 320, 2, 160)


def test_a_job_that_is_gone_is_a_fault(books: Books) -> None:
    (fault,) = Books([job for job in books.jobs if job.task != "poison"], books.ledger, []).faults()
    assert fault == "0 jobs of task poison, and there should be 1"


def test_a_job_that_did_not_end_well_is_a_fault(books: Books) -> None:
    jobs = [structs.replace(books.jobs[0], state="quarantined"), *books.jobs[1:]]
    faults = Books(jobs, books.ledger, []).faults()
    assert faults == [
        "job 1 (photo) is quarantined, and should be succeeded",
        "job 1 (photo) is in the ledger, and did not succeed",
    ]


def test_an_effect_that_is_missing_is_a_fault(books: Books) -> None:
    (fault,) = Books(books.jobs, books.ledger[1:], []).faults()
    assert fault == "job 1 (photo) succeeded, and is not in the ledger"


def test_an_effect_that_happened_twice_is_a_fault(books: Books) -> None:
    (fault,) = Books(books.jobs, [*books.ledger, books.ledger[0]], []).faults()
    assert fault == "job 1 (photo) is in the ledger 2 times"


def test_a_violation_is_a_fault(books: Books) -> None:
    violation = Violation(invariant="no_job_is_stuck", entity="job", entity_id="1", detail="it is stuck")
    assert Books(books.jobs, books.ledger, [violation]).faults() == ["no_job_is_stuck: it is stuck"]
