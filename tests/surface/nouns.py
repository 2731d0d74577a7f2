"""Every noun and handle of the Python surface, with its async twin."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from tests.surface.twins import TWINS

__all__ = ["HANDLES", "NOUNS", "public_methods"]


def _twins() -> dict[str, tuple[type[Any], type[Any]]]:
    found = {}
    for path, twin in TWINS.items():
        plain = importlib.import_module(f"detent.{path.removesuffix('.py').replace('/', '.')}")
        awaited = importlib.import_module(f"detent.{twin.removesuffix('.py').replace('/', '.')}")
        for name in awaited.__all__:
            found[name.removeprefix("Async")] = (getattr(plain, name.removeprefix("Async")), getattr(awaited, name))
    return found


NOUNS = _twins()
HANDLES = {"Job", "Operation", "JobSelection", "BatchRun", "PipelineRun", "Reconciliation", "Worker"}


def public_methods(kind: type[Any]) -> dict[str, Callable[..., Any]]:
    """Return the verbs of a class: its public methods."""
    return {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name != "like"
    }
