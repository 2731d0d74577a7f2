"""Two verbs in two steps: for one who is about to wait for work, and for one who must not wait at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NotRequired, Protocol, TypedDict, Unpack

from detent.errors import DetentError
from detent.model.records import Claimed, Enqueued, NewJob

__all__ = ["Ahead", "ClaimTerms", "EnqueueSent"]

EnqueueSent = Callable[[], Sequence[Enqueued | DetentError]]


class ClaimTerms(TypedDict):
    """What `job_claim` is told."""

    lease_id: int
    worker: str
    queues: Sequence[str] | None
    tasks: Sequence[str]
    limit: int
    lease: float
    tenants: NotRequired[Sequence[str] | None]
    after_tenant: NotRequired[str | None]


class Ahead(Protocol):
    """What a store does as soon as it can."""

    def claim_ahead(self, **terms: Unpack[ClaimTerms]) -> Callable[[], list[Claimed]]:
        """`job_claim`, of which all is done that can be done before there is work. The rest is done when what comes
        back is called, once, by the thread that waited."""
        ...

    def job_enqueue_sent(self, items: Sequence[NewJob]) -> EnqueueSent | None:
        """`job_enqueue`, on its way when this returns: to call what comes back, once, on any thread, is to wait for the
        answers. None where that could not be done without waiting."""
        ...
