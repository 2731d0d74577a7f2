"""schedule_list: every schedule, by name."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.schedules.sample_schedules import schedule


def test_by_name_letter_for_letter(store: Store) -> None:
    assert store.schedule_list() == []
    for name in ("b", "ä", "B", "a"):
        store.schedule_put(schedule(name))
    assert [row.name for row in store.schedule_list()] == ["B", "a", "b", "ä"]
