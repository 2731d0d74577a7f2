"""The figure P3: a slice is clean on both databases, a seed repeats its points, and a commit that is taken for done is
found."""

from __future__ import annotations

import itertools
import random
from contextlib import closing

import pytest

from detent.errors import DatabaseUnreachable
from detent.store.open import open_store
from detent.store.postgres import commit_block
from detent.testing.lossy_proxy import Loss, Proxy, Request
from detent.testing.postgres import URL_VARIABLE, Cluster, find_binaries, start_cluster
from detent.testing.stores import plain_connection
from prove.figure import Budget, Tally
from prove.figures import FIGURES
from prove.kills.scene import Kind
from prove.lost_answers import sweep as lost_answers
from prove.lost_answers.sweep import sweep
from prove.lost_answers.ways import CRASH, ServerWay
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(300)
NAMES = ("work", "send under a key", "workflow transactions")


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Each kind of database in turn, on the server of this run."""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres_cluster")
        monkeypatch.setenv(URL_VARIABLE, cluster.url)
        return "postgres"
    return "sqlite"


def budget(seed: int = 1) -> Budget:
    return Budget("commit", seed, scaled(120), 1)


def test_a_slice_is_clean(kind: Kind) -> None:
    """G1, G2, G7: each kind of loss, at commits of jobs, of a keyed enqueue and of a workflow."""
    tally = sweep(budget(random.randrange(10**6)), kind, names=NAMES, most=15)
    assert tally.is_clean, tally.stories
    assert tally.injected.total() == 15
    assert {"fault request lost", "fault answer lost", "error OutcomeUnknown"} <= tally.covered.keys()
    assert (tally.covered["fault half-open connection"] > 0) == (kind == "postgres")


def test_a_server_that_crashes_after_a_commit() -> None:
    """G1, G2: it has written the commit, and dies before it answers."""
    binaries = find_binaries()
    if not binaries:
        pytest.skip("no binaries of PostgreSQL: a server that this run did not start is not stopped")
    with start_cluster(bin_dir=binaries[0]) as cluster:
        tally = sweep(budget(random.randrange(10**6)), "postgres", cluster=cluster, names=NAMES, most=2)
    assert tally.is_clean, tally.stories
    assert tally.injected == {CRASH: 2}


def test_a_late_request_arrives_after_the_client_was_cut_off(postgres_store_url: str) -> None:
    """The client finds nothing at first; later the write takes effect."""
    is_late = False

    def loses(request: Request) -> Loss | None:
        return "late" if is_late and request.verb == "ids_reserve" else None

    def reserved() -> int:
        with closing(plain_connection(postgres_store_url)) as connection:
            return int(connection.execute("SELECT last_value FROM detent.id_seq").fetchone()[0])

    with Proxy(postgres_store_url, loses) as proxy, closing(open_store(proxy.url)) as store:
        store.ids_reserve(1)  # prepares the statement
        before, is_late = reserved(), True
        with pytest.raises(DatabaseUnreachable):
            store.ids_reserve(7)
        assert reserved() == before
        proxy.deliver()
        assert reserved() >= before + 7
        assert proxy.lost == ["ids_reserve"]


def test_a_seed_repeats_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_answers._Sweep, "_count", lambda *_: 5)

    def drawn(seed: int) -> list[str]:
        deeds = dict.fromkeys(("a", "b", "c"), None)
        run = lost_answers._Sweep(ServerWay(), random.Random(seed), deeds, None, Tally())  # type: ignore[arg-type]
        return list(map(str, run.points(rounds=2)))

    first = drawn(7)
    assert drawn(7) == first
    assert drawn(8) != first
    each = {
        f"{name!r}: {loss} at commit {k}" for name, loss, k in itertools.product("abc", ServerWay().losses, range(1, 6))
    }
    assert len(first) == 2 * len(each)
    assert set(first) == each


def test_a_commit_that_is_taken_for_done_is_found(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block whose COMMIT never arrived, and that is not looked up, has no effect."""
    monkeypatch.setenv(URL_VARIABLE, postgres_cluster.url)
    monkeypatch.setattr(commit_block, "_settle", lambda *_: None)
    found = sweep(budget(), "postgres", names=("work",), findings_max=1)
    assert found.lost
    assert "'work': " in found.stories[0]


def test_the_figure_is_listed() -> None:
    assert {figure.id: figure.module for figure in FIGURES}["P3"] == "lost_answers"
