"""The demo's check of its outcome finds every kind of fault."""

from __future__ import annotations

import pytest
from msgspec import structs

from detent.app.detent import Detent
from detent.cli.demo.workload import EXPECTED, WRITERS, Outcome
from detent.declare.context import Context
from detent.model.records import JobRow, Violation


@pytest.fixture
def outcome(sqlite_url: str) -> Outcome:
    """The outcome if all went well: as many rows as expected, made from a real one."""
    app = Detent(sqlite_url)
    row = app.task(name="nothing")(nothing).enqueue().refresh().row
    app.close()
    jobs: list[JobRow] = []
    for task, count in EXPECTED.items():
        state = "quarantined" if task == "poison" else "succeeded"
        jobs += [structs.replace(row, id=len(jobs) + n + 1, task=task, state=state, attempt=2) for n in range(count)]
    return Outcome(jobs, [(job.id, job.task) for job in jobs if job.task in WRITERS], [])


def nothing(ctx: Context) -> None: ...


def test_good_books_have_no_faults(outcome: Outcome) -> None:
    assert outcome.faults() == []
    assert outcome.by_task()[0] == ("photo", 160, 160, 0, 320, 2, 160)


def test_a_job_that_is_gone_is_a_fault(outcome: Outcome) -> None:
    (fault,) = Outcome([job for job in outcome.jobs if job.task != "poison"], outcome.ledger, []).faults()
    assert fault == "found 0 jobs of task poison; expected 1"


def test_a_job_that_did_not_end_well_is_a_fault(outcome: Outcome) -> None:
    jobs = [structs.replace(outcome.jobs[0], state="quarantined"), *outcome.jobs[1:]]
    faults = Outcome(jobs, outcome.ledger, []).faults()
    assert faults == [
        "job 1 (photo) is quarantined; expected succeeded",
        "job 1 (photo) is in the ledger, but did not succeed",
    ]


def test_an_effect_that_is_missing_is_a_fault(outcome: Outcome) -> None:
    (fault,) = Outcome(outcome.jobs, outcome.ledger[1:], []).faults()
    assert fault == "job 1 (photo) succeeded, but is not in the ledger"


def test_an_effect_that_happened_twice_is_a_fault(outcome: Outcome) -> None:
    (fault,) = Outcome(outcome.jobs, [*outcome.ledger, outcome.ledger[0]], []).faults()
    assert fault == "job 1 (photo) is in the ledger 2 times"


def test_a_violation_is_a_fault(outcome: Outcome) -> None:
    violation = Violation(invariant="no_job_is_stuck", entity="job", entity_id="1", detail="it is stuck")
    assert Outcome(outcome.jobs, outcome.ledger, [violation]).faults() == ["no_job_is_stuck: it is stuck"]
