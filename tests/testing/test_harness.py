"""`work()` and `awork()` do what a worker does: in async tests, by the clock of the test, on either database (U1)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from detent.testing.postgres import Cluster

pytest_plugins = ["pytester"]

Run = Callable[[str], dict[str, int]]

SHOP = """
import asyncio
from detent import Context, Detent, Retry

app = Detent("sqlite:///the-real-one.db", keep_succeeded=2)
failed = []
gates = {}

@app.task(name="plain")
def plain(ctx: Context, n: int) -> int:
    return asyncio.run(later(n))

@app.task(name="pay", retry=Retry(0))
async def pay(ctx: Context, order_id: int) -> int:
    await asyncio.sleep(0)
    if order_id < 0:
        raise ValueError("no such order")
    return order_id

@app.task(name="gated")
async def gated(ctx: Context) -> str:
    await gates["open"].wait()
    return "passed"

async def later(n):
    await asyncio.sleep(0)
    return n

@app.task(name="mourn")
def mourn(ctx: Context, job_id: int) -> None: ...

@app.on_failure
def tell(job):
    failed.append((job.id, job.state))
    mourn.enqueue(job_id=job.id)

app.schedule("0 * * * *", pay.call(order_id=1), name="hourly")
"""


@pytest.fixture
def run(pytester: pytest.Pytester, database_url: str) -> Run:
    pytester.makepyfile(shop=SHOP)
    pytester.makeconftest(f"import pytest\n@pytest.fixture\ndef detent_database_url():\n    return {database_url!r}\n")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")

    def run(source: str) -> dict[str, int]:
        pytester.makepyfile(test_shop=f"import asyncio\nimport pytest\nimport shop\n{source}")
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-q")
        assert not (pytester.path / "the-real-one.db").exists()
        return dict(result.parseoutcomes())

    return run


def test_work_inside_a_running_loop(run: Run) -> None:
    """Every async task failed with "asyncio.run() cannot be called from a running event loop", and lost an attempt."""
    assert run("""
def test_async(detent):
    async def test():
        detent.use(shop.app)
        job = shop.pay.enqueue(order_id=7)
        assert detent.work() == [job]
        assert (job.refresh().result, job.attempt) == (7, 1)
    asyncio.run(test())
""") == {"passed": 1}  # fmt: skip


def test_awork_runs_on_the_loop_of_the_test(run: Run) -> None:
    assert run("""
def test_async(detent):
    async def test():
        detent.use(shop.app)
        shop.gates["open"] = asyncio.Event()
        job, other = shop.gated.enqueue(), shop.plain.enqueue(n=3)
        asyncio.get_running_loop().call_later(0.01, shop.gates["open"].set)
        assert await detent.awork() == [job, other]
        assert (job.refresh().result, job.attempt, other.refresh().result) == ("passed", 1, 3)
        crashed = await shop.app.aio.enqueue(shop.gated.call())
        detent.crash(crashed, at="started")
        assert await detent.awork() == [crashed]
        detent.clock.advance(detent.lease + 1)
        await detent.awork()
        assert ((await crashed.refresh()).result, crashed.attempt) == ("passed", 2)
    asyncio.run(test())

def test_loop(detent):
    from detent.errors import WrongPlace
    detent.use(shop.app)
    for n in range(3):
        shop.plain.enqueue(n=n)
    with pytest.raises(WrongPlace, match="more than 2 attempts"):
        asyncio.run(detent.awork(most=2))
""") == {"passed": 2}  # fmt: skip


def test_schedules_hooks_and_retention_by_the_clock_of_the_test(run: Run) -> None:
    """None of them happened in a test."""
    assert run("""
from datetime import timedelta
from detent import errors

def test_schedule(detent):
    detent.use(shop.app)
    assert detent.work() == []
    detent.clock.advance(timedelta(hours=1))
    (job,) = detent.work()
    assert (job.result, job.row.metadata) == (1, '{"schedule":"hourly","tick":"2026-01-01T01:00:00+00:00"}')
    assert detent.work() == []

def test_hook(detent):
    detent.use(shop.app)
    shop.failed.clear()
    job = shop.pay.enqueue(order_id=-1)
    _, after = detent.work()
    assert shop.failed == [(job.id, "quarantined")]
    assert (after.row.task, after.state) == ("mourn", "succeeded")
    assert detent.work() == [] and len(shop.failed) == 1

def test_retention(detent):
    detent.use(shop.app).schedules.list()
    shop.app.schedules.pause("hourly", actor="test")
    job = shop.pay.enqueue(order_id=7)
    detent.work()
    detent.clock.advance(timedelta(days=1))
    detent.work()
    assert job.refresh().result == 7
    detent.clock.advance(timedelta(days=1, hours=1))
    detent.work()
    with pytest.raises(errors.NotFound):
        job.refresh()
    assert shop.app.record.verify() == []

def test_operation(detent):
    detent.use(shop.app)
    job = shop.pay.enqueue(order_id=7)
    operation = shop.app.jobs.where(state="pending").cancel(actor="ana")
    detent.work()
    assert job.refresh().state == "cancelled"
    assert operation.refresh().changed == 1
""") == {"passed": 4}  # fmt: skip


TWO = """
import shop

def test_first(detent):
    assert detent.url.startswith({starts!r})
    detent.use(shop.app)
    job = shop.pay.enqueue(order_id=7)
    detent.work()
    assert job.refresh().result == 7

def test_second(detent):
    assert detent.use(shop.app).jobs.list() == []
"""


def test_on_a_postgresql_server_by_option_and_by_ini(pytester: pytest.Pytester, postgres_cluster: Cluster) -> None:
    """It needed a fixture of the user's own that makes and drops databases."""
    pytester.makepyfile(shop=SHOP, test_shop=TWO.format(starts="postgresql://"))
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist", "-q")
    pytester.runpytest_inprocess(*plain, "--detent-database", postgres_cluster.url).assert_outcomes(passed=2)
    assert _left_behind(postgres_cluster) == []
    pytester.makeini(f"[pytest]\ndetent_database = {postgres_cluster.url}\n")
    pytester.runpytest_inprocess(*plain).assert_outcomes(passed=2)
    pytester.makepyfile(test_shop=TWO.format(starts="sqlite:///"))
    pytester.runpytest_inprocess(*plain, "--detent-database=sqlite").assert_outcomes(passed=2)
    pytester.runpytest_inprocess(*plain, "--detent-database=mysql").assert_outcomes(errors=2)


def test_on_a_server_that_the_plugin_starts(
    pytester: pytest.Pytester, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`postgresql` alone: one in `DETENT_TEST_DATABASE_URL`, else one of its own. (tests/testing starts real ones.)"""
    monkeypatch.setenv("DETENT_TEST_DATABASE_URL", postgres_cluster.url)
    pytester.makepyfile(shop=SHOP, test_shop=TWO.format(starts="postgresql://"))
    done = pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--detent-database=postgresql"
    )
    done.assert_outcomes(passed=2)


def _left_behind(cluster: Cluster) -> list[str]:
    """The databases that the plugin made: their names end in twelve digits, unlike those of other tests."""
    with closing(psycopg.connect(cluster.url)) as connection:
        names = connection.execute(
            "SELECT datname FROM pg_database"
            " WHERE datname ~ '^detent_.*_[0-9a-f]{12}$' AND datname !~ '^detent_reused_'"
        )
        return [name for (name,) in names.fetchall()]
