"""What every test may ask for: a throw-away database of either kind, empty or with a store and a clock to turn.

One PostgreSQL server serves the whole run. Under xdist the controlling process owns it and tells the workers its url,
so it outlives each of them; without xdist the session's fixture owns it, and a run that needs none starts none.

What is thrown away lies in memory where there is room for it, and a database with the record in it is a copy of one.
"""

from __future__ import annotations

import compileall
import itertools
import os
import re
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.postgres import Cluster, start_cluster
from detent.testing.postgres_guardian import MEMORY, MEMORY_BYTES_MIN
from detent.testing.stores import START, StoreClock, install_clock, is_sqlite, turnable_store
from tests import deadlines, repeat, selection
from tests.migrations.wider import widen
from tests.reused_databases import ReusedDatabase, ReusedDatabases

ROOT = Path(__file__).parents[1]
shared_cluster = pytest.StashKey[Cluster]()
RUN = secrets.token_hex(4)
numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="long proofs: the whole, not the slice (make faults)")
    parser.addoption("--wider", action="store_true", help="every table has one more column (tests/migrations/wider.py)")
    parser.addoption("--quick", action="store_true", help="SQLite only, no other processes (make quick)")
    parser.addoption(
        "--failed-to", metavar="FILE", help="write the names of tests that failed to FILE (tests/repeat.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Every commit on SQLite waits for the disk, and a test looks at no disk: its files go where PostgreSQL's go.

    The package is compiled first, whatever the environment says: the tests start hundreds of processes, and each of
    them would compile it again. These processes write no compiled files themselves: a module that a test writes twice
    within a second, with the same length, would be taken for the first one.

    What a script starts in the background ignores Ctrl-C and SIGQUIT, and so do all its children: a test that
    interrupts one would wait for ever, and one that stops a PgBouncer for 15 seconds.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(ROOT / "src", quiet=2)
        compileall.compile_dir(ROOT / "tests", quiet=2, rx=re.compile("/test_"))  # pytest keeps those by itself
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    # Runs that tests start elsewhere have no use for this plugin, and it takes two seconds to load.
    os.environ.setdefault("PYTEST_ADDOPTS", "-p no:schemathesis")
    sys.dont_write_bytecode = False
    if not deadlines.is_measured():
        os.environ[deadlines.SLOWNESS] = f"{deadlines.measure():.2f}"
    if config.getoption("--failed-to") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(repeat.Failures(Path(config.getoption("--failed-to"))))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if _is_roomy(Path(MEMORY)):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import HealthCheck, settings

        # It fails an example of more than 0.2 s: a machine that stood still for a moment is no error.
        patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.register_profile("patient", patient)
        settings.load_profile("patient")


def pytest_report_header() -> str:
    return f"deadlines: {deadlines.factor():.2f} times those of a quiet machine"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A quick run does not even import the tests that start processes."""
    return True if config.getoption("--quick") and selection.is_for_processes(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Keep the tests that this run takes. The time limits of whole tests are deadlines too."""
    others: set[pytest.Item] = set()
    if config.getoption("--quick"):
        others = {item for item in items if not selection.in_quick_run(item)}
    elif not config.getoption("--whole"):
        others = selection.other_database(items)
    if others:
        config.hook.pytest_deselected(items=[item for item in items if item in others])
        items[:] = [item for item in items if item not in others]
    for item in items:
        mark = item.get_closest_marker("timeout")
        seconds = float(mark.args[0] if mark is not None else config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(deadlines.scaled(seconds)), append=False)


def _is_roomy(place: Path) -> bool:
    """Whether files of tests, some of them programs, may go there."""
    if not place.is_dir() or not os.access(place, os.W_OK) or os.statvfs(place).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(place).free >= MEMORY_BYTES_MIN


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In xdist's controlling process, before a worker starts."""
    if node.config.getoption("--quick"):
        return
    if shared_cluster not in node.config.stash:
        node.config.stash[shared_cluster] = start_cluster()
    node.workerinput["postgres_url"] = node.config.stash[shared_cluster].url


def pytest_unconfigure(config: pytest.Config) -> None:
    if shared_cluster in config.stash:
        config.stash[shared_cluster].stop()


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether this run is `make faults`."""
    return bool(request.config.getoption("--whole"))


@pytest.fixture(scope="session", autouse=True)
def no_processes_if_quick(request: pytest.FixtureRequest) -> Iterator[None]:
    """In a quick run, no test starts a process."""
    with selection.without_processes() if request.config.getoption("--quick") else nullcontext():
        yield


@pytest.fixture(scope="session")
def postgres_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The run's PostgreSQL server. Databases made through it are dropped at the end."""
    if request.config.getoption("--quick"):
        pytest.skip(selection.NO_POSTGRES)
    workerinput = getattr(request.config, "workerinput", None)
    with Cluster(workerinput["postgres_url"]) if workerinput else start_cluster() as cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres_cluster: Cluster) -> Iterator[str]:
    """An empty PostgreSQL database of this test's own."""
    name = f"detent_test_{RUN}_{next(numbers)}"
    yield postgres_cluster.create_database(name)
    postgres_cluster.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The path of this test's own SQLite file, not made yet."""
    return f"sqlite:///{tmp_path}/t.db"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A file with the record in it, to be copied."""
    path = tmp_path_factory.mktemp("template") / "t.db"
    with closing(open_store(f"sqlite:///{path}", clock=TurnableClock(START))) as store:
        store.ready()
    if request.config.getoption("--wider"):
        widen(f"sqlite:///{path}")
    assert not path.with_name("t.db-wal").exists(), "what is beside it would not be copied"
    return path


@pytest.fixture
def sqlite_store_url(sqlite_template: Path, sqlite_url: str) -> str:
    """This test's own SQLite file with the record in it."""
    shutil.copy(sqlite_template, sqlite_url.removeprefix("sqlite:///"))
    return sqlite_url


