"""The fixture `detent` as a user's own tests use it, run by pytest itself (U1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest_plugins = ["pytester"]

Run = Callable[[str], dict[str, int]]

SHOP = """
from detent import Context, Detent, Retry

app = Detent("sqlite:///the-real-one.db")

@app.task(name="welcome", retry=Retry(2))
def welcome(ctx: Context, user_id: int) -> str:
    ctx.event("writing", user_id=user_id)
    if user_id < 0:
        raise ValueError("no such user")
    return f"sent to {user_id} in attempt {ctx.attempt}"

@app.task(name="charge")
def charge(ctx: Context, order_id: int) -> str:
    with ctx.commit() as tx:
        tx.execute("INSERT INTO payments VALUES (:id, :attempt)", {"id": order_id, "attempt": ctx.attempt})
        tx.intend(welcome.call(user_id=order_id))
        tx.result("charged")
    return "ignored after tx.result"

@app.task(name="pay")
async def pay(ctx: Context, order_id: int) -> int:
    async with ctx.commit() as tx:
        await tx.execute("INSERT INTO payments VALUES (:id, :attempt)", {"id": order_id, "attempt": ctx.attempt})
    return order_id

@app.task(name="for_ever")
def for_ever(ctx: Context) -> None:
    for_ever.enqueue()
"""

CONFTEST = """
import pytest
from detent.testing.stores import plain_connection

@pytest.fixture
def detent_database_url():
    return {url!r}

@pytest.fixture
def payments(detent):
    connection = plain_connection(detent.url)
    connection.execute("CREATE TABLE payments (id integer, attempt integer)")
    connection.commit()
    def look():
        rows = connection.execute("SELECT id, attempt FROM payments").fetchall()
        connection.rollback()
        return rows
    yield look
    connection.close()
"""


# What each task leaves behind: a result stored with the commit survives the crash after it, one that is only returned
# does not; intents are enqueued with the commit, once.
RESULT = {"charge": '"charged"', "pay": "(order if happened_in == 2 else None)"}
INTENTS = {"charge": 4, "pay": 0}


@pytest.fixture
def run(pytester: pytest.Pytester, database_url: str) -> Run:
    """Runs a test of a user's, on each database in turn; how many passed and failed."""
    pytester.makepyfile(shop=SHOP)
    pytester.makeconftest(CONFTEST.format(url=database_url))
    pytester.makeini("[pytest]\nfilterwarnings = error\n")

    def run(source: str) -> dict[str, int]:
        pytester.makepyfile(test_shop=f"import pytest\nimport shop\n{source}")
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-q")
        assert not (pytester.path / "the-real-one.db").exists()
        return dict(result.parseoutcomes())

    return run


def test_a_throw_away_database_and_a_worker_that_works_when_told(run: Run) -> None:
    assert run("""
def test_welcome(detent):
    app = detent.use(shop.app)
    job = shop.welcome.enqueue(user_id=7)
    assert job.refresh().state == "pending"
    assert detent.work() == [job]
    assert job.refresh().result == "sent to 7 in attempt 1"
    assert [line.message for line in job.events()] == ["writing"]
    assert detent.work() == []

def test_a_fresh_application(detent):
    @detent.app.task
    def add(ctx, a: int, b: int) -> int:
        return a + b
    job = add.enqueue(1, b=2)
    detent.work()
    assert job.wait().result == 3
    assert len(detent.app.jobs.list(task=add.name)) == 1
""") == {"passed": 2}  # fmt: skip


def test_time_is_the_tests_own(run: Run) -> None:
    assert run("""
from datetime import timedelta
from detent import errors

def test_clock(detent):
    detent.use(shop.app)
    due = detent.clock.now() + timedelta(hours=1)
    job = shop.app.enqueue(shop.welcome.call(user_id=7), due_at=due)
    assert detent.work() == []
    detent.clock.advance(3599)
    assert detent.work() == []
    detent.clock.advance(timedelta(seconds=1))
    assert detent.work() == [job]

def test_retries(detent):
    detent.use(shop.app)
    job = shop.welcome.enqueue(user_id=-1)
    attempts = 0
    while not job.refresh().rests:
        attempts += len(detent.work())
        assert detent.work() == []
        detent.clock.advance(64)
    assert (attempts, job.state) == (3, "quarantined")
    with pytest.raises(errors.JobFailed, match="no such user"):
        job.result

def test_waiting_turns_the_clock(detent):
    detent.use(shop.app)
    before = detent.clock.now()
    with pytest.raises(TimeoutError):
        shop.welcome.enqueue(user_id=7).wait(timeout=60)
    assert detent.clock.now() - before == timedelta(minutes=1)
""") == {"passed": 3}  # fmt: skip


