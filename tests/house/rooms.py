"""Reads a package's imports and says which of them the house forbids.

Two rules. Rooms: imports go down only, and rooms on one floor do not know each other. Touch: time, chance, drivers,
the environment and threads each have the few places that may reach for them. An import inside a function, or one for
the type checker alone, counts like any other: it is knowledge of the other room all the same.
"""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("lifecycle",),
    ("model",),
    ("store",),
    ("declare",),
    ("views",),
    ("archive",),
    ("telemetry",),
    ("client",),
    ("batch", "pipeline", "workflow", "ops", "schedule", "limits", "alerts"),
    ("webhooks",),
    ("app",),
    ("worker",),
    ("http", "testing"),
    ("cli",),
    ("integrations",),
)
"""Lowest first."""

WORKER_FLOORS = ("attempt", "services", "supervisor", "child", "shell_task")
"""The rooms inside `worker`, lowest first. Its other modules stand below all of them."""

PURE = (
    "worker/attempt/endings.py",
    "worker/attempt/time_limits.py",
    "worker/child/core.py",
    "worker/supervisor/child_health.py",
)
"""Decisions of the worker: no threads, no clock, no store."""

FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
FRONT_DOOR = ("__init__", "__main__")
"""The package's own first modules stand above all rooms."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Something that only a few files may reach for. A name covers everything below it: `time` covers `time.sleep`.
    It may have wildcards."""

    what: str
    names: tuple[str, ...]
    places: tuple[str, ...]


MADE_IDS = tuple(f"uuid.uuid{version}" for version in (1, 4, 6, 7, 8))
"""Not `uuid.UUID`: that is only a type."""

PRESENT_MOMENTS = tuple(
    f"datetime.{kind}.{call}" for kind in ("datetime", "date") for call in ("now", "utcnow", "today")
)

TOUCHES = (
    Touch(
        what="time, chance and ids",
        names=("time", "random", "secrets", "os.urandom", "os.getrandom", *MADE_IDS, *PRESENT_MOMENTS),
        places=("model/clock.py", "model/ids.py", "testing/postgres*.py"),
    ),
    Touch(
        what="a database driver",
        names=("sqlite3", "psycopg", "sqlalchemy", "asyncpg", "aiosqlite", "apsw"),
        places=("store/*", "testing/*"),
    ),
    Touch(
        what="a backend by name",
        names=("detent.store.sqlite", "detent.store.postgres", "detent.store.*.sqlite*", "detent.store.*.postgres*"),
        places=("store/*", "testing/*"),
    ),
    Touch(
        what="Django",
        names=("django", "django_tasks", "asgiref"),
        places=("integrations/django/*",),
    ),
    Touch(
        what="another library",
        names=("sentry_sdk", "structlog", "pydantic_ai", "agents"),
        places=("integrations/*",),
    ),
    Touch(
        what="the environment",
        names=("os.environ", "os.environb", "os.getenv", "os.putenv"),
        places=("declare/settings.py", "declare/settings/*", "cli/*", "testing/*"),
    ),
    Touch(
        what="threads and async",
        names=("threading", "_thread", "asyncio", "concurrent", "multiprocessing", "queue", "selectors"),
        places=(
            "store/group_writer.py",
            "store/user_database/connection.py",
            "store/light_future.py",
            "store/*/driver*",
            "store/*/wake*",
            "client/aio*.py",
            "app/aio*.py",
            "ops/aio*.py",
            "workflow/aio_check.py",
            "worker/*",
            "http/*",
            "testing/*",
            "cli/demo/shop.py",  # an application, as a user writes one
        ),
    ),
)


def violations(package: Path) -> list[str]:
    """Every forbidden import and touch in the package, as `file:line: what`; an empty list is a healthy house."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        for use in names_used(path, package):
            complaint = (
                wrong_room(place, use.name, package.name)
                or wrong_room_of_worker(place, use.name, package.name)
                or wrong_touch(place, use.name, package.name)
            )
            if complaint:
                found.append(f"{place}:{use.line}: {complaint}")
    return found


@dataclass(frozen=True, slots=True)
class Use:
    """A dotted name, from its module on, that a file imports or reaches through an import."""

    name: str
    line: int


def names_used(path: Path, package: Path) -> Iterator[Use]:
    tree = ast.parse(path.read_text(), filename=str(path))
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                yield Use(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            module = absolute_module(node, path, package)
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{module}.{alias.name}"
                yield Use(f"{module}.{alias.name}", node.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := dotted(node, bound)):
            yield Use(name, node.lineno)


def absolute_module(node: ast.ImportFrom, path: Path, package: Path) -> str:
    """The module an import speaks of, with the dots of a relative one resolved."""
    if not node.level:
        return node.module or ""
    home = [package.name, *path.relative_to(package).parent.parts]
    base = home[: len(home) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def dotted(node: ast.expr, bound: dict[str, str]) -> str | None:
    """What an attribute reaches, if it starts from an imported name: `datetime.now` → `datetime.datetime.now`."""
    match node:
        case ast.Attribute(value=value, attr=attr):
            base = dotted(value, bound)
            return f"{base}.{attr}" if base else None
        case ast.Name(id=name):
            return bound.get(name)
        case _:
            return None


def wrong_room(place: Path, name: str, package: str) -> str | None:
    """Why a file in this place may not use this name of our own package; None when it may."""
    here = place.parts[0].removesuffix(".py")
    if here not in FRONT_DOOR and here not in FLOOR_OF:
        return f"{here} is not a room: give it a floor"
    parts = name.split(".")
    if parts[0] != package or here in FRONT_DOOR:
        return None
    there = parts[1] if len(parts) > 1 else ""
    if there not in FLOOR_OF:
        return f"{here} goes out by the front door ({name}): import from the room itself"
    if there == here or FLOOR_OF[there] < FLOOR_OF[here]:
        return None
    return f"{here} imports {there}, which is {'beside' if FLOOR_OF[there] == FLOOR_OF[here] else 'above'} it ({name})"


def wrong_room_of_worker(place: Path, name: str, package: str) -> str | None:
    """Why a file of the worker may not use this name; None when it may."""
    if place.parts[0] != "worker":
        return None
    if place.as_posix() in PURE and name.split(".")[0] in ("threading", "asyncio", "concurrent"):
        return f"{place.stem} is pure and must not use {name}"
    parts = name.split(".")
    if parts[:2] != [package, "worker"] or len(parts) < 3 or parts[2] not in WORKER_FLOORS:
        if place.as_posix() in PURE and parts[:2] in ([package, "store"], [package, "app"]):
            return f"{place.stem} is pure and must not use {name}"
        return None
    here = place.parts[1].removesuffix(".py")
    if here in WORKER_FLOORS and WORKER_FLOORS.index(parts[2]) <= WORKER_FLOORS.index(here):
        return None
    return f"worker/{here} imports worker/{parts[2]}, which is above it ({name})"


def wrong_touch(place: Path, name: str, package: str) -> str | None:
    """Why a file in this place may not reach for this name; None when it may."""
    name = f"detent.{name.partition('.')[2]}" if name.partition(".")[0] == package else name
    for touch in TOUCHES:
        reaches = any(fnmatch.fnmatchcase(name, of) or name.startswith(f"{of}.") for of in touch.names)
        if reaches and not any(fnmatch.fnmatch(place.as_posix(), allowed) for allowed in touch.places):
            return f"touches {touch.what} ({name}): only {', '.join(touch.places)} may"
    return None
