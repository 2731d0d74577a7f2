"""What both databases share about rewinds and forks: which steps are kept, and the sentences of refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from detent.errors import CopyRefused
from detent.model.copy_records import Rewind
from detent.model.workflow_records import StepKind, StepRow

__all__ = ["LAST", "NAMES_MAX", "REPLACEABLE", "Why", "refused", "repeated_steps", "rewound_to"]

Why = Literal[
    "running",
    "succeeded",
    "being cancelled",
    "undo",
    "being undone",
    "nothing",
    "no step",
    "undone",
    "spawned",
    "living",
    "force",
    "not copied",
    "no value",
    "in scope",
]
"""Why a rewind or a fork is refused. The functions on PostgreSQL answer with the same words."""
LAST = 2**31 - 1
"""A number after those of all steps."""
NAMES_MAX = 5
"""How many steps a refusal names."""
REPLACEABLE: tuple[StepKind, ...] = ("call", "transact", "scope", "signal")
"""Kinds of steps whose value may be another one in a fork."""


def refused(
    job_id: int, word: Literal["rewound", "forked"], step: str | None, why: Why, names: Sequence[str]
) -> CopyRefused:
    """Return the refusal in words."""
    listed = names[:NAMES_MAX] if why == "being undone" else map(repr, names[:NAMES_MAX])
    return CopyRefused(job_id, word, step, _sentence(why, ", ".join(listed)))


def _sentence(why: Why, names: str) -> str:
    match why:
        case "running":
            return "it is running; cancel it first, or fork it"
        case "succeeded":
            return "it has succeeded, and that is final; fork it instead"
        case "being cancelled":
            return "a cancel was requested, and its steps are undone first; wait until it is cancelled"
        case "undo":
            return "it undoes the steps of another job; use that one"
        case "being undone":
            return f"job {names} undoes its steps and has not succeeded yet; wait for it, or retry that one"
        case "nothing":
            return "it has recorded nothing; retry it, or enqueue another job"
        case "no step":
            return f"that step is not on record; the last ones on record are {names}"
        case "undone":
            return f"{names} would be kept, but was undone; go back further, or retry it, which begins anew"
        case "spawned":
            return (
                f"the children of {names} were spawned before that step and are joined after it, and they belong to "
                f"the record as it is; go back to {names} or further"
            )
        case "living":
            return f"children of {names} have not ended, and it would spawn others; wait for them, or cancel them first"
        case "force":
            return (
                f"it would repeat {names}, and transactions and steps with once=True have happened for good; if they "
                f"may happen again, use force and give a reason"
            )
        case "not copied":
            return f"a value was given for {names}, which is not on record before that step"
        case "no value":
            return f"a value was given for {names}; only values of steps, scopes and signals can be replaced"
        case "in scope":
            return f"a value was given for {names}, which is inside a scope that has ended: replace the scope's value"


def rewound_to(item: Rewind) -> str:
    """Return the metadata of a recorded rewind."""
    return msgspec.json.encode({"to": item.to, "force": item.force} if item.force else {"to": item.to}).decode()


def repeated_steps(rows: Sequence[StepRow], to: str) -> list[StepRow] | None:
    """Return those of all steps of a generation that a rewind to this one would repeat, in the order of `rows`; None if
    it is not on record. The rule is that of the verbs."""
    before = min((row.seq for row in rows if row.path == to or row.path.startswith(f"{to}/")), default=None)
    if before is None:
        return None
    early = {row.path for row in rows if row.seq < before}
    return [row for row in rows if row.kind != "undo" and not (row.seq < before and _has_main(row.path, early))]


def _has_main(path: str, early: set[str]) -> bool:
    """Whether a row is a step of its own, or belongs to one that is kept: the end of a wait goes with the wait."""
    main, mark, rest = path.rpartition("~")
    return not (mark and rest) or main in early
