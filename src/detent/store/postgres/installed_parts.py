"""What is installed in a PostgreSQL database beside its tables, as this release has it.

- functions: the verbs and the functions that they share
- triggers: guards and what follows from a move, with the functions that they call
- views, with the functions that they call
- the schema `ops` (see `ops/ops_schema.py`)
- CHECKs of the migrations that depend on a lifecycle

`detent.store.sql_files` says in which files they are.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from detent.store.lifecycle_sql import filled
from detent.store.sql_files import Part, parts

__all__ = [
    "Function",
    "Trigger",
    "View",
    "body_digests",
    "functions",
    "functions_of_views",
    "guard_functions",
    "triggers",
    "views",
]

# A function with the comments before it, up to the end of its body.
_COMMENTED = re.compile(
    r".*?^CREATE OR REPLACE FUNCTION detent\.(?P<name>\w+)\(.*?\bAS \$\$(?P<body>.*?)\$\$;\n", re.MULTILINE | re.DOTALL
)
_FUNCTION = re.compile(
    r"^CREATE OR REPLACE FUNCTION detent\.(?P<name>\w+)\([^)]*\) RETURNS [^$]*\$\$(?P<body>.*?)\$\$;",
    re.MULTILINE | re.DOTALL,
)
_TRIGGER = re.compile(
    r"^CREATE OR REPLACE TRIGGER (?P<name>\w+)\s+(?P<moment>BEFORE|AFTER) (?P<events>[\w\s,]+?) "
    r"ON detent\.(?P<table>\w+)(?P<how>[^;]*?)EXECUTE FUNCTION detent\.(?P<function>\w+)\(\);",
    re.MULTILINE,
)
_VIEW = re.compile(r"^CREATE OR REPLACE VIEW detent\.(?P<name>\w+) AS\b(?P<query>[^;]*);", re.MULTILINE)
_COMMENT = re.compile(r"--.*")
_EVENTS = {"INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}  # the bits of pg_trigger.tgtype
_ROW, _BEFORE = 1, 2


@dataclass(frozen=True, slots=True)
class Function:
    """A function; PostgreSQL keeps `body` byte for byte."""

    name: str
    body: str
    ddl: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: `kind` as in pg_trigger.tgtype, `columns` those of UPDATE OF in alphabetical order."""

    name: str
    table: str
    function: str
    kind: int
    columns: tuple[str, ...]
    ddl: str


@dataclass(frozen=True, slots=True)
class View:
    """A view; `query` is its text without comments."""

    name: str
    query: str
    ddl: str


def functions() -> dict[str, Function]:
    """Return the verbs and the functions that they share, by name. Read each time: 250 kB that are rarely used."""
    found = {}
    for text in parts("postgres", "functions"):
        whole = filled(text, "postgres")
        matches = list(_COMMENTED.finditer(whole))
        assert "".join(match[0] for match in matches) == whole, f"text that is no function: {whole[:200]}"
        found.update({match["name"]: Function(match["name"], match["body"], match[0]) for match in matches})
    return found


@functools.cache
def functions_of_views() -> dict[str, Function]:
    """Return the functions that views call, by name: those must be there before the views."""
    return _functions_in(_text_of("views"))


@functools.cache
def guard_functions() -> dict[str, Function]:
    """Return the functions that triggers and views call, by name. `verify` compares and `repair` restores them."""
    return _functions_in(_text_of("triggers")) | functions_of_views()


def _functions_in(text: str) -> dict[str, Function]:
    return {match["name"]: Function(match["name"], match["body"], match[0]) for match in _FUNCTION.finditer(text)}


@functools.cache
def triggers() -> dict[str, Trigger]:
    """Return the triggers of Detent's own tables, by name."""
    found = {}
    for match in _TRIGGER.finditer(_text_of("triggers")):
        events, _, columns = match["events"].partition(" OF ")
        kind = (_BEFORE if match["moment"] == "BEFORE" else 0) + sum(_EVENTS[event] for event in events.split(" OR "))
        found[match["name"]] = Trigger(
            name=match["name"],
            table=match["table"],
            function=match["function"],
            kind=kind + _ROW if "FOR EACH ROW" in match["how"] else kind,
            columns=tuple(sorted(column.strip() for column in columns.split(",") if column)),
            ddl=match[0],
        )
    return found


@functools.cache
def views() -> dict[str, View]:
    """Return the views by name, in the order in which they can be created."""
    return {
        match["name"]: View(match["name"], _COMMENT.sub("", match["query"]), match[0])
        for match in _VIEW.finditer(_text_of("views"))
    }


@functools.cache
def body_digests() -> dict[str, str]:
    """Return the md5 of the body of every verb and shared function, by name, as PostgreSQL computes it."""
    import hashlib

    return {
        name: hashlib.md5(function.body.encode(), usedforsecurity=False).hexdigest()
        for name, function in functions().items()
    }


def _text_of(part: Part) -> str:
    return filled("\n".join(parts("postgres", part)), "postgres")
