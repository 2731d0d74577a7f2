"""declaration_list: what is declared in code."""

from __future__ import annotations

from detent.store.contract import Store


def test_the_newest_of_each_by_kind_and_name(store: Store) -> None:
    for kind, name, fingerprint in (("schedule", "b", "1"), ("schedule", "B", "1"), ("limit", "z", "1")):
        store.declaration_put(kind, name, fingerprint, False)  # type: ignore[arg-type]
    store.declaration_put("schedule", "b", "2", False)
    found = [(row.kind, row.name, row.fingerprint) for row in store.declaration_list()]
    assert found == [("limit", "z", "1"), ("schedule", "B", "1"), ("schedule", "b", "2")]
    assert all(row.at == store.now() for row in store.declaration_list())
