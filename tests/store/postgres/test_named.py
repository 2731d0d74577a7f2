"""`:name` parameters: found where they are meant, and nowhere else."""

from __future__ import annotations

import pytest

from detent.store.postgres.named_parameters import KEPT_LENGTH_MAX, positional, translate


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("SELECT :a", "SELECT %(a)s"),
        ("SELECT :a::text, x::a", "SELECT %(a)s::text, x::a"),
        ("SELECT ':a', '%', ''':a'", "SELECT ':a', '%%', ''':a'"),
        (r"SELECT E'\':a', :a", r"SELECT E'\':a', %(a)s"),
        ("""SELECT ":a" FROM "t%t" WHERE b = :b""", """SELECT ":a" FROM "t%%t" WHERE b = %(b)s"""),
        ("SELECT 1 -- :a\n, :a /* :a\n :b */", "SELECT 1 -- :a\n, %(a)s /* :a\n :b */"),
        ("SELECT $$ :a $$, $x$ $$ :a $$ $x$, :a", "SELECT $$ :a $$, $x$ $$ :a $$ $x$, %(a)s"),
        ("SELECT x[:a:2], x % 2", "SELECT x[%(a)s:2], x %% 2"),
        ("SELECT x[y:z]", "SELECT x[y:z]"),
        ("SELECT x[1:a], x[y:b], x[1 : :a]", "SELECT x[1:a], x[y:b], x[1 : %(a)s]"),
        ("SELECT /* one /* :a % */ :b */ :a", "SELECT /* one /* :a %% */ :b */ %(a)s"),
        ("SELECT 1 /* open :a %", "SELECT 1 /* open :a %%"),
        ("SELECT a$b$c, :a, d$b$e", "SELECT a$b$c, %(a)s, d$b$e"),
        (r"SELECT date'\', ':a', :b", r"SELECT date'\', ':a', %(b)s"),
        ("SELECT '{1:a}'::int[] @> :a::int[]", "SELECT '{1:a}'::int[] @> %(a)s::int[]"),
        ("SELECT :a%:b, 5 %% 2, '%(a)s'", "SELECT %(a)s%%%(b)s, 5 %%%% 2, '%%(a)s'"),
    ],
)
def test_translation(given: str, expected: str) -> None:
    assert translate(given, {"a", "b"}) == expected


@pytest.mark.parametrize(
    ("given", "expected", "names"),
    [
        ("SELECT :b, :a, :b", "SELECT $1, $2, $1", ("b", "a")),
        ("SELECT ':a', x % 2, /* :b */ :c", "SELECT ':a', x % 2, /* :b */ :c", ()),
        ("SELECT :a" + " " * KEPT_LENGTH_MAX, "SELECT $1" + " " * KEPT_LENGTH_MAX, ("a",)),
    ],
)
def test_translation_by_place(given: str, expected: str, names: tuple[str, ...]) -> None:
    assert positional(given, ("a", "b")) == (expected.encode(), names)
