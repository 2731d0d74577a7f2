"""`app.aio` has every noun, verb and argument of `app`."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from detent import AsyncJob, Detent, Job
from detent.app.aio_detent import AsyncDetent
from tests.surface.nouns import NOUNS, public_methods
from tests.surface.twins import SOURCE, TWINS, twin_source

ONLY_PLAIN = {
    "aio": "the way to the twin itself",
    "announcements": "for workers",
    "around": "declares; reads nothing",
    "around_hooks": "for workers",
    "batch": "declares; reads nothing",
    "batches": "what is declared; reads nothing",
    "call_named": "describes a call; reads nothing",
    "clock": "for tools",
    "enqueue_named": "for the command line and other languages",
    "find_task": "what is declared; reads nothing",
    "hears_failures": "for workers",
    "ids": "for workers",
    "incoming_webhooks": "for the server",
    "limit_queue": "declares; reads nothing",
    "migrate": "is run before the application starts",
    "notify": "declares; reads nothing",
    "on_failure": "declares; reads nothing",
    "pipeline": "declares; reads nothing",
    "pipelines": "what is declared; reads nothing",
    "prepare_foreign": "takes a plain connection",
    "put_declared": "for workers",
    "rewire": "for tests",
    "schedule": "declares; reads nothing",
    "settings": "reads nothing",
    "store": "for workers",
    "open_existing": "for tools",
    "store_as_found": "for workers",
    "actor": "reads nothing",
    "task": "declares; reads nothing",
    "tasks": "what is declared; reads nothing",
    "tell_failure": "for workers",
    "webhook": "declares; reads nothing",
    "workflow": "declares; reads nothing",
}
"""Names of `Detent` that its twin does without, and why."""


@pytest.mark.parametrize("path", TWINS)
def test_every_twin_is_up_to_date(path: str) -> None:
    written, expected = _parts((SOURCE / TWINS[path]).read_text()), _parts(twin_source(path))
    assert written == expected, "run `python -m tests.surface.twins`"


def _parts(source: str) -> tuple[set[tuple[str | None, str]], list[str]]:
    """Return the imports of a module, and everything else in the form that `ast` gives it: ruff sorts and formats."""
    tree = ast.parse(source)
    imports = {
        (getattr(node, "module", None), name.name)
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = inspect.cleandoc(node.value)
    return imports, [ast.unparse(node) for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]


def test_the_application_has_the_same_names() -> None:
    plain = {name for name in dir(Detent) if not name.startswith("_")} | {"settings", "around_hooks"}
    awaited = {name for name in dir(AsyncDetent) if not name.startswith("_")}
    assert plain - awaited == set(ONLY_PLAIN) & plain
    assert awaited - plain == {"open"}


@pytest.mark.parametrize("name", NOUNS)
def test_every_verb_has_the_same_arguments(name: str) -> None:
    plain, awaited = NOUNS[name]
    verbs = public_methods(plain)
    assert verbs.keys() == public_methods(awaited).keys()
    for verb, method in verbs.items():
        twin = getattr(awaited, verb)
        assert _arguments(method) == _arguments(twin), verb
        is_awaited = inspect.iscoroutinefunction(twin) or inspect.isasyncgenfunction(twin)
        assert is_awaited or verb in ("attach", "where"), f"{name}.{verb} is not awaited"


def _arguments(method: Any) -> list[tuple[str, Any, Any, Any]]:
    found = inspect.signature(method).parameters.values()
    return [(one.name, one.kind, one.default, one.annotation) for one in found]


def test_a_first_use_does_not_block_the_loop(tmp_path: Path) -> None:
    """The loop ticks on while the database is created by the first enqueue."""
    app = Detent(f"sqlite:///{tmp_path}/first.db")

    @app.task
    def greet(ctx: Any, name: str) -> str:
        return name

    async def story() -> AsyncJob[str]:
        gaps, loop, done = [0.0], asyncio.get_running_loop(), asyncio.Event()

        async def tick() -> None:
            last = loop.time()
            while not done.is_set():
                await asyncio.sleep(0)
                gaps.append(loop.time() - last)
                last = loop.time()

        ticking = asyncio.create_task(tick())
        job = await app.aio.enqueue(greet.call("ana"))
        done.set()
        await ticking
        assert len(gaps) > 5
        return job

    with app:
        job = asyncio.run(story())
        assert isinstance(job, AsyncJob)
        assert isinstance(app.jobs.get(job.id), Job)
