"""Fixtures: shells and worlds on an empty database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import APP, Shell, World


@pytest.fixture
def bare_shell(tmp_path: Path, database_url: str) -> Shell:
    """`detent` in a directory with an application `shop:app` in it, and a database without a schema."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, database_url)


@pytest.fixture
def shell(tmp_path: Path, ready_url: str) -> Shell:
    """`detent` with the application, on a database with its schema."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, ready_url)


@pytest.fixture
def lone_shell(tmp_path: Path) -> Shell:
    """`detent` without a database URL."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, None)


@pytest.fixture
def world(ready_url: str) -> Iterator[World]:
    made = World(ready_url)
    yield made
    made.app.close()


@pytest.fixture
def sqlite_shell(tmp_path: Path, sqlite_store_url: str) -> Shell:
    """`detent` on SQLite only, for tests that do not depend on the database."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, sqlite_store_url)
