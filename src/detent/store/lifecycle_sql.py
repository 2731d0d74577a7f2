"""The lifecycles as SQL: the values that SQL files name in double braces.

A migration, trigger, view or function that depends on a lifecycle does not list states or moves itself. It names a
value such as `{{job.state_known}}`, and `filled` puts in what `lifecycle/library.py` declares. So a state or a
transition is one line in the library, and `detent migrate` brings it into an existing database.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from detent.lifecycle.definition import Lifecycle, Pair
from detent.lifecycle.library import JOB, LIBRARY
from detent.model.records import OUTCOMES
from detent.model.workflow_records import STEP_KINDS, WAIT_KINDS
from detent.store.sql_files import Dialect

__all__ = ["either", "filled", "literal", "placeholders", "values"]

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+\.[a-z_]+)\}\}")


def filled(text: str, dialect: Dialect) -> str:
    """Return an SQL text with every `{{lifecycle.value}}` replaced. An unknown name raises `KeyError`."""
    if "{{" not in text:
        return text
    known = values(dialect)
    return _PLACEHOLDER.sub(lambda found: known[found[1]], text)


def placeholders(text: str) -> list[str]:
    """Return the names of the values that an SQL text depends on."""
    return _PLACEHOLDER.findall(text)


def values(dialect: Dialect) -> Mapping[str, str]:
    """Return every value by its name, for one kind of database.

    For each lifecycle:

    - `initial`: the initial state, without quotes
    - `states`, `rests`, `open`: lists of literals: all states; those in which waiting ends; the others
    - `state_known`, `state_is_open`: conditions on the column `state`
    - `pairs`: a condition on OLD.state and NEW.state: the declared moves; `shown` also has the ends of folds
    - `moves`: the declared moves as a list of row values

    For jobs also what their guards, the function is_job_move and the invariants need; for executions the known outcomes
    and next states; for steps and waits of workflows their known kinds.
    """
    return _values(dialect, tuple(LIBRARY.values()))


@functools.cache
def _values(dialect: Dialect, lifecycles: tuple[Lifecycle, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for lifecycle in lifecycles:
        opens = [state for state in lifecycle.states if state not in lifecycle.rests]
        folds = [fold.pair for fold in lifecycle.folds]
        of_lifecycle = {
            "initial": lifecycle.initial,
            "states": _listed(lifecycle.states),
            "rests": _listed(sorted(lifecycle.rests)),
            "open": _listed(opens),
            "state_known": _one_of("state", lifecycle.states, dialect),
            "state_is_open": _one_of("state", opens, dialect),
            "pairs": either(lifecycle.pairs),
            "shown": either([*lifecycle.pairs, *folds]),
            "moves": ", ".join(f"({literal(source)}, {literal(target)})" for source, target in lifecycle.pairs),
        }
        found |= {f"{lifecycle.name}.{name}": text for name, text in of_lifecycle.items()}
        if lifecycle.name == JOB.name:
            found |= {f"job.{name}": text for name, text in _of_jobs(lifecycle, dialect).items()}
            found["execution.next_state_known"] = _one_of("next_state", _ends(lifecycle), dialect)
    found["execution.outcomes"] = _listed(OUTCOMES)
    found["execution.outcome_known"] = _one_of("outcome", OUTCOMES, dialect)
    found["workflow_step.kind_known"] = _one_of("kind", STEP_KINDS, dialect)
    found["workflow_wait.kind_known"] = _one_of("kind", WAIT_KINDS, dialect)
    return found


def _of_jobs(job: Lifecycle, dialect: Dialect) -> dict[str, str]:
    held = [*(target for source, target in job.ordinary_pairs() if source == "running"), "running"]
    # A chain of ORs, commonest first: an IN list would make SQLite build a table for every row.
    ends = " AND (" + " OR ".join(f"NEW.state = {literal(target)}" for target in held) + ")"
    if dialect == "postgres" and set(held) == set(job.states):
        # Its constraint job_state_known refuses other states, and no session can switch that off, as it can on SQLite.
        ends = ""
    return {
        "ordinary_ends": ends,
        "claims": either([pair for pair in job.ordinary_pairs() if pair[1] == "running"]),
        "logged": either(job.logged_pairs()),
        "logged_moves": ", ".join(
            f"({_listed((t.source, t.target, t.trigger))})" for t in job.transitions if t.record == "log"
        ),
        "ends": _listed(_ends(job)),
        "triggers": ",".join(dict.fromkeys(f"{t.trigger} {t.source} {t.target}" for t in job.transitions)),
    }


def _ends(job: Lifecycle) -> list[str]:
    """Return the states in which an attempt can leave its job."""
    return [state for state in job.states if state != "running"]


def either(pairs: Iterable[Pair], column: str = "state") -> str:
    """Return the condition that a row moves along one of the pairs."""
    return " OR ".join(
        f"(OLD.{column} = {literal(source)} AND NEW.{column} = {literal(target)})" for source, target in pairs
    )


def literal(text: str) -> str:
    """Return a string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(literal, names))


def _one_of(column: str, names: Iterable[str], dialect: Dialect) -> str:
    """Return the condition that a column has one of these values, in the form that is fastest to check."""
    if dialect == "postgres":
        return f"{column} = ANY ('{{{','.join(names)}}}'::text[])"
    return " OR ".join(f"{column} = {literal(name)}" for name in names)
