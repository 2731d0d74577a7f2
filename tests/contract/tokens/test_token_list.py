"""token_list: page by page, the highest id first."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.tokens.sample_tokens import BELOW_ALL, new_token


def test_page_by_page(store: Store) -> None:
    for number in range(5):
        store.token_create(new_token(store, f"t{number}"))
    first = store.token_list(False, BELOW_ALL, 2)
    rest = store.token_list(False, first[-1].id, 10)
    assert [row.name for row in (*first, *rest)] == ["t4", "t3", "t2", "t1", "t0"]


def test_revoked_ones_are_listed_if_asked_for(store: Store) -> None:
    for name in ("ana", "bob"):
        store.token_create(new_token(store, name))
    store.token_revoke("ana", "carol")
    assert [row.name for row in store.token_list(False, BELOW_ALL, 10)] == ["bob"]
    assert [row.name for row in store.token_list(True, BELOW_ALL, 10)] == ["bob", "ana"]
