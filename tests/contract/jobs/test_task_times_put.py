"""task_times_put: what tasks say of themselves."""

from __future__ import annotations

from detent.model.service_records import TaskTimes
from detent.store.contract import Store
from tests.contract.refusals import Untouched

SLOW = TaskTimes(task="slow", stale_after=30.0, stalled_after=3600.5)
BRIEF = TaskTimes(task="brief", result_ttl=60.0)


def test_what_a_task_says_is_kept_changed_and_forgotten(store: Store) -> None:
    """R1, J13: as the code of whoever runs it says."""
    store.task_times_put([SLOW, BRIEF, TaskTimes(task="plain")])
    assert store.task_times_list() == [BRIEF, SLOW]
    faster = TaskTimes(task="slow", stalled_after=1.0)
    store.task_times_put([faster, TaskTimes(task="brief")])
    assert store.task_times_list() == [faster]


def test_the_same_again_changes_nothing(store: Store, untouched: Untouched) -> None:
    """L3: every worker says it when it starts."""
    store.task_times_put([SLOW])
    with untouched():
        store.task_times_put([SLOW, TaskTimes(task="plain")])
        store.task_times_put([])
