"""Rows that contradict themselves and each other in every way: repair neither fails nor makes anything worse."""

from __future__ import annotations

from random import Random

import pytest

from detent.store.contract import Store
from detent.store.invariants.postgres_definitions import postgres_constraints
from detent.testing.stores import dump
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner

ROUNDS = range(12)
CHECKS = [name for name, it in postgres_constraints().items() if it.table == "job" and it.kind == "c"]
STATES = ["pending", "running", "succeeded", "failed", "quarantined", "cancelled", "zombie"]
COLUMNS = {
    "state": [f"'{state}'" for state in STATES],
    "attempt": ["-1", "0", "1", "2", "7"],
    "ended": ["-1", "0", "1", "2", "7"],
    "spared": ["-1", "0", "1", "9"],
    "finished_at": ["NULL", "created_at"],
    "committed_at": ["NULL", "created_at"],
    "started_at": ["NULL", "created_at"],
    "leased_at": ["NULL", "created_at"],
    "lease_id": ["NULL", "1", "424242"],
    "due_at": ["created_at"],
}
LOST = ["ready", "waiting", "dead", "job_key", "execution", "transition_log"]


def spoil(owner: Owner, life: Life, chance: Random) -> None:
    """Two wrong columns in each of a few jobs, and a row lost here and there."""
    statements = []
    for job_id in chance.sample(sorted(life.ids.values()), 8):
        columns = chance.sample(sorted(COLUMNS), 2)
        changes = ", ".join(f"{column} = {chance.choice(COLUMNS[column])}" for column in columns)
        statements.append(f"UPDATE {{job}} SET {changes} WHERE id = {job_id}")
        if chance.random() < 0.5:
            statements.append(f"DELETE FROM {{{chance.choice(LOST)}}} WHERE job_id = {job_id}")
    owner.plant(*statements, without=CHECKS)


@pytest.mark.parametrize("seed", ROUNDS)
def test_impossible_rows_are_repaired_or_left_but_never_stop_the_repair(
    store: Store, store_url: str, life: Life, owner: Owner, seed: int
) -> None:
    """R3: after a repair whatever is still broken has a step that says why; a second one finds nothing to do."""
    spoil(owner, life, Random(seed))
    spoiled = dump(store_url)
    steps = store.repair("ana", "all of it", apply=True)
    assert steps
    left = {(step.entity, step.entity_id) for step in steps if not step.can}
    broken = {(violation.entity, violation.entity_id) for violation in store.verify()}
    assert broken <= left
    assert [step for step in store.repair("ana", "again", apply=True) if step.can] == []
    after = dump(store_url)
    for table in ("execution", "event"):
        assert after[table] == spoiled[table], table
    assert set(after["transition_log"]) >= set(spoiled["transition_log"])


def test_whatever_was_committed_stays_committed(store: Store, life: Life, owner: Owner) -> None:
    """R3, C1: a row that hides its commit gets it back; one that shows another is left for a person."""
    commits = "SELECT id, committed_at FROM {job} WHERE committed_at IS NOT NULL ORDER BY id"
    before = owner.rows(commits)
    for seed in ROUNDS[:8]:
        spoil(owner, life, Random(seed))
        shown = dict(owner.rows(commits))
        store.repair("ana", "all of it", apply=True)
        after = dict(owner.rows(commits))
        assert after.items() >= shown.items()
    assert before
