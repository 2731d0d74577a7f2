"""A user's own table under guards: the same enforcement as a job's."""

from __future__ import annotations

from typing import Any, cast

import pytest

from detent.lifecycle.definition import Lifecycle, Transition
from detent.model.records import Moved
from detent.store.contract import Store
from detent.store.entities.guards import entity_guards
from tests.guards.prompt import Prompt

ORDER = Lifecycle(
    "order",
    states={"placed": "Ordered.", "paid": "Paid.", "sent": "On its way.", "dropped": "Given up."},
    initial="placed",
    final=frozenset({"sent", "dropped"}),
    transitions=(
        Transition("placed", "paid", "pay", "gateway", "The money has come."),
        Transition("paid", "sent", "send", "warehouse", "The parcel has left."),
        Transition("placed", "dropped", "drop", "customer", "The customer changed their mind."),
    ),
)
WAY = {"placed": (), "paid": ("pay",), "sent": ("pay", "send"), "dropped": ("drop",)}
PAIRS = [(source, target) for source in ORDER.states for target in ORDER.states if source != target]


@pytest.fixture
def shop(store: Store, prompt: Prompt) -> Prompt:
    """A table with guards and one fresh order in it; guards may be installed twice."""
    prompt.run("CREATE TABLE orders (id integer PRIMARY KEY, state text NOT NULL, note text)")
    guards = entity_guards("sqlite" if prompt.sqlite else "postgres", ORDER, "orders", "id", "state")
    prompt.script(guards)
    prompt.script(guards)
    prompt.run("INSERT INTO orders VALUES (1, 'placed', '')")
    return prompt


def move(store: Store, trigger: str) -> Any:
    return store.entity_move(ORDER, "orders", "id", "state", "1", trigger, "ana")


@pytest.mark.parametrize("source", ORDER.states)
def test_a_bare_update_is_refused(store: Store, shop: Prompt, source: str) -> None:
    """L6, L2: undeclared, or declared and without its record: refused by the database."""
    for trigger in WAY[source]:
        assert move(store, trigger).changed
    for target in (target for found, target in PAIRS if found == source):
        shop.refuses(f"UPDATE orders SET state = '{target}' WHERE id = 1")
    assert shop.value("SELECT state FROM orders") == source


@pytest.mark.parametrize("source", ORDER.states)
def test_an_undeclared_move_is_refused_with_a_line_too(store: Store, shop: Prompt, source: str) -> None:
    """L6, L2"""
    for trigger in WAY[source]:
        move(store, trigger)
    for target in (target for found, target in PAIRS if found == source and (found, target) not in ORDER.pairs):
        shop.refuses(
            "INSERT INTO {transition_log} (entity, entity_id, from_state, to_state, trigger, actor, at) "
            f"VALUES ('order', '1', '{source}', '{target}', 'x', 'me', {shop.now()})",
            f"UPDATE orders SET state = '{target}' WHERE id = 1",
        )


def test_declared_moves_go_through_with_their_record(store: Store, shop: Prompt) -> None:
    """L6, E4: the beginning is on record as well."""
    assert move(store, "pay") == Moved("1", "paid", True)
    assert move(store, "send") == Moved("1", "sent", True)
    lines = [(line.from_state, line.to_state, line.trigger) for line in store.transitions("order", "1")]
    assert lines == [(None, "placed", "create"), ("placed", "paid", "pay"), ("paid", "sent", "send")]


def test_other_columns_are_the_users_own(store: Store, shop: Prompt) -> None:
    """L6: the guard watches the state, nothing else."""
    shop.run("UPDATE orders SET note = 'gift', state = 'placed' WHERE id = 1")
    assert shop.value("SELECT note FROM orders") == "gift"


def test_an_entity_begins_at_the_beginning(store: Store, shop: Prompt) -> None:
    """L2"""
    shop.refuses("INSERT INTO orders VALUES (2, 'paid', '')")
    if shop.sqlite:
        shop.refuses("INSERT OR REPLACE INTO orders VALUES (1, 'sent', '')")


def test_a_change_of_other_columns_does_not_call_the_guard(store: Store, shop: Prompt) -> None:
    """L6: every UPDATE of a user's table built JSON of the row four times, whichever columns it changed."""
    if shop.sqlite:
        calls = "SELECT count(*) FROM sqlite_master WHERE tbl_name = 'orders' AND sql LIKE '%UPDATE OF \"state\"%'"
        assert shop.value(calls) == 1
        return
    for change in ("note = 'gift'", "note = 'x', state = state, id = id"):
        (plan,) = cast(list[Any], shop.value(f"EXPLAIN (ANALYZE, FORMAT JSON) UPDATE orders SET {change}"))
        assert plan["Triggers"] == []
    shop.refuses("UPDATE orders SET state = 'paid' WHERE id = 1")
    shop.refuses("UPDATE orders SET id = 2 WHERE id = 1")


def test_a_trigger_of_the_users_own_cannot_move_the_state(store: Store, shop: Prompt) -> None:
    """L2: an UPDATE that does not name the state, whose own trigger changes it, is looked at as well."""
    if shop.sqlite:
        shop.run("CREATE TRIGGER sly AFTER UPDATE OF note ON orders BEGIN UPDATE orders SET state = 'paid'; END")
    else:
        shop.run(
            "CREATE FUNCTION sly() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN NEW.state := 'paid'; RETURN NEW; END $$",
            "CREATE TRIGGER a_sly BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION sly()",
        )
    shop.refuses("UPDATE orders SET note = 'gift' WHERE id = 1")
