"""What is installed in a PostgreSQL database beside its tables, as this release has it.

- `functions/*.sql`: the verbs and what they share, one function a file
- `triggers/*.sql`: guards and what follows from a move: functions and the triggers that call them
- `views/*.sql`: views and the functions that they call
- `ops/*.sql`: the schema `ops` (see `facade`)
- CHECKs of the migrations that depend on a lifecycle
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from detent.store.lifecycle_sql import filled
from detent.store.texts import texts

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

_BODY = re.compile(r"\bAS \$\$(?P<body>.*)\$\$;", re.DOTALL)
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
    """Return the verbs and what they share, by name. Read anew each time: 250 kB that are rarely used."""
    found = {}
    for name, text in texts("postgres/functions"):
        ddl = filled(text, "postgres")
        match = _BODY.search(ddl)
        assert match is not None, f"{name} has no body"
        found[name] = Function(name, match["body"], ddl)
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


def _text_of(folder: str) -> str:
    return filled("\n".join(text for _, text in texts(f"postgres/{folder}")), "postgres")
