"""signal_key: the secret of the database for tokens of signals."""

from __future__ import annotations

from detent.store.contract import Store


def test_each_database_has_its_own_from_the_start(store: Store) -> None:
    """256 bits, the same at every call; nothing has to be configured."""
    found = store.signal_key()
    assert found is not None
    assert len(bytes.fromhex(found)) == 32
    assert found == store.signal_key()
    assert store.signing_key() == bytes.fromhex(found)
    assert len(set(found)) > 4
