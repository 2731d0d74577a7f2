"""P14: a slice is clean, and what an attacker must not reach is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import psycopg
import pytest

from detent.http import authentication, request_checks
from detent.testing.harness import Harness
from detent.testing.postgres import URL_VARIABLE, Cluster
from detent.webhooks.destination import AllowList
from prove.figure import Budget, Tally
from prove.hostile.world import declare_all
from prove.kills.scene import databases
from prove.security.database_roles import attack_database
from prove.security.dependencies import look_at_dependencies
from prove.security.outbound import attack_webhooks
from prove.security.requests import Kind, attack_server, other_places, other_tenants
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(300)
SLICE = 0.03


def budget() -> Budget:
    return Budget("commit", 1, scaled(60), 1)


@pytest.fixture
def postgres(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A database with a job in it."""
    monkeypatch.setenv(URL_VARIABLE, postgres_cluster.url)
    with databases("postgres") as servers, next(servers) as url:
        with closing(Harness(url)) as harness:
            job_id = harness.use(declare_all(harness.app)).enqueue_named("add", '{"a":1,"b":2}').id
        yield url, job_id


def test_logins_of_each_role_reach_what_it_grants_and_nothing_else(postgres: tuple[str, int]) -> None:
    """S2, TQ1, TQ2; and a table that every role may read is found."""
    clean = Tally()
    attack_database(*postgres, budget(), Random(1), clean, SLICE)
    assert clean.is_clean, clean.stories
    assert clean.covered["sqlstate 42501"] > 50
    with psycopg.connect(postgres[0], autocommit=True) as owner:
        owner.execute("GRANT EXECUTE ON FUNCTION detent.queue_pause_v1 TO PUBLIC")
        owner.execute("GRANT SELECT ON detent.token TO PUBLIC")
        owner.execute("ALTER FUNCTION detent.job_get_v1 RESET search_path")
    found = Tally()
    attack_database(*postgres, budget(), Random(1), found, 1.0, ["client"])
    stories = "\n".join(found.stories)
    assert "role client: SELECT detent.queue_pause_v1(" in stories
    assert "role client: SELECT * FROM detent.token LIMIT 1\nit was done" in stories
    assert "detent.job_get_v1(bigint[]) runs as its owner with the search path ''" in stories


def test_requests_of_attackers_are_refused(sqlite_url: str) -> None:
    """S4"""
    tally = Tally()
    attack_server(sqlite_url, budget(), Random(1), tally, SLICE)
    assert tally.is_clean, tally.stories


@pytest.mark.parametrize(
    ("place", "name", "instead", "kind", "says"),
    [
        (authentication, "check_path", lambda *_: None, other_tenants, "what has no tenant"),
        (request_checks, "_foreign_origin", lambda *_: None, other_places, "a page of another origin"),
        (request_checks, "_HEADERS", (), other_places, "the header x-content-type-options is None"),
    ],
)
def test_a_guard_that_is_taken_away_is_missed(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, instead: Any, kind: Kind, says: str
) -> None:
    monkeypatch.setattr(place, name, instead)
    tally = Tally()
    attack_server(sqlite_url, budget(), Random(1), tally, 0.2, [kind])
    assert any(says in story for story in tally.stories)


def test_deliveries_and_urls_of_attackers_are_refused(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TW1, TW2, TW4: and each guard that is taken away is missed."""
    clean = Tally()
    attack_webhooks(sqlite_url, budget(), Random(1), clean)
    assert clean.is_clean, clean.stories
    assert (
        min(clean.injected[name] for name in ("forged delivery", "repeated delivery", "URL that is not allowed")) > 20
    )
    monkeypatch.setattr(AllowList, "check_url", lambda *_: None)
    found = Tally()
    attack_webhooks(sqlite_url, budget(), Random(1), found)
    assert any(story.startswith("a webhook may go to 'http://erp.example/'") for story in found.stories)


def test_dependencies_are_declared_pinned_and_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """TK9: and one that is not pinned is found."""
    clean = Tally()
    look_at_dependencies(clean)
    assert clean.is_clean, clean.stories
    monkeypatch.setattr("prove.security.dependencies._imports", lambda _: [])
    monkeypatch.setattr("prove.security.dependencies._pinned", lambda _: {"msgspec"})
    found = Tally()
    look_at_dependencies(found)
    assert "constraints.txt does not pin click" in found.stories
