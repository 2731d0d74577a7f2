"""CHECKs that have fewer words on PostgreSQL refuse what those on SQLite refuse, all of them together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import psycopg
import pytest

from detent.lifecycle.library import JOB
from detent.model.records import OUTCOMES
from detent.model.workflow_records import StepKind
from detent.store.invariants.postgres_definitions import postgres_constraints
from detent.store.migrate import load

LONG = re.compile(r"^  CONSTRAINT (\w+) (CHECK \(.*\)),?(?: *--.*)?$", re.MULTILINE)
TIMES = "(VALUES (NULL::timestamptz), (now()))"
STATES = ", ".join(f"('{state}')" for state in (*JOB.states, "zombie", ""))
KINDS_AND_MORE = ", ".join(f"('{kind}')" for kind in (*get_args(StepKind), "zombie", ""))
OUTCOMES_AND_MORE = ", ".join(f"('{outcome}')" for outcome in (*OUTCOMES, "zombie"))

JOBS = f"""
  SELECT * FROM (VALUES {STATES}) AS a (state), {TIMES} AS b (finished_at), {TIMES} AS c (committed_at),
    (VALUES (-1), (0), (1), (2)) AS d (attempt), (VALUES (-2), (-1), (0), (1), (2), (3)) AS e (ended),
    (VALUES (-1), (0), (1), (2), (3)) AS f (spared),
    (VALUES (NULL), ('probe'), ('marker'), ('rumour')) AS g (effect_evidence)
"""
STEPS = f"SELECT * FROM (VALUES {KINDS_AND_MORE}) AS a (kind)"
EXECUTIONS = f"SELECT * FROM (VALUES {OUTCOMES_AND_MORE}) AS a (outcome), (VALUES {STATES}) AS b (next_state)"


@pytest.fixture
def server(postgres_ready_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_ready_url) as connection:
        yield connection


def long_ones() -> dict[str, str]:
    """The CHECKs as they are on SQLite; PostgreSQL reads them too."""
    return {name: text for step in load("sqlite") for name, text in LONG.findall(step.sql)}


def shortened(table: str) -> dict[str, str]:
    return {
        name: constraint.ddl.partition(f"CONSTRAINT {name} ")[2].rstrip(";")
        for name, constraint in postgres_constraints().items()
        if constraint.table == table and constraint.kind == "c"
    }


@pytest.mark.parametrize(("table", "rows"), [("job", JOBS), ("execution", EXECUTIONS), ("workflow_step", STEPS)])
def test_the_short_ones_refuse_what_the_long_ones_refused(server: psycopg.Connection, table: str, rows: str) -> None:
    """C1: tried on every combination of what they look at. A CHECK that says NULL lets the row pass."""
    first, now = long_ones(), shortened(table)
    changed = [name for name in now if now[name] != first[name]]
    assert len(changed) >= (1 if table == "workflow_step" else 2)

    def passes(texts: dict[str, str]) -> str:
        return " AND ".join(f"coalesce({texts[name].removeprefix('CHECK ')}, true)" for name in changed)

    judged = f"SELECT {passes(first)} AS first, {passes(now)} AS now FROM ({rows}) r"
    query = f"SELECT count(*) FILTER (WHERE first <> now), count(*) FILTER (WHERE now), count(*) FROM ({judged}) j"
    ((unlike, passed, total),) = server.execute(query.encode()).fetchall()
    assert unlike == 0
    assert 0 < passed < total


def test_what_the_server_has_is_what_was_tried(server: psycopg.Connection) -> None:
    """C1: the texts compared above are those that the server applies."""
    for table in ("job", "execution", "workflow_step"):
        for name, text in shortened(table).items():
            found = server.execute(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", (name,)
            ).fetchall()
            server.execute(f"ALTER TABLE detent.{table} DROP CONSTRAINT {name}".encode())
            server.execute(f"ALTER TABLE detent.{table} ADD CONSTRAINT {name} {text}".encode())
            again = server.execute(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", (name,)
            ).fetchall()
            assert found == again
    server.rollback()


def test_no_job_is_locked_before_it_changes(server: psycopg.Connection) -> None:
    """One trigger that asks before an UPDATE makes the server lock every row first."""
    asks_before = "SELECT tgname FROM pg_trigger WHERE tgrelid = 'detent.job'::regclass AND tgtype & 19 = 19"
    assert server.execute(asks_before.encode()).fetchall() == []
