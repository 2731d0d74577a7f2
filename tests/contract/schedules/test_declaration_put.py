"""declaration_put: a program declares a schedule or a limit in its code."""

from __future__ import annotations

import threading

from detent.store.contract import Store


def test_what_is_declared_first_is_new_and_then_the_same(store: Store) -> None:
    """L3"""
    assert store.declaration_put("schedule", "nightly", "a", False) == "new"
    assert store.declaration_put("schedule", "nightly", "a", False) == "same"
    assert store.declaration_put("limit", "nightly", "a", False) == "new"
    assert [(row.kind, row.name) for row in store.declaration_list()] == [("limit", "nightly"), ("schedule", "nightly")]


def test_older_code_does_not_take_back_what_newer_code_declared(store: Store) -> None:
    """A program of the older version that starts again during a rolling deploy finds its declaration replaced."""
    store.declaration_put("schedule", "nightly", "old", False)
    assert store.declaration_put("schedule", "nightly", "new", False) == "new"
    assert store.declaration_put("schedule", "nightly", "old", False) == "replaced"
    assert [row.fingerprint for row in store.declaration_list()] == ["new"]
    assert store.declaration_put("schedule", "nightly", "old", True) == "new"
    assert store.declaration_put("schedule", "nightly", "new", False) == "replaced"


def test_what_was_removed_stays_removed_until_it_is_declared_again(store: Store) -> None:
    store.declaration_put("schedule", "nightly", "a", False)
    assert store.declaration_put("schedule", "nightly", "", True) == "new"
    assert store.declaration_list() == []
    assert store.declaration_put("schedule", "nightly", "a", False) == "replaced"
    assert store.declaration_put("schedule", "nightly", "b", False) == "new"


def test_the_removal_of_what_code_never_declared_leaves_nothing(store: Store) -> None:
    assert store.declaration_put("schedule", "by hand", "", True) == "same"
    assert store.declaration_list() == []


def test_the_last_fifty_are_kept(store: Store) -> None:
    for number in range(51):
        store.declaration_put("limit", "task:price", str(number), False)
    assert store.declaration_put("limit", "task:price", "1", False) == "replaced"
    assert store.declaration_put("limit", "task:price", "0", False) == "new"


def test_programs_that_declare_at_once_come_one_after_the_other(store: Store) -> None:
    answers: list[str] = []

    def declare(fingerprint: str) -> None:
        answers.append(store.declaration_put("schedule", "nightly", fingerprint, False))

    threads = [threading.Thread(target=declare, args=(f"{number % 4}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count("new") == 4
    assert len(store.declaration_list()) == 1
