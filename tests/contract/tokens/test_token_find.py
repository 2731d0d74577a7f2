"""token_find: by the hash, and by nothing else."""

from __future__ import annotations

from datetime import timedelta

from detent.model.token_records import hash_token
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.tokens.sample_tokens import new_token


def test_by_its_hash(store: Store, clock: StoreClock) -> None:
    """S4: an expired or revoked token is found too; the caller decides."""
    items = [new_token(store, "ana", expires_at=START + timedelta(seconds=1)), new_token(store, "bob")]
    for item in items:
        store.token_create(item)
    store.token_revoke("bob", "carol")
    clock.advance(2)
    assert [row and row.name for row in (store.token_find(item.hash) for item in items)] == ["ana", "bob"]


def test_no_other_text_finds_it(store: Store) -> None:
    item = new_token(store)
    store.token_create(item)
    for text in ("", "%", item.hash.upper(), item.hash[:-1], f"{item.hash} ", hash_token("dtn_x"), f"dtn_{item.id}"):
        assert store.token_find(text) is None
