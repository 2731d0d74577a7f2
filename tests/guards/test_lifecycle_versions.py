"""A lifecycle that is attached to a table only moves forward: an older version does not replace a newer one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from detent import Detent, Lifecycle, Transition
from detent.errors import InvalidTransition, LifecycleTooOld
from detent.testing.stores import dump
from tests.guards.prompt import Prompt

FIRST = Lifecycle(
    "order",
    states={"placed": "Ordered.", "sent": "On its way."},
    initial="placed",
    final=frozenset({"sent"}),
    transitions=(Transition("placed", "sent", "send", "warehouse", "The parcel has left."),),
)
SECOND = replace(
    FIRST,
    version=2,
    states={"placed": "Ordered.", "paid": "Paid.", "sent": "On its way."},
    transitions=(
        Transition("placed", "paid", "pay", "gateway", "The money has come."),
        Transition("paid", "sent", "send", "warehouse", "The parcel has left."),
    ),
)
PARCEL = replace(FIRST, name="parcel")


@contextmanager
def program(url: str, *lifecycles: Lifecycle) -> Iterator[Detent]:
    """A release of the user's program, which attaches these."""
    with closing(Detent(url)) as app:
        for lifecycle in lifecycles:
            app.lifecycles.attach(lifecycle, table=f"{lifecycle.name}s")
        yield app


@pytest.fixture
def tables(store_url: str) -> Iterator[Prompt]:
    with closing(Prompt(store_url)) as prompt:
        prompt.run(
            *(f"CREATE TABLE {name} (id integer PRIMARY KEY, state text NOT NULL)" for name in ("orders", "parcels"))
        )
        yield prompt


def guards(prompt: Prompt) -> object:
    if prompt.sqlite:
        return prompt.value("SELECT group_concat(sql) FROM sqlite_master WHERE tbl_name IN ('orders', 'parcels')")
    return prompt.value(
        "SELECT string_agg(pg_get_triggerdef(oid), ';' ORDER BY tgname) FROM pg_trigger"
        " WHERE tgrelid IN ('orders'::regclass, 'parcels'::regclass)"
    )


def test_an_older_release_does_not_take_a_lifecycle_back(store_url: str, tables: Prompt) -> None:
    """L8: in a rolling deploy the old release migrates after the new one; its states were gone without a word."""
    with program(store_url, SECOND) as new:
        new.migrate()
        tables.run("INSERT INTO orders VALUES (1, 'placed')")
        before, rows = guards(tables), dump(store_url)
        with program(store_url, PARCEL, FIRST) as old, pytest.raises(LifecycleTooOld) as refused:
            old.migrate()
        assert (refused.value.lifecycle, refused.value.found, refused.value.declared) == ("order", 2, 1)
        assert "lifecycle 'order' version 1 is older than version 2" in str(refused.value)
        assert (guards(tables), dump(store_url)) == (before, rows), "nothing is written, for the other table either"
        assert new.lifecycles.move(SECOND, 1, "pay", actor="ana").state == "paid"


def test_a_newer_release_replaces_it_and_the_same_one_again_changes_nothing(store_url: str, tables: Prompt) -> None:
    """L8"""
    with program(store_url, FIRST) as old:
        old.migrate()
        old.migrate()
    with program(store_url, SECOND) as new:
        new.migrate()
        before, rows = guards(tables), dump(store_url)
        new.migrate()
        assert (guards(tables), dump(store_url)) == (before, rows)
        tables.run("INSERT INTO orders VALUES (1, 'placed')")
        with pytest.raises(InvalidTransition):
            new.lifecycles.move(SECOND, 1, "send", actor="ana")
