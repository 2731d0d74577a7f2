"""Python's lists as PostgreSQL reads them: every letter survives, and what it cannot hold is refused, not divided."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from detent.store.postgres.statement import numbers, texts
from detent.testing.stores import plain_connection

TEXTS = [
    [],
    [""],
    ["", ""],
    [None],
    ["a", None, "b"],
    ['"', "\\", '\\"', "{,}", "NULL", " a ", "\n\t", "\U0001f4a5"],
]


@pytest.mark.parametrize("values", TEXTS)
def test_texts_come_back_as_they_were(postgres_ready_url: str, values: list[str | None]) -> None:
    with closing(plain_connection(postgres_ready_url)) as connection:
        assert connection.execute("SELECT %s::text[]", (texts(values),)).fetchone() == (values,)


@pytest.mark.parametrize("values", [["a\0b", "c"], ["\0"], ["a\0b", None]])
def test_nul_is_refused_and_divides_nothing(postgres_ready_url: str, values: list[str | None]) -> None:
    with closing(plain_connection(postgres_ready_url)) as connection, pytest.raises(psycopg.DataError):
        connection.execute("SELECT %s::text[]", (texts(values),))


def test_numbers_come_back_as_they_were(postgres_ready_url: str) -> None:
    values = [None, 0.0, -1.5, 0.1, 1e300, 5e-324]
    with closing(plain_connection(postgres_ready_url)) as connection:
        assert connection.execute("SELECT %s::float8[]", (numbers(values),)).fetchone() == (values,)
