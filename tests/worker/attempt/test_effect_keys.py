"""Effect keys: the same in every attempt, and never those of another database."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from detent import Context, Detent, Job, Retry
from detent.store.open import open_store
from detent.testing.harness import Harness
from detent.testing.postgres import Cluster
from detent.testing.stores import install_clock

AGAIN = Retry(1, base=0, jitter=0)


@pytest.fixture(params=["sqlite", "postgres"])
def two_urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two databases of each kind in turn, each migrated by itself and not copied from a template."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/one.db", f"sqlite:///{tmp_path}/two.db"
        return
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    names = [f"detent_two_{secrets.token_hex(4)}_{n}" for n in (1, 2)]
    urls = [cluster.create_database(name) for name in names]
    for url in urls:
        with closing(open_store(url)) as store:
            store.ready()
        install_clock(url)
    yield urls[0], urls[1]
    for name in names:
        cluster.drop_database(name)


@contextmanager
def shop(url: str) -> Iterator[tuple[Harness, list[str]]]:
    """Open an application on that database. Its task notes the effect key of each attempt and fails at the first."""
    seen: list[str] = []

    with closing(Harness(url)) as harness:

        @harness.app.task(name="pay", retry=AGAIN)
        def pay(ctx: Context, order_id: int) -> None:
            seen.append(ctx.effect_key)
            if ctx.attempt == 1:
                raise ConnectionError("the bank is away")

        yield harness, seen


def sent(app: Detent) -> Job[None]:
    job: Job[None] = app.enqueue(app.find_task("pay").call(order_id=7))
    return job


def test_two_databases_never_give_the_same_key(two_urls: tuple[str, str]) -> None:
    """C5: job 1 of production and job 1 of staging are two payments; their keys were equal."""
    first, second = two_urls
    with shop(first) as (harness, ours), shop(second) as (other, theirs):
        assert sent(harness.app).id == sent(other.app).id
        harness.work()
        other.work()
        assert len(ours) == len(theirs) == 2
        assert not set(ours) & set(theirs)


def test_a_key_stays_the_same_in_every_attempt_and_process(store_url: str) -> None:
    """C5: also in a worker that starts later."""
    with shop(store_url) as (harness, seen):
        first = sent(harness.app)
        harness.work()
        identity = harness.app.identities.current()
        assert seen == [f"{identity}//job/{first.id}"] * 2
        assert len(identity) == 32
    with shop(store_url) as (later, again):
        second = sent(later.app)
        later.work()
        assert again == [f"{identity}//job/{second.id}"] * 2


def test_a_new_identity_is_for_new_jobs(store_url: str) -> None:
    """C5: what was sent before keeps its key, so a repeated effect is still recognised; new jobs get other keys."""
    with shop(store_url) as (harness, seen):
        before = sent(harness.app)
        old = harness.app.identities.current()
        renewed = harness.app.identities.renew(actor="ana", reason="restored into staging")
        assert renewed != old
        assert harness.app.identities.current() == renewed
    with shop(store_url) as (harness, seen):
        after = sent(harness.app)
        harness.work()
        assert set(seen) == {f"{old}//job/{before.id}", f"{renewed}//job/{after.id}"}
