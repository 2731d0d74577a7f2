"""A shell and a world on an empty database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.kit import APP, Shell, World


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    """`detent` in a directory with an application `shop:app` in it."""
    (tmp_path / "shop.py").write_text(APP)
    return Shell(tmp_path, database_url)


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
    return Shell(tmp_path, sqlite_url)
