"""task_secrets_list: by name."""

from __future__ import annotations

from detent.model.service_records import TaskSecrets
from detent.store.contract import Store


def test_by_name(store: Store) -> None:
    assert store.task_secrets_list() == []
    names = ("b", "B", "a.b", "é")
    store.task_secrets_put([TaskSecrets(task=name, paths=("b", "a")) for name in names], False)
    assert store.task_secrets_list() == [TaskSecrets(task=name, paths=("a", "b")) for name in sorted(names)]
