"""identity_list: what tells this database from every other."""

from __future__ import annotations

from detent.store.contract import Store


def test_a_database_has_an_identity_from_the_beginning(store: Store) -> None:
    """C5"""
    (first,) = store.identity_list()
    assert (first.n, first.first_id, first.made_by, first.reason) == (1, 0, "migrate", None)
    assert len(first.identity) == 32
    assert store.identity_of(1) == store.identity_of(10**12) == first.identity
