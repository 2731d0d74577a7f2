"""What the record of a workflow says about the next step, without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from detent.errors import InvalidInput, StepAmbiguous, StepTooNew, WorkflowDrift
from detent.model.workflow_records import StepKind, StepRow, WorkflowHistory
from detent.workflow.history import StepHistory

NOW = datetime(2026, 1, 1, tzinfo=UTC)


NEWER = cast(StepKind, "nap")


def row(path: str, seq: int, *, scope: str = "", beside: bool = False, kind: StepKind = "call") -> StepRow:
    return StepRow(
        job_id=7,
        generation=1,
        path=path,
        seq=seq,
        kind=kind,
        scope=scope,
        attempt=1,
        fingerprint=None,
        beside=beside,
        secret=False,
        undo=False,
        began_at=NOW,
        done_at=NOW + timedelta(seconds=seq),
        value="null",
        error=None,
    )


def history(*rows: StepRow, version: int = 1) -> StepHistory:
    made = StepHistory(7, version)
    made.load(WorkflowHistory(version=1, generation=1, now=NOW, steps=list(rows), next=None))
    return made


def ask(found: StepHistory, name: str, key: str | int | None = None, scope: str = "") -> StepRow | None:
    return found.find(found.identify(scope, name, key))


def test_steps_of_one_name_are_counted_within_their_scope() -> None:
    found = StepHistory(7, 1)
    assert [found.identify("", "page") for _ in range(3)] == ["page", "page#2", "page#3"]
    assert found.identify("shop", "page") == "shop/page"
    assert found.identify("", "page", key=3) == "page:3"
    assert found.identify("", "page", key="a/b~c") == "page:a%2Fb%7Ec"


def test_a_key_is_given_once() -> None:
    found = StepHistory(7, 1)
    found.identify("", "page", key=1)
    with pytest.raises(InvalidInput, match="twice for step 'page'"):
        found.identify("", "page", key=1)


def test_two_steps_of_one_name_in_flight_cannot_be_told_apart() -> None:
    found = StepHistory(7, 1)
    found.enter("", found.identify("", "page"))
    with pytest.raises(StepAmbiguous, match=r"Step\('page', key=…\)"):
        found.identify("", "page")
    found.identify("", "page", key=2)
    found.identify("other", "page")


def test_a_step_before_recorded_ones_is_refused_with_both_names() -> None:
    found = history(row("reserve", 1), row("charge", 2), row("ship", 3))
    assert ask(found, "reserve") is not None
    path = found.identify("", "audit")
    drift = found.is_next("", path)
    assert isinstance(drift, WorkflowDrift)
    assert (drift.asked, drift.expected) == ("audit", "charge")


def test_a_step_after_all_recorded_ones_is_welcome_even_if_one_was_removed() -> None:
    found = history(row("reserve", 1), row("charge", 2), row("ship", 3))
    ask(found, "reserve")
    ask(found, "ship")
    assert found.is_next("", found.identify("", "close")) is None
    assert found.leftover() == ["charge"]


def test_the_end_of_a_wait_is_no_step_of_its_own() -> None:
    found = history(row("reserve", 1), row("signal ok~deadline", 2, kind="deadline"))
    ask(found, "reserve")
    assert found.is_next("", found.identify("", "signal ok")) is None
    assert not found.is_replaying


def test_the_order_of_steps_side_by_side_says_nothing() -> None:
    found = history(row("a", 1, beside=True), row("b", 2, beside=True))
    assert found.is_next("", found.identify("", "c")) is None


def test_other_scopes_have_an_order_of_their_own() -> None:
    found = history(row("left/a", 1, scope="left"), row("right/a", 2, scope="right"))
    assert ask(found, "a", scope="right") is not None
    assert found.is_next("right", found.identify("right", "b")) is None
    assert isinstance(found.is_next("left", found.identify("left", "b")), WorkflowDrift)


def test_a_workflow_keeps_the_version_under_which_it_began() -> None:
    assert history(row("a", 1), version=3).version == 1
    fresh = StepHistory(7, 3)
    fresh.load(WorkflowHistory(version=None, generation=1, now=NOW, steps=[], next=None))
    assert fresh.version == 3


def test_numbers_continue_after_the_record_and_time_is_that_of_the_last_step_seen() -> None:
    found = history(row("a", 1), row("b", 5))
    assert found.next_seq() == 6
    assert found.last_at is None
    ask(found, "a")
    assert found.last_at == NOW + timedelta(seconds=1)
    assert found.is_replaying
    ask(found, "b")
    assert not found.is_replaying


def test_a_step_that_is_looked_for_twice_is_one_step() -> None:
    """A wait is looked for by its name, and once more before the database is asked."""
    found = history(row("signal go", 1, kind="signal"), row("b", 2))
    ask(found, "signal go")
    found.find("signal go")
    assert found.is_replaying


def test_a_step_of_an_unknown_kind_is_refused_and_a_note_beside_one_is_not() -> None:
    """F25: a newer release has recorded them."""
    with pytest.raises(StepTooNew, match=r"step 'sleep' is on record as 'nap'.*Upgrade Detent here"):
        history(row("sleep", 1, kind=NEWER))
    assert ask(history(row("a", 1), row("a~nap", 2, kind=NEWER)), "a") is not None
