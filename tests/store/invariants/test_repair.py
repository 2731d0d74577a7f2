"""Repair shows its plan, rebuilds the projections from the records, and keeps its hands off committed facts (R3)."""

from __future__ import annotations

from contextlib import closing

import pytest

from detent.errors import DatabaseBusy
from detent.store.contract import Store
from detent.testing.stores import dump, plain_connection
from tests.store.invariants.cases import CASES, Corruption, pairs
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner

RECORDS = ("execution", "event", "horizon", "migration")
"""What is never rewritten, and to which repair adds nothing."""

HEALED = [case for case in CASES if case.heals]
LEFT = [case for case in CASES if not case.heals]


@pytest.mark.parametrize(("kind", "case"), pairs(HEALED), indirect=["kind"])
def test_repair_rebuilds_what_the_records_settle(
    store: Store, store_url: str, life: Life, owner: Owner, case: Corruption
) -> None:
    """R3, J1: the plan writes nothing; applied, every row is what it was before the corruption, and it is on record."""
    sound = dump(store_url)
    case.plant(owner, life)
    spoiled = dump(store_url)

    plan = store.repair("ana", "it was spoiled")
    assert dump(store_url) == spoiled
    of_data = [step for step in plan if step.invariant != "constraints_are_in_place"]
    assert of_data
    assert all(step.can for step in of_data)

    assert store.repair("ana", "it was spoiled", apply=True) == plan
    owner.validate()
    assert store.verify() == []
    assert store.repair("ana", "once more") == []

    mended = dump(store_url)
    for table in ("job", "ready", "waiting", "dead", "job_key", *RECORDS):
        if case.name != "running_without_any_lease" or table != "job":
            assert mended[table] == sound[table], table
    lines = owner.rows(
        "SELECT actor, reason FROM {transition_log} WHERE trigger = 'repair' AND metadata IS NOT NULL ORDER BY n"
    )
    assert lines == [("ana", "it was spoiled")] * len(of_data)


@pytest.mark.parametrize(("kind", "case"), pairs(LEFT), indirect=["kind"])
def test_repair_leaves_to_a_person_what_the_records_do_not_settle(
    store: Store, store_url: str, life: Life, owner: Owner, case: Corruption
) -> None:
    """R3, C1: the broken invariant has its step, which cannot be done and says why; no record and no commit changes."""
    case.plant(owner, life)
    spoiled = dump(store_url)
    steps = store.repair("ana", "it was spoiled", apply=True)
    left = {(step.invariant, step.entity, step.entity_id): step.does for step in steps if not step.can}
    assert left[(case.invariant, *case.named(owner, life))]
    after = dump(store_url)
    for table in RECORDS:
        assert after[table] == spoiled[table], table
    assert set(after["transition_log"]) >= set(spoiled["transition_log"])
    assert store.repair("ana", "once more") == [step for step in steps if not step.can]


def test_a_repaired_job_without_its_lease_is_taken_by_the_reaper(store: Store, life: Life, owner: Owner) -> None:
    """R3, J6: the lease that repair makes has expired, so the attempt ends and the job is claimable again."""
    owner.run(f"DELETE FROM {{lease}} WHERE id = (SELECT lease_id FROM {{job}} WHERE id = {life['running']})")
    store.repair("ana", "its lease was lost", apply=True)
    assert store.lease_reap(100).aborted == (life["running"],)
    assert life.claim("running").attempt == 2
    assert store.verify() == []


def test_a_committed_job_without_its_lease_comes_to_succeeded(store: Store, life: Life, owner: Owner) -> None:
    """R3, C1: what was committed is not run again after a repair."""
    owner.run(f"DELETE FROM {{lease}} WHERE id = (SELECT lease_id FROM {{job}} WHERE id = {life['committed']})")
    store.repair("ana", "its lease was lost", apply=True)
    assert store.lease_reap(100).recovered == (life["committed"],)
    assert store.verify() == []


def test_a_repaired_job_goes_on_as_if_nothing_had_been(store: Store, life: Life, owner: Owner) -> None:
    """R3, E5: lines of repair are in the record and stand in nobody's way."""
    before = store.state_as_of("job", str(life["failed"]), life.clock.now())
    owner.plant(f"UPDATE {{job}} SET state = 'pending', finished_at = NULL WHERE id = {life['failed']}")
    life.clock.advance(60)
    store.repair("ana", "it was spoiled", apply=True)
    assert store.state_as_of("job", str(life["failed"]), life.clock.now()) == before == "failed"
    life.give(store.job_retry([life["failed"]], "ana", "once more"))
    assert life.claim("failed").attempt == 2
    assert store.verify() == []


def test_the_line_of_a_repair_says_what_was_found_and_what_was_rebuilt(store: Store, life: Life, owner: Owner) -> None:
    """R3, E4: from, to, actor and reason."""
    owner.plant(f"UPDATE {{job}} SET state = 'pending', finished_at = NULL WHERE id = {life['failed']}")
    store.repair("ana", "it was spoiled", apply=True)
    (line,) = [line for line in store.transitions("job", str(life["failed"])) if line.trigger == "repair"]
    assert (line.from_state, line.to_state, line.actor, line.reason) == ("pending", "failed", "ana", "it was spoiled")
    assert line.metadata == (
        '{"invariant": "state_equals_record", "does": "set state pending → failed, finished_at from its record"}'
    )


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
def test_a_repair_does_not_wait_for_ever_behind_an_open_transaction(
    store: Store, store_url: str, life: Life, owner: Owner
) -> None:
    """R3, R4: whoever holds rows open makes the repair give up as busy, with nothing written; then it goes through."""
    owner.run(f"DELETE FROM {{ready}} WHERE job_id = {life['ready']}")
    spoiled = dump(store_url)
    with closing(plain_connection(store_url)) as somebody:
        somebody.execute("UPDATE detent.job SET metadata = metadata WHERE id = %s", (life["ready"],))
        with pytest.raises(DatabaseBusy):
            store.repair("ana", "it was spoiled", apply=True)
        assert dump(store_url) == spoiled
        somebody.rollback()
    assert [step.can for step in store.repair("ana", "it was spoiled", apply=True)] == [True]