@pytest.fixture(scope="session")
def ready_template(postgres_cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """The name of a PostgreSQL database with the record in it and its own time, to be copied."""
    name = f"detent_ready_{RUN}"
    url = postgres_cluster.create_database(name)
    with closing(open_store(url)) as store:
        store.ready()
    if request.config.getoption("--wider"):
        widen(url)
    return name


@pytest.fixture(scope="session")
def ready_databases(postgres_cluster: Cluster, ready_template: str) -> Iterator[ReusedDatabases]:
    """The databases of `postgres_ready_url`."""
    with closing(ReusedDatabases(postgres_cluster, ready_template)) as databases:
        yield databases


@pytest.fixture
def postgres_ready_url(ready_databases: ReusedDatabases) -> Iterator[str]:
    """A PostgreSQL database of this test's own with the record in it, by the clock on the wall."""
    with ready_databases.lend() as database:
        yield database.url


@pytest.fixture(params=["sqlite", "postgres"])
def ready_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind in turn with the record in it, by the clock on the wall: for processes."""
    url: str = request.getfixturevalue("sqlite_store_url" if request.param == "sqlite" else "postgres_ready_url")
    return url


@pytest.fixture(scope="session")
def postgres_template(postgres_cluster: Cluster, ready_template: str) -> str:
    """The name of a database with the record and the clock in it, to be copied: ten times faster than migrating."""
    name = f"detent_template_{RUN}"
    install_clock(postgres_cluster.create_database(name, template=ready_template))
    return name


@pytest.fixture(scope="session")
def store_databases(postgres_cluster: Cluster, postgres_template: str) -> Iterator[ReusedDatabases]:
    """The databases of `postgres_store_url`."""
    with closing(ReusedDatabases(postgres_cluster, postgres_template)) as databases:
        yield databases


@pytest.fixture
def postgres_store_url(store_databases: ReusedDatabases) -> Iterator[str]:
    """A PostgreSQL database of this test's own with the record in it."""
    with store_databases.lend() as database:
        yield database.url


@pytest.fixture
def reused_database(store_url: str, request: pytest.FixtureRequest) -> ReusedDatabase | None:
    """The database of `store_url` with its open connections, if it is one that tests reuse."""
    if is_sqlite(store_url):
        return None
    databases: ReusedDatabases = request.getfixturevalue("store_databases")
    return databases.find(store_url)


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind in turn, for the store that the test opens on it."""
    url: str = request.getfixturevalue(f"{request.param}_store_url")
    return url


@pytest.fixture
def store_and_clock(store_url: str, reused_database: ReusedDatabase | None) -> Iterator[tuple[Store, StoreClock]]:
    with turnable_store(store_url) if reused_database is None else reused_database.open() as pair:
        yield pair


@pytest.fixture
def store(store_and_clock: tuple[Store, StoreClock]) -> Store:
    """An empty store of each kind in turn, ready for use. Its time is `clock`."""
    return store_and_clock[0]


@pytest.fixture
def clock(store_and_clock: tuple[Store, StoreClock]) -> StoreClock:
    """The time of `store`: it stands still until the test turns it."""
    return store_and_clock[1]
