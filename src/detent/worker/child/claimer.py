"""The claiming thread of a child: asks the core what is wanted, the database for it, and waits where there is none."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from detent.app.detent import Detent
from detent.errors import DatabaseError, DetentError
from detent.model.clock import Clock
from detent.model.records import Claimed, ClaimedEach
from detent.store.ahead import ClaimTerms
from detent.store.contract import Store
from detent.worker.child.core import Want
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.supervisor.board import Board
from detent.worker.supervisor.channel import Channel

__all__ = ["Claimer", "look_every"]

_LOOK_AGAIN = 0.1
_PAUSE_FIRST = 0.05
_PAUSE_GROWTH = 5.0
_PAUSE_UNSURE = 1.0
"""Where nobody may wake us, or the passing of time alone gives room, a look a second."""
_PAUSE_LONGEST = 30.0
_LET_BEGIN = 0.0005
"""Seconds for which one that was woken leaves the interpreter to what it has just brought. To go on at once would keep
that from beginning for as long, since the loop has to wait for the interpreter."""
_ANSWER_MIN = 5.0
"""Seconds that a claim waits for its answer at least, before its connection is given up."""
_LIMITS_EVERY = 5.0
"""Seconds between two questions whether limits bound this worker: they are declared rarely."""
_BAD_ROUNDS_MAX = 10
"""Claims in a row that met damaged rows only, before the claimer waits like one that found nothing."""
_BUSY_FOR = 10.0
"""Seconds after a claim for which a small bucket is looked at as often as it fills up."""


def look_every(refill: float) -> float:
    """Return the seconds after which to look again, so that no bucket overflows meanwhile: half the time in which the
    quickest one fills up, and a second at most."""
    return max(_PAUSE_FIRST, min(_PAUSE_UNSURE, refill / 2))


class Claimer:
    """Gives what it claimed to `took`, and `tell`s of it when that may have begun; asks `wants` what to claim, and
    `holding` how much is in hand.

    `room` is set by whoever makes room, `stopping` by whoever wants no more. `limited` says that an end of
    one of our attempts may make room under a limit, so that it is worth while to look again.
    """

    def __init__(
        self,
        app: Detent,
        store: Store,
        options: WorkerOptions,
        channel: Channel,
        board: Board,
        clock: Clock,
        backoff: OutageBackoff,
        stopping: threading.Event,
        *,
        wants: Callable[[], list[Want]],
        took: Callable[[int, list[Claimed], float], None],
        tell: Callable[[], None],
        holding: Callable[[], int],
    ) -> None:
        self._app = app
        self._store = store
        self._options = options
        self._channel = channel
        self._board = board
        self._clock = clock
        self._backoff = backoff
        self._stopping = stopping
        self._wants = wants
        self._took = took
        self._tell = tell
        self._holding = holding
        self._tasks = sorted(app.tasks)
        self._isolation = DamageIsolation("claim", store)
        self._after_tenant: str | None = None
        self._pause = _PAUSE_FIRST
        self._is_woken = True
        self._refill: float | None = None
        self._ask_limits_at = 0.0
        self._claimed_at = -math.inf
        self.room = threading.Event()
        self.limited = False

    def run(self) -> None:
        """Until stopping."""
        while not self._stopping.is_set():
            self.room.clear()
            wants = self._wants()
            if not wants:
                self.room.wait(_LOOK_AGAIN)
            elif not self._is_woken or not self._claim_first(wants):
                self._wait_for_work(wants)

    def _claim_first(self, wants: list[Want]) -> bool:
        """Whether one of them gave something. It may have taken all the room, so the core is asked again after it."""
        for want in wants:
            if self._claim(want):
                self._is_woken, self._pause = True, _PAUSE_FIRST
                return True
        return False

    def _wait_for_work(self, wants: list[Want]) -> None:
        """Say that we wait, look once more, wait: so nothing slips through in between, but what was on its way to being
        committed when we said so. So we look again soon, and then more and more rarely."""
        if self._stopping.is_set():
            return
        try:
            with self._answering():
                refill = self._known_refill()
                self.limited = refill is not None and self._holding() > 0
                pause = min(self._pause, self._longest_pause(refill))
                version = self._store.wake.version(pause)
            if not self._claim_first(wants) and not self._stopping.is_set():
                if self._options.drain:
                    self._channel.send("idle", holding=self._holding())
                with self._answering():
                    claim = self._claim_ahead(wants[0])
                woken = self._store.wake.wait(version, pause)
                self._pause = _PAUSE_FIRST if woken else pause * _PAUSE_GROWTH
                taken = claim() if woken else 0
                # Who gets less than it wanted has left nothing, most likely: it says that it waits before it asks
                # again. Who finds something even then is in a stream, and asks until there is nothing.
                self._is_woken = woken and (taken == wants[0].limit or len(wants) > 1)
        except DatabaseError as error:
            self._backoff.failed("waiting for work", error)

    def _known_refill(self) -> float | None:
        """Return the time in which the quickest bucket fills up, at most five seconds old; None without any limit."""
        now = self._clock.monotonic()
        if now >= self._ask_limits_at:
            self._refill = self._store.limit_refill(self._options.queues, self._tasks)
            self._ask_limits_at = now + _LIMITS_EVERY
        return self._refill

    def _longest_pause(self, refill: float | None) -> float:
        if refill is not None and self._clock.monotonic() < self._claimed_at + _BUSY_FOR:
            return look_every(refill)
        return _PAUSE_LONGEST if self._store.wake.is_sure and refill is None else _PAUSE_UNSURE

    def _claim(self, want: Want) -> int:
        lease_id = self._new_lease()
        terms = self._terms(lease_id, want)
        return self._take(lease_id, partial(self._stepping_over, partial(self._store.job_claim, **terms), terms))

    def _stepping_over(self, claim: Callable[[], list[Claimed]], terms: ClaimTerms) -> list[Claimed]:
        """Return what `claim` gives. If a damaged row makes it fail, claim job by job: the row is set aside and
        reported, and all others are claimed."""
        for _ in range(_BAD_ROUNDS_MAX):
            done = self._isolation.run(
                self._clock.monotonic(),
                lambda: ClaimedEach(tuple(claim())),
                lambda skip: self._store.job_claim_each(skip, **terms),
                lambda done: done.bad,
            )
            if done.jobs or not done.bad:
                break
        return list(done.jobs)

    def _claim_ahead(self, want: Want) -> Callable[[], int]:
        """The same, as far as it can be done before there is any work. Nothing is in hand then, or less than there is
        room for, and it does not become more."""
        lease_id = self._new_lease()
        terms = self._terms(lease_id, want)
        claim = partial(self._stepping_over, self._store.claim_ahead(**terms), terms)
        return partial(self._take, lease_id, claim, had_waited=True)

    def _take(self, lease_id: int, claim: Callable[[], list[Claimed]], *, had_waited: bool = False) -> int:
        """One claim; its answer is never lost: what a failed call may have claimed is looked up and adopted. The claim
        was made by the time its first call came back, whether that failed or not."""
        ask = claim
        claimed_at: float | None = None
        while not self._stopping.is_set():
            try:
                with self._answering():
                    jobs = ask()
            except DetentError as error:
                claimed_at = claimed_at or self._clock.monotonic()
                ask = partial(self._store.claim_find, lease_id)
                self._backoff.failed("claiming", error)
                continue
            if ask is claim:
                # To look up a claim is only a read: it does not show that the database takes writes again.
                self._backoff.worked()
            if jobs:
                self._claimed_at = self._clock.monotonic()
                self._after_tenant = jobs[-1].tenant
                self._took(lease_id, jobs, claimed_at or self._claimed_at)
                if had_waited:
                    self._clock.sleep(_LET_BEGIN)
                self._tell()
            return len(jobs)
        return 0

    def _new_lease(self) -> int:
        """Should this process die before it has the answer, the supervisor knows where to look."""
        lease_id = 0
        while not lease_id and not self._stopping.is_set():
            try:
                with self._answering():
                    lease_id = self._app.ids.take()[0]
            except DatabaseError as error:
                self._backoff.failed("claiming", error)
        self._board.set_claiming(lease_id)
        return lease_id

    def _answering(self) -> AbstractContextManager[None]:
        return self._store.answering_within(max(_ANSWER_MIN, self._options.lease / 3))

    def _terms(self, lease_id: int, want: Want) -> ClaimTerms:
        return {
            "lease_id": lease_id,
            "worker": self._options.name,
            "queues": want.queues,
            "tasks": self._tasks,
            "limit": want.limit,
            "lease": self._options.lease,
            "after_tenant": self._after_tenant,
        }
