"""The library says exactly what it must, for every pair of states of every lifecycle."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

import detent.store
from detent.errors import InvalidTransition
from detent.lifecycle.library import BATCH_RUN, EXECUTION, JOB, LIBRARY, OWN_NAMES

DECLARED: dict[str, dict[str, str]] = {
    "job": {
        "pending": "running cancelled quarantined succeeded failed",
        "running": "succeeded pending failed cancelled",
        "succeeded": "",
        "failed": "pending quarantined cancelled succeeded",
        "quarantined": "pending cancelled succeeded",
        "cancelled": "pending",
    },
    "execution": {
        "leased": "in_progress aborted",
        "in_progress": "committed aborted",
        "committed": "done",
        "done": "",
        "aborted": "",
    },
    "batch_run": {
        "preview": "queued cancelled",
        "queued": "applying cancelled",
        "applying": "applied partial failed cancelled",
        "applied": "queued rolled_back",
        "partial": "applying queued rolled_back",
        "failed": "applying queued partial",
        "cancelled": "applying queued partial",
        "rolled_back": "",
    },
    "target": {
        "preview": "queued",
        "queued": "applying",
        "applying": "applied queued failed",
        "applied": "rolled_back",
        "failed": "queued",
        "rolled_back": "",
    },
    "pipeline_run": {
        "created": "workers_running failed cancelled",
        "workers_running": "consolidation_triggered consolidation_skipped cancelled",
        "consolidation_skipped": "failed consolidation_triggered workers_running cancelled",
        "consolidation_triggered": "consolidating failed cancelled",
        "consolidating": "completed failed cancelled",
        "completed": "",
        "failed": "workers_running consolidation_triggered",
        "cancelled": "workers_running consolidation_triggered",
    },
    "partition": {
        "pending": "in_progress failed",
        "in_progress": "fetching_pages failed",
        "fetching_pages": "completed failed",
        "completed": "",
        "failed": "pending fetching_pages",
    },
    "ops_run": {
        "queued": "claimed cancelled",
        "claimed": "running cancelled",
        "running": "success failed cancelled",
        "success": "",
        "failed": "",
        "cancelled": "",
    },
}


def test_the_library_holds_the_declared_lifecycles() -> None:
    """L5: the seven of them, each with its states."""
    assert set(LIBRARY) == set(DECLARED)
    assert LIBRARY["job"] is JOB
    for name, lifecycle in LIBRARY.items():
        assert lifecycle.name == name
        assert set(lifecycle.states) == set(DECLARED[name])


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [(name, *pair) for name, states in DECLARED.items() for pair in product(states, states)],
)
def test_every_pair_of_states(name: str, source: str, target: str) -> None:
    """L1, L2, L3, L5: declared moves pass, staying is a no-op, everything else is refused with what is allowed."""
    lifecycle = LIBRARY[name]
    targets = DECLARED[name][source].split()
    if source == target:
        assert lifecycle.validate(1, source, target) is None
    elif target in targets:
        transition = lifecycle.validate(1, source, target)
        assert transition is not None
        assert (transition.source, transition.target) == (source, target)
    else:
        with pytest.raises(InvalidTransition) as caught:
            lifecycle.validate(1, source, target)
        assert sorted(caught.value.allowed) == sorted(targets)


@pytest.mark.parametrize(
    ("source", "target"), [("applied", "applying"), ("rolled_back", "applying"), ("preview", "applying")]
)
def test_the_three_forbidden_moves_of_a_batch_run(source: str, target: str) -> None:
    """B1: success is immutable, what is rolled back needs a new run, and nothing is applied without being queued."""
    with pytest.raises(InvalidTransition, match=f"batch_run 9 cannot go from {source} to {target}"):
        BATCH_RUN.validate(9, source, target)


ENDS: dict[str, tuple[str, str, str]] = {
    "job": ("pending", "succeeded", "failed quarantined cancelled"),
    "execution": ("leased", "done aborted", ""),
    "batch_run": ("preview", "rolled_back", "applied partial failed cancelled"),
    "target": ("preview", "rolled_back", "applied failed"),
    "pipeline_run": ("created", "completed", "consolidation_skipped failed cancelled"),
    "partition": ("pending", "completed", "failed"),
    "ops_run": ("queued", "success failed cancelled", ""),
}


@pytest.mark.parametrize("name", list(LIBRARY))
def test_where_it_begins_and_where_waiting_ends(name: str) -> None:
    """L5: the initial state, those without a way out, and those that rest besides."""
    initial, final, rests = ENDS[name]
    assert LIBRARY[name].initial == initial
    assert LIBRARY[name].final == set(final.split())
    assert LIBRARY[name].rests - LIBRARY[name].final == set(rests.split())


def test_what_a_job_row_may_show_without_a_line_in_the_log() -> None:
    """L2: the ordinary path, commonest first; give-ups show only the ends of their fold."""
    assert JOB.ordinary_pairs() == (
        ("pending", "running"),
        ("running", "succeeded"),
        ("running", "pending"),
        ("running", "failed"),
        ("running", "cancelled"),
        ("running", "quarantined"),
    )


def test_what_a_job_row_may_show_with_a_line_in_the_log() -> None:
    """L2, E4: every explicit move, none of which starts from a running job."""
    assert set(JOB.logged_pairs()) == {
        ("pending", "cancelled"),
        ("failed", "pending"),
        ("quarantined", "pending"),
        ("cancelled", "pending"),
        ("quarantined", "cancelled"),
        ("failed", "cancelled"),
        ("pending", "quarantined"),
        ("failed", "quarantined"),
        ("failed", "succeeded"),
        ("quarantined", "succeeded"),
        ("pending", "succeeded"),
        ("pending", "failed"),
    }
    assert not set(JOB.logged_pairs()) & set(JOB.ordinary_pairs())


def test_a_failed_attempt_passes_through_failed() -> None:
    """J6: both folds are on record as two steps."""
    assert [fold.steps for fold in JOB.folds] == [
        (("running", "failed"), ("failed", "pending")),
        (("running", "failed"), ("failed", "quarantined")),
    ]


def test_a_target_moves_only_with_its_jobs() -> None:
    """B1: its record is that of the jobs that apply and revert it, so none of its moves has a line of its own."""
    assert LIBRARY["target"].logged_pairs() == ()


@pytest.mark.parametrize("name", ["batch_run", "pipeline_run", "partition", "ops_run"])
def test_moves_above_jobs_are_logged(name: str) -> None:
    """E4: runs and their parts have no executions of their own, so each of their moves has its line in the log."""
    assert LIBRARY[name].ordinary_pairs() == ()
    assert LIBRARY[name].logged_pairs() == LIBRARY[name].pairs


def test_an_execution_has_no_moves_but_its_own() -> None:
    """J1: nobody moves an execution by hand."""
    assert EXECUTION.logged_pairs() == ()
    assert EXECUTION.ordinary_pairs() == EXECUTION.pairs


@pytest.mark.parametrize("name", list(LIBRARY))
def test_force_is_an_operators(name: str) -> None:
    """E4: an override has an operator behind it and is always logged."""
    for transition in LIBRARY[name].transitions:
        assert (transition.trigger == "force") == (transition.actor == "operator")
        assert transition.trigger != "force" or transition.record == "log"


WRITES_A_LINE = re.compile(
    r"transition_log\s*\((?:tenant, )?entity,[^)]*\)\s*(?:VALUES\s*\(|SELECT )(?:[\w.]+, )?'(\w+)'"
)


def test_every_entity_that_detent_writes_lines_for_is_a_name_of_its_own() -> None:
    """E4: users cannot take these names, and no caller can write lines for them."""
    store = Path(detent.store.__file__).parent
    texts = [path.read_text(encoding="utf-8") for kind in ("*.sql", "*.py") for path in store.rglob(kind)]
    found = {name for text in texts for name in WRITES_A_LINE.findall(text)}
    assert {"queue", "schedule", "limit", "operation", "recovery", "alert_policy", "database"} <= found
    assert found <= OWN_NAMES
