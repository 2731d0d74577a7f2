"""Damaged indexes and pages of PostgreSQL are found if the extension amcheck is there; else `verify` says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from detent.cli.main import main
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.postgres import Cluster, start_cluster
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.store.invariants.owner import Owner

PAGE = 8192


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[Store]:
    with closing(open_store(postgres_store_url)) as store:
        yield store


def found(store: Store) -> set[tuple[str, str, str]]:
    return {(one.invariant, one.entity, one.entity_id) for one in store.verify()}


def test_an_index_that_lost_a_row_is_found(store: Store, postgres_store_url: str) -> None:
    """R3: `verify` said that all is well, though a claim by this index would miss the lease."""
    with closing(Owner(postgres_store_url)) as owner:
        owner.run("UPDATE pg_index SET indisready = false WHERE indexrelid = 'detent.lease_expiring'::regclass")
        enqueue(store)
        claim(store)
        owner.run("UPDATE pg_index SET indisready = true WHERE indexrelid = 'detent.lease_expiring'::regclass")
        damage = ("storage_is_sound", "file", "index lease_expiring")
        assert damage not in found(store)
        owner.run("CREATE EXTENSION amcheck")
        assert damage in found(store)
        steps = store.repair("ana", "an index is damaged", apply=True)
        assert [step for step in steps if step.can] == [], "nothing is rebuilt from what cannot be trusted"
        owner.run("REINDEX INDEX detent.lease_expiring")
        assert found(store) == set()


def test_verify_says_that_pages_were_not_checked(
    store: Store, postgres_store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R3: in one sentence, with what to do about it; it is no violation."""

    def said() -> str:
        assert main(["verify", "--database", postgres_store_url]) == 0
        return capsys.readouterr().err

    assert "Pages were not checked: `CREATE EXTENSION amcheck`" in said()
    with closing(Owner(postgres_store_url)) as owner:
        owner.run("CREATE EXTENSION amcheck")
    assert "not checked" not in said()


def spoil(cluster: Cluster, path: str) -> None:
    """Write over the first line of the first page, as a bad disk would. The server reads the page anew."""
    assert cluster.home is not None
    (file,) = [one for one in Path(cluster.home).rglob(path) if one.is_file()]
    content = bytearray(file.read_bytes())
    assert len(content) >= PAGE
    content[24:28] = b"\xff\x7f\xff\x7f"
    file.write_bytes(content)


def test_a_damaged_page_of_a_table_is_found() -> None:
    """R3: a server of its own, since the page is changed while it is down."""
    with start_cluster() as cluster:
        url = cluster.create_database("pages")
        with closing(open_store(url)) as store:
            store.ready()
            enqueue(store)
        with closing(Owner(url)) as owner:
            owner.run("CREATE EXTENSION amcheck", "CHECKPOINT")
            path = owner.value("SELECT pg_relation_filepath('detent.lane'::regclass)")
        cluster.restart()
        spoil(cluster, path)
        with closing(open_store(url)) as store:
            assert ("storage_is_sound", "file", "table lane") in found(store)
