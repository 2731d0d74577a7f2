"""The page about SQL functions: from the headers of the .sql files, and from the roles that may call them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from detent.store.contract import CATALOGUE
from detent.store.postgres.roles import BESIDE, OPS_FUNCTIONS, VIEWS

__all__ = ["SqlFunction", "functions", "sql_page"]

STORE = Path(__file__).parents[2] / "src" / "detent" / "store"
BEGIN = "CREATE OR REPLACE FUNCTION "
NAME = re.compile(r"(detent|ops)\.(\w+)\(")
HEAD_LINE = re.compile(r"-- (\w+): +(.*)")
TITLES = {
    "jobs": "Jobs and queues",
    "limits": "Limits",
    "schedules": "Schedules and declarations",
    "workers": "Workers and services",
    "workflows": "Workflows",
    "graphs": "Graphs",
    "batches": "Batch runs",
    "pipelines": "Pipeline runs",
    "ops": "Ops runs",
    "operations": "Operations",
    "entities": "The record",
    "alerts": "Alerts",
    "webhooks": "Webhooks",
    "tokens": "Tokens",
    "move": "Moves of the database",
    "postgres": "The database",
}
TOP = """\
# SQL functions

Every function that a login with one of Detent's roles may call on PostgreSQL. [sql.md](sql.md) shows how to write a
client and a worker with them.

- A name ends in its version, `_v1`. If the parameters or the answer of a function change after a release, a function
  with the next version is added and the old one stays, so a client in another language goes on working.
- *Role* is the lowest role that may call a function: `viewer`, `client`, `worker`, `admin`. Each role includes those
  before it. `detent migrate --roles` creates them.
- Functions answer about each item and rarely raise. *Refuses* says what they do not do; the answer then says what they
  found instead.
- Functions of the schema `ops` are for shell scripts ([ops.md](ops.md)). They raise errors with the codes of
  [errors.md](errors.md).

A role may also read views: {views}, and in the schema `ops` the views `runs`, `run_events` and `environments`.

This page is generated from the headers of the .sql files by `python -m tests.docs.pages`.
"""


@dataclass(frozen=True)
class SqlFunction:
    """A function as its file declares it. `says` is its header: what it does, takes, gives, locks, refuses."""

    schema: str
    name: str
    noun: str
    role: str
    signature: str
    says: dict[str, str]


def functions() -> list[SqlFunction]:
    """Return the functions that a role may call, by noun and by place in their files."""
    roles = {verb.name: str(verb.role) for verb in CATALOGUE.values()} | BESIDE
    found = []
    for file in sorted(STORE.rglob("*.sql")):
        noun = file.relative_to(STORE).parts[0]
        for schema, name, header, signature in _declared(file.read_text(encoding="utf-8")):
            role = OPS_FUNCTIONS.get(name) if schema == "ops" else roles.get(re.sub(r"_v\d+$", "", name))
            is_called = schema == "ops" or re.search(r"_v\d+$", name)
            if role is not None and is_called:
                found.append(SqlFunction(schema, name, noun, role, signature, header))
    return found


def _declared(text: str) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Yield schema, name, header and signature of each function of a file."""
    before, *parts = text.split(BEGIN)
    for part in parts:
        named = NAME.match(part)
        if named is not None:
            signature = re.split(r"\n(?:LANGUAGE|AS) | LANGUAGE ", part, maxsplit=1)[0]
            yield named[1], named[2], _header(before), signature
        before = part


def _header(before: str) -> dict[str, str]:
    """Return what the comment at the end of a text says, by word; a line without a word continues the one before."""
    lines: list[str] = []
    for line in reversed(before.rstrip("\n").splitlines()):
        if not line.startswith("--"):
            break
        lines.insert(0, line)
    says: dict[str, str] = {}
    word = "does"
    for line in lines:
        found = HEAD_LINE.match(line)
        if found is not None and (not says or found[1] in ("takes", "gives", "locks", "refuses", "differs")):
            word = found[1] if says else "does"
            says[word] = found[2]
        else:
            says[word] = f"{says.get(word, '')} {line.removeprefix('--').strip()}".strip()
    return says


def sql_page() -> str:
    """Return a heading for each noun and each function."""
    parts = [TOP.format(views=", ".join(f"`detent.{view}`" for view in VIEWS))]
    found = functions()
    for noun, title in TITLES.items():
        parts.append(f"\n## {title}\n")
        parts += [_entry(one) for one in found if one.noun == noun]
    unknown = {one.noun for one in found} - set(TITLES)
    assert not unknown, f"give these nouns a title: {unknown}"
    return "\n".join(parts)


def _entry(one: SqlFunction) -> str:
    does = one.says["does"]
    lines = [
        f"### {one.schema}.{one.name}\n",
        f"{does[:1].upper()}{does[1:]}\n",
        f"```sql\n{one.signature}\n```\n",
        f"- Role: `{one.role}`",
    ]
    for word in ("takes", "gives", "locks", "refuses"):
        if word in one.says:
            lines.append(f"- {word.capitalize()}: {one.says[word]}")
    return "\n".join(lines) + "\n"
