"""The pytest plugin: a fixture `detent` with a throw-away database, a clock to advance, `work()` and `crash()`.

    def test_welcome(detent):
        app = detent.use(shop.app)
        job = shop.welcome.enqueue(user_id=7)
        detent.work()
        assert job.refresh().result == "sent"

The option `--detent-database`, or the ini value `detent_database`, chooses the database:

- `sqlite` (default): a SQLite file in the test's own directory.
- `postgresql`: a database for each test on a PostgreSQL server that the plugin starts and stops.
- `postgresql://user@host/postgres`: the same on that server. The user must be allowed to create databases.

Without psycopg and a server (or its binaries), the last two are refused before the first test.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from detent.store.sqlite.driver.database_file import file_url
from detent.testing.harness import Harness
from detent.testing.stores import turnable_store

if TYPE_CHECKING:
    from detent.testing.postgres import Cluster

__all__ = ["detent", "detent_database_url"]

_SQLITE, _POSTGRES = "sqlite", "postgresql"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option and its ini value."""
    help_text = (
        "database of the fixture `detent`: sqlite, postgresql (starts a server), or the URL of a PostgreSQL server"
    )
    parser.getgroup("detent").addoption("--detent-database", metavar="WHERE", help=help_text)
    parser.addini("detent_database", help_text, default=_SQLITE)


@pytest.fixture(scope="session")
def detent_postgres_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The PostgreSQL server on which each test gets a database. A server that the plugin started is stopped at the
    end."""
    where = _where(request.config)
    try:
        from detent.testing.postgres import Cluster, PostgresUnavailable, start_cluster
    except ImportError as error:
        raise pytest.UsageError(f"detent_database = {where} needs psycopg: pip install 'detent[postgres]'") from error
    try:
        cluster = start_cluster() if where == _POSTGRES else Cluster(where)
    except PostgresUnavailable as error:
        raise pytest.UsageError(f"detent_database = {where}: {error}") from error
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def detent_postgres_template(detent_postgres_server: Cluster) -> str:
    """The name of a database with the schema and the clock in it. A test's database is a copy of it."""
    from detent.store.open import open_store
    from detent.testing.stores import install_clock

    name = detent_postgres_server.new_name("detent_template")
    url = detent_postgres_server.create_database(name)
    with closing(open_store(url)) as store:
        store.ready()
    install_clock(url)
    return name


@pytest.fixture(scope="session")
def detent_sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the schema in it. A test's file is a copy of it."""
    path = tmp_path_factory.mktemp("detent") / "template.db"
    with turnable_store(file_url(str(path))):
        pass
    return path


@pytest.fixture
def detent_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of the database that the fixture `detent` uses. Override it to use a database of your own; it is filled,
    and its clock is replaced."""
    if _where(request.config) == _SQLITE:
        yield file_url(str(shutil.copy(request.getfixturevalue("detent_sqlite_template"), tmp_path / "detent.db")))
        return
    server: Cluster = request.getfixturevalue("detent_postgres_server")
    template: str = request.getfixturevalue("detent_postgres_template")
    name = server.new_name("detent_test")
    yield server.create_database(name, template=template)
    server.drop_database(name)


@pytest.fixture
def detent(detent_database_url: str) -> Iterator[Harness]:
    """A Detent application on a throw-away database."""
    harness = Harness(detent_database_url)
    yield harness
    harness.close()


def _where(config: pytest.Config) -> str:
    where = str(config.getoption("--detent-database") or config.getini("detent_database"))
    if where in (_SQLITE, _POSTGRES) or where.startswith(("postgresql://", "postgres://")):
        return where
    raise pytest.UsageError(f"detent_database: found {where[:80]!r}; allowed: sqlite, postgresql, postgresql://…")
