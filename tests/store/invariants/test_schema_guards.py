"""An owner who took the guards away is found, and repair puts them back as they were installed."""

from __future__ import annotations

import pytest

from detent.store.contract import Store
from detent.store.postgres.installed_parts import guard_functions, triggers
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner, guard_names


def found(store: Store) -> set[tuple[str, str, str]]:
    return {(violation.invariant, violation.entity, violation.entity_id) for violation in store.verify()}


def test_every_guard_that_is_dropped_is_found_and_put_back(store: Store, life: Life, owner: Owner) -> None:
    """L2, E1, R3: all of them at once; afterwards the guards hold again."""
    names = guard_names(owner)
    assert len(names) > 10
    for name in names:
        on = "" if owner.sqlite else f" ON detent.{triggers()[name].table}"
        owner.run(f"DROP TRIGGER {name}{on}")
    assert found(store) == {("guards_are_in_place", "trigger", name) for name in names}
    steps = store.repair("ana", "somebody took them", apply=True)
    assert all(step.can for step in steps)
    assert store.verify() == []
    with pytest.raises(Exception, match="DT041"):
        owner.run("DELETE FROM {event}")


def test_a_guard_that_was_changed_is_found_and_put_back(store: Store, life: Life, owner: Owner) -> None:
    """L2, R3: the name alone is not enough."""
    if owner.sqlite:
        name = "detent_event_keep"
        owner.run(f"DROP TRIGGER {name}", f"CREATE TRIGGER {name} BEFORE UPDATE ON {{event}} BEGIN SELECT 1; END")
    else:
        name = "event_keep"
        owner.run(
            f"DROP TRIGGER {name} ON {{event}}",
            f"CREATE TRIGGER {name} BEFORE DELETE ON {{event}} FOR EACH ROW EXECUTE FUNCTION detent.keep()",
        )
    assert found(store) == {("guards_are_in_place", "trigger", name)}
    store.repair("ana", "somebody changed it", apply=True)
    assert store.verify() == []


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
def test_a_guard_that_was_disabled_is_found_and_enabled(store: Store, life: Life, owner: Owner) -> None:
    """L2, R3: PostgreSQL can switch a trigger off and keep it."""
    owner.run("ALTER TABLE {job} DISABLE TRIGGER ALL")
    expected = {name for name, trigger in triggers().items() if trigger.table == "job"}
    assert found(store) == {("guards_are_in_place", "trigger", name) for name in expected}
    store.repair("ana", "somebody disabled them", apply=True)
    assert store.verify() == []


_EMPTY = {
    "trigger": "BEGIN RETURN NEW; END",
    "void": "BEGIN END",
    "text": "BEGIN RETURN ''; END",
    "bigint[]": "SELECT ARRAY[1::bigint]",
    "bigint": "SELECT 1::bigint",
}
"""Bodies that do nothing, by what a function returns."""


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
def test_the_body_of_every_guards_function_counts(store: Store, life: Life, owner: Owner) -> None:
    """L2, R3: PostgreSQL keeps what a guard does in a function; every one that is empty is found and put back."""
    for whole in guard_functions().values():
        empty = next(body for gives, body in _EMPTY.items() if f"RETURNS {gives}" in whole.ddl)
        owner.run(whole.ddl.replace(whole.body, empty))
    assert found(store) == {("guards_are_in_place", "function", name) for name in guard_functions()}
    store.repair("ana", "somebody emptied them", apply=True)
    assert store.verify() == []


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
@pytest.mark.parametrize("how", ["", " NOT VALID"])
def test_a_check_that_does_not_hold_everywhere_is_found(store: Store, life: Life, owner: Owner, how: str) -> None:
    """C1, R3: dropped, or there for new rows only; the step says what its owner has to type, and that mends it."""
    owner.run("ALTER TABLE {job} DROP CONSTRAINT job_succeeded_is_committed")
    if how:
        owner.run(f"ALTER TABLE {{job}} ADD CONSTRAINT job_succeeded_is_committed CHECK (attempt >= 0){how}")
    assert found(store) == {("constraints_are_in_place", "constraint", "job_succeeded_is_committed")}
    (step,) = store.repair("ana", "somebody dropped it", apply=True)
    assert not step.can
    owner.run(step.does.removeprefix("for its owner: "))
    assert store.verify() == []


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_table_whose_checks_were_edited_is_found(store: Store, life: Life, owner: Owner) -> None:
    """C1, R3: SQLite keeps its CHECKs in the text of the table."""
    owner.run(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'attempts_max >= 1', 'TRUE') WHERE name = 'detent_job'",
        "PRAGMA writable_schema = RESET",
    )
    assert found(store) == {("constraints_are_in_place", "table", "detent_job")}
    (step,) = store.repair("ana", "somebody edited it", apply=True)
    assert not step.can


def test_a_unique_index_that_was_dropped_is_made_by_what_the_step_says(store: Store, life: Life, owner: Owner) -> None:
    """C1, R3: the one-commit rule is a unique index; its step is for the owner, and mends it."""
    owner.drop_unique_index("execution_one_commit")
    (step,) = store.repair("ana", "somebody dropped it", apply=True)
    assert not step.can
    for statement in step.does.removeprefix("for its owner: ").split("; "):
        owner.run(statement)
    assert store.verify() == []
