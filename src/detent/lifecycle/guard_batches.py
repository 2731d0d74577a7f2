"""The guards of batch runs and their targets: what makes the database refuse what their lifecycles do not declare.

`batch_guards` gives their text for each database. Migration 0009 has it as the lifecycles were then; what has changed
since is in the migration of `guard_runs`. A run moves along declared pairs and together with its line in the log; a
target along declared pairs and folds, and only to where the job that applies or reverts it is.
"""

from __future__ import annotations

from detent.lifecycle.declare import Lifecycle, Pair
from detent.lifecycle.guard import Dialect
from detent.lifecycle.guard_batches_text import GUARDS_POSTGRES, GUARDS_SQLITE, HEADER
from detent.lifecycle.library import BATCH_RUN, TARGET

__all__ = ["batch_guards"]

_RUN_FROZEN = ("id", "tenant", "batch", "payload", "fingerprint", "actor", "created_at")
_TARGET_FROZEN = ("run_id", "n", "ref", "created_at")
_TARGET_ONCE = ("apply_job_id", "revert_job_id", "before", "after", "changed", "preview_error", "previewed_at")


def batch_guards(dialect: Dialect) -> str:
    """The guards of both tables, as the text of a migration."""
    unequal = "IS DISTINCT FROM" if dialect == "postgres" else "IS NOT"
    once = [f"(OLD.previewed_at IS NOT NULL AND NEW.{name} {unequal} OLD.{name})" for name in _TARGET_ONCE[2:]]
    once += [f"(OLD.{name} IS NOT NULL AND NEW.{name} {unequal} OLD.{name})" for name in _TARGET_ONCE[:2]]
    fill = {
        "run_pairs": _either(BATCH_RUN.pairs),
        "target_pairs": _either(_shown(TARGET)),
        "run_initial": BATCH_RUN.initial,
        "target_initial": TARGET.initial,
        "rests": ", ".join(f"'{state}'" for state in sorted(BATCH_RUN.rests)),
        "run_frozen": ", ".join(_RUN_FROZEN),
        "run_thawed": _changed(_RUN_FROZEN, unequal),
        "target_frozen": ", ".join(_TARGET_FROZEN + _TARGET_ONCE),
        "target_thawed": " OR ".join([_changed(_TARGET_FROZEN, unequal), *once]),
    }
    head = HEADER.format(run=BATCH_RUN.version, target=TARGET.version)
    return head + (GUARDS_POSTGRES if dialect == "postgres" else GUARDS_SQLITE).format(**fill)


def _shown(lifecycle: Lifecycle) -> tuple[Pair, ...]:
    """What a row may show: single steps, and the ends of folds."""
    return (*lifecycle.pairs, *(fold.pair for fold in lifecycle.folds))


def _changed(columns: tuple[str, ...], unequal: str) -> str:
    return " OR ".join(f"NEW.{column} {unequal} OLD.{column}" for column in columns)


def _either(pairs: tuple[Pair, ...]) -> str:
    return " OR ".join(f"(OLD.state = '{source}' AND NEW.state = '{target}')" for source, target in pairs)
