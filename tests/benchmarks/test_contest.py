"""The contest runs: a few jobs through the real worker and through the floor, on both databases."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.contest.run import contest
from benchmarks.contest.works import QUICK
from benchmarks.fill import fill
from benchmarks.places import Places
from detent import Detent
from detent.store.open import open_store
from detent.testing.postgres import Cluster

TINY = replace(QUICK, drained=40)


@pytest.mark.timeout(300)
def test_everybody_of_ours_drains_to_the_end(postgres_cluster: Cluster, tmp_path: Path) -> None:
    said: list[str] = []
    places = Places(postgres_cluster, tmp_path)
    found = contest(places, TINY, works=["drain"], names=["Detent", "floor"], say=said.append)
    assert not found.missing, said
    reached = {(one.database, one.contender): one.values["per_second"] for one in found.samples}
    assert set(reached) == {(base, name) for base in ("PostgreSQL", "SQLite") for name in ("Detent", "floor")}
    assert all(rate > 0 for rate in reached.values())


@pytest.mark.parametrize(("finished", "pending"), [(30, 20), (0, 3)])
def test_a_filled_past_is_a_true_record_under_guard(database_url: str, finished: int, pending: int) -> None:
    with closing(open_store(database_url)) as store:
        store.ready()
    fill(database_url, finished, pending)
    with closing(Detent(database_url)) as app:
        assert app.record.verify() == []  # which looks for the guards, too
        counted = {count.state: count.jobs for count in app.store.counts()}
        assert counted.get("succeeded", 0) == finished
        assert counted["pending"] == pending
