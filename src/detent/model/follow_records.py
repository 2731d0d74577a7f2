"""Records for readers that follow a job: how far it is, and how far they have read."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["ChangePlace", "JobMark"]


class ChangePlace(Struct, frozen=True):
    """A place in the changes of a job. The ordinary steps of its attempts come in the order (attempt, rank), explicit
    moves in the order of `n`. A reader that has seen all before a place continues after it in both orders."""

    attempt: int = 0
    rank: int = -1
    n: int = 0


class JobMark(Struct, frozen=True):
    """How far a job is: its state, the last step of its attempts, the number of its last explicit move on record, and
    the number of its last event."""

    job_id: int
    tenant: str
    state: str
    attempt: int
    rank: int
    n: int
    seq: int