@pytest.mark.parametrize("task", ["charge", "pay"])
def test_a_crash_at_any_point_leaves_one_effect(run: Run, task: str) -> None:
    """C1, C2, J6: the worker dies, its lease runs out, the next attempt finds what happened."""
    assert run(f"""
def test_crash(detent, payments):
    detent.use(shop.app)
    for order, at in enumerate(["claimed", "started", "returned", "committed"]):
        job = shop.{task}.enqueue(order_id=order)
        detent.crash(job, at=at)
        detent.work()
        assert job.refresh().state == "running"
        detent.clock.advance(detent.lease + 1)
        detent.work()
        assert job.refresh().state == "succeeded"
        happened_in = 1 if at in ("returned", "committed") else 2
        assert [row for row in payments() if row[0] == order] == [(order, happened_in)]
        assert job.result == {RESULT[task]}
        assert job.attempt == happened_in
    assert len(shop.app.jobs.list(task="welcome")) == {INTENTS[task]}
    assert shop.app.record.verify() == []
""") == {"passed": 1}  # fmt: skip


def test_a_crash_of_a_task_without_a_commit_block(run: Run) -> None:
    assert run("""
@pytest.mark.parametrize(("at", "attempt"), [("claimed", 2), ("started", 2), ("returned", 2), ("committed", 1)])
def test_crash(detent, at, attempt):
    detent.use(shop.app)
    job = shop.welcome.enqueue(user_id=7)
    detent.crash(job, at=at)
    detent.work()
    detent.clock.advance(detent.lease + 1)
    detent.work()
    assert job.refresh().result == f"sent to 7 in attempt {attempt}"
    assert job.attempt == attempt
    assert [one.outcome for one in job.executions()] == ["expired", "done"][2 - attempt:]

def test_crash_nowhere(detent):
    with pytest.raises(ValueError, match="at: found 'lunch'; allowed: claimed, started, returned, committed"):
        detent.crash(detent.use(shop.app).enqueue(shop.welcome.call(user_id=1)), at="lunch")
""") == {"passed": 5}  # fmt: skip


def test_a_loop_is_refused(run: Run) -> None:
    assert run("""
from detent.errors import WrongPlace

def test_loop(detent):
    detent.use(shop.app)
    shop.for_ever.enqueue()
    with pytest.raises(WrongPlace, match="for more than 20 attempts; raise `most`, or look for a loop"):
        detent.work(most=20)
""") == {"passed": 1}  # fmt: skip


def test_the_application_goes_back_to_its_own_database(run: Run) -> None:
    """Also when the test fails; and two tests never meet."""
    assert run("""
def test_fails(detent):
    detent.use(shop.app)
    shop.welcome.enqueue(user_id=7)
    assert False

def test_is_back():
    assert shop.app._engine.bare_store.name.endswith("the-real-one.db")
""") == {"passed": 1, "failed": 1}  # fmt: skip


def test_without_an_override_it_is_a_file_of_the_tests_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop=SHOP)
    pytester.makepyfile("""
import shop

def test_first(detent, tmp_path):
    detent.use(shop.app)
    shop.welcome.enqueue(user_id=7)
    assert (tmp_path / "detent.db").exists()

def test_second(detent):
    assert detent.use(shop.app).jobs.list() == []

async def twin():
    return await shop.app.aio.enqueue(shop.welcome.call(user_id=7))

def test_async(detent):
    import asyncio
    detent.use(shop.app)
    job = asyncio.run(twin())
    assert detent.work() == [job]
""")  # fmt: skip
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "-q").assert_outcomes(passed=3)
