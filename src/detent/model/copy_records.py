"""The records of rewinds and forks: new generations and new jobs that begin with copies of recorded steps."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["FORKED_FROM", "Fork", "Forked", "Rewind", "Rewound"]


FORKED_FROM = "forked_from"
"""The name under which the metadata of a fork have the job from which it was forked. Its first attempt has a record to
load, and this tells the worker so: a claim reads nothing about workflows."""


class Rewind(Struct, frozen=True, kw_only=True):
    """A workflow that is to continue from an earlier step. `to` is the first step that is repeated: the path of a step
    or of a scope. With `force`, transactions and steps that happen once are repeated too. `seed` is the key of the job,
    from which `ctx.random` and `ctx.uuid` follow."""

    job_id: int
    to: str
    actor: str
    seed: str
    reason: str | None = None
    force: bool = False


class Rewound(Struct, frozen=True):
    """A workflow that was rewound: its new generation, how many steps were kept and how many are repeated, and how many
    signals were put back into its mailbox."""

    job_id: int
    generation: int
    kept: int
    repeated: int
    signals: int


class Fork(Struct, frozen=True, kw_only=True):
    """A new job that is to begin with the record of another. `new_id` was enqueued in the same transaction. `at` is the
    first step that is not copied; None copies everything on record. `replaced` has paths and values that the copies get
    instead of the recorded ones. If it `keeps_payload`, it has the arguments of the other's current generation;
    otherwise those of the new job. The rest is as in `Rewind`."""

    job_id: int
    new_id: int
    actor: str
    seed: str
    at: str | None = None
    reason: str | None = None
    force: bool = False
    replaced: tuple[tuple[str, str], ...] = ()
    keeps_payload: bool = True
    metadata: str | None = None  # for the line on record


class Forked(Struct, frozen=True):
    """A new job with the record of another, and how many steps were copied."""

    job_id: int
    forked_from: int
    steps: int
