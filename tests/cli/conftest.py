"""A shell and a world on a database of each kind, without any jobs yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from detent.app.detent import Detent
from tests.cli.kit import APP, Shell, World


@pytest.fixture
def bare_shell(tmp_path: Path, database_url: str) -> Shell:
    """`detent` in a directory with an application `shop:app` in it, and a database where Detent never was."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, database_url)


@pytest.fixture
def shell(bare_shell: Shell) -> Shell:
    """The same with a database that has its schema."""
    return _with_schema(bare_shell)


@pytest.fixture
def lone_shell(tmp_path: Path) -> Shell:
    """`detent` without any database named."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, None)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    yield made
    made.app.close()


@pytest.fixture
def sqlite_shell(tmp_path: Path, sqlite_url: str) -> Shell:
    """`detent` on SQLite alone, for what never comes to a database."""
    (tmp_path / "shop.py").write_text(APP)
    return _with_schema(Shell(tmp_path, sqlite_url))


def _with_schema(shell: Shell) -> Shell:
    with Detent(shell.environment["DETENT_DATABASE_URL"]) as app:
        app.migrate()
    return shell
