"""The committed guards are the generated ones."""

from __future__ import annotations

from importlib.resources import files

import pytest

from detent.lifecycle.guard import Dialect, job_guards
from detent.lifecycle.guard_late import late_guards
from detent.lifecycle.guard_results import result_guards
from detent.lifecycle.guard_starts import start_guards


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_the_migration_equals_the_lifecycle(dialect: Dialect) -> None:
    """L1: one declaration drives the database's own enforcement: a changed lifecycle without new guards fails here."""
    committed = files("detent.store").joinpath(dialect, "schema", "0002_guards.sql").read_text(encoding="utf-8")
    assert committed == job_guards(dialect)


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_the_guard_with_a_door_for_results_equals_the_lifecycle(dialect: Dialect) -> None:
    """L1, J13"""
    steps = files("detent.store").joinpath(dialect, "schema").iterdir()
    (committed,) = (step.read_text(encoding="utf-8") for step in steps if step.name.endswith("_result_guards.sql"))
    assert committed == result_guards(dialect)


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_the_guards_after_the_change_equal_the_lifecycle(dialect: Dialect) -> None:
    """L1, L2"""
    steps = files("detent.store").joinpath(dialect, "schema").iterdir()
    (committed,) = (step.read_text(encoding="utf-8") for step in steps if step.name.endswith("_late_guards.sql"))
    assert committed == late_guards(dialect)


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_the_guard_that_lets_an_ending_correct_the_start_equals_the_lifecycle(dialect: Dialect) -> None:
    """L1, R2"""
    steps = files("detent.store").joinpath(dialect, "schema").iterdir()
    (committed,) = (step.read_text(encoding="utf-8") for step in steps if step.name.endswith("_attempt_times.sql"))
    assert committed == start_guards(dialect)
