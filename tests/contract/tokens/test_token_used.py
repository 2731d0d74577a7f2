"""token_used: at most once a minute."""

from __future__ import annotations

from datetime import timedelta

from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.refusals import Untouched
from tests.contract.tokens.sample_tokens import new_token


def test_it_is_noted_once_a_minute(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    item = new_token(store)
    store.token_create(item)
    assert store.token_used(item.id)
    clock.advance(59)
    with untouched():
        assert not store.token_used(item.id)
        assert not store.token_used(item.id + 1)
    clock.advance(1)
    assert store.token_used(item.id)
    row = store.token_find(item.hash)
    assert row is not None
    assert row.last_used_at == START + timedelta(seconds=60)
