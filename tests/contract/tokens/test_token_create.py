"""token_create: a token is on record, and no two usable ones have the same name."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from detent.errors import GuardViolation, NameTaken
from detent.model.token_records import TokenRow
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.refusals import Untouched, refused
from tests.contract.tokens.sample_tokens import BELOW_ALL, new_token, record_of


def test_it_is_there_and_on_record(store: Store) -> None:
    """S4: with who created it, and why."""
    until = START + timedelta(days=1)
    item = new_token(store, role="operator", tenant="acme", expires_at=until, reason="the new dashboard")
    row = store.token_create(item)
    wanted = {"id": item.id, "name": "ana", "role": "operator", "tenant": "acme", "expires_at": until}
    wanted |= {"created_at": START, "created_by": "bob", "revoked_at": None, "revoked_by": None, "last_used_at": None}
    assert isinstance(row, TokenRow)
    assert msgspec.structs.asdict(row) == wanted
    assert store.token_find(item.hash) == row
    assert record_of(store) == [(None, "usable", "create", "bob", "the new dashboard")]


def test_the_same_again_is_the_same_token(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """D1: a caller that lost the answer sends it again."""
    item = new_token(store)
    first = store.token_create(item)
    clock.advance(1)
    with untouched():
        assert store.token_create(item) == first


def test_a_name_is_taken_until_its_token_is_revoked(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    store.token_create(new_token(store))
    second = new_token(store)
    with untouched():
        refused(store.token_create(second), NameTaken, entity="token", name="ana")
    store.token_revoke("ana", "bob")
    clock.advance(1)
    again = store.token_create(new_token(store, role="admin"))
    assert isinstance(again, TokenRow)
    assert store.token_list(False, BELOW_ALL, 10) == [again]
    assert [line[2] for line in record_of(store)] == ["create", "revoke", "create"]


@pytest.mark.parametrize(
    "wrong", [{"role": "root"}, {"tenant": ""}, {"expires_at": START}, {"hash": "abc"}, {"name": ""}]
)
def test_the_database_refuses_what_is_no_token(store: Store, untouched: Untouched, wrong: dict[str, object]) -> None:
    item = msgspec.structs.replace(new_token(store), **wrong)
    with untouched(), pytest.raises(GuardViolation):
        store.token_create(item)
