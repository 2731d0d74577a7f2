"""task_times_list: the tasks that say something of themselves."""

from __future__ import annotations

from detent.model.service_records import TaskTimes
from detent.store.contract import Store


def test_by_name_whatever_the_locale_says(store: Store) -> None:
    """R1"""
    assert store.task_times_list() == []
    names = ("b", "a", "\u00e4", "B", "Z")
    store.task_times_put([TaskTimes(task=name, stale_after=1.0) for name in names])
    assert [one.task for one in store.task_times_list()] == sorted(names)
