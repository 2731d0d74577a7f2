"""The public surface is pinned: a name more or less is a decision, not an accident."""

from __future__ import annotations

import inspect

import detent

EXPORTED = [
    "Context",
    "Detent",
    "Fatal",
    "Job",
    "Lifecycle",
    "Limit",
    "Probed",
    "Retry",
    "Snooze",
    "Throttled",
    "Transition",
    "errors",
    "shell",
]


def test_the_package_exports_exactly_these_names() -> None:
    assert detent.__all__ == EXPORTED == sorted(EXPORTED)


def test_what_is_exported_is_there_and_nothing_else_is_visible() -> None:
    visible = {name for name, value in vars(detent).items() if not name.startswith("_")}
    rooms = {name for name in visible if inspect.ismodule(getattr(detent, name))}
    assert visible - rooms == set(EXPORTED) - {"errors"}
