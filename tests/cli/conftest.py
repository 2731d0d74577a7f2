"""A shell and a world on a database of each kind, without any jobs yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import APP, Shell, World


@pytest.fixture
def bare_shell(tmp_path: Path, database_url: str) -> Shell:
    """`detent` in a directory with an application `shop:app` in it, and a database where Detent never was."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, database_url)


@pytest.fixture
def shell(tmp_path: Path, ready_url: str) -> Shell:
    """The same with a database that has its schema."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, ready_url)


@pytest.fixture
def lone_shell(tmp_path: Path) -> Shell:
    """`detent` without any database named."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, None)


@pytest.fixture
def world(ready_url: str) -> Iterator[World]:
    made = World(ready_url)
    yield made
    made.app.close()


@pytest.fixture
def sqlite_shell(tmp_path: Path, sqlite_store_url: str) -> Shell:
    """`detent` on SQLite alone, for what never comes to a database."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, sqlite_store_url)
