"""The claiming thread of a child: asks the runner what to claim, claims it, and waits while there is no work."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from detent.app.detent import Detent
from detent.declare.workflow import versions_continued
from detent.errors import DatabaseError, DetentError
from detent.model.clock import Clock
from detent.model.records import Claimed, ClaimedEach
from detent.store.contract import Store
from detent.store.jobs.contract import ClaimTerms
from detent.worker.child.core import ClaimRequest
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.supervisor.board import Board
from detent.worker.supervisor.channel import Channel

__all__ = ["Claimer", "look_interval"]

_ROOM_POLL = 0.1
_PAUSE_FIRST = 0.05
_PAUSE_GROWTH = 5.0
_PAUSE_UNSURE = 1.0
"""Maximum pause if no notification may come, or if time alone makes room under a limit."""
_PAUSE_LONGEST = 30.0
_LET_BEGIN = 0.0005
"""Seconds for which a claimer that was woken leaves the interpreter to the jobs it just claimed. If it went on at once,
they would begin that much later, because the loop has to wait for the interpreter."""
_ANSWER_MIN = 5.0
"""Minimum number of seconds that a claim waits for its answer before its connection is given up."""
_LIMITS_EVERY = 5.0
"""Seconds between two checks whether limits apply to this worker. Limits are declared rarely."""
_BAD_ROUNDS_MAX = 10
"""Number of claims in a row that met only damaged rows, after which the claimer waits as if it had found nothing."""
_BUSY_FOR = 10.0
"""Seconds after a claim for which a small bucket is looked at as often as it fills up."""


def look_interval(refill: float) -> float:
    """Return the seconds after which to look again, so that no bucket overflows meanwhile: half the time in which the
    quickest bucket fills up, and at most a second."""
    return max(_PAUSE_FIRST, min(_PAUSE_UNSURE, refill / 2))


class Claimer:
    """Claims jobs and passes them on.

    It asks `next_claims` what to claim, passes the jobs to `claimed`, and then calls `report` for their lease.
    `holding` gives the number of jobs held. Other threads set `room` when there is room for more jobs. The claimer
    returns when `stopping` is set. It claims nothing after the supervisor has decided to kill this process.
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
        room: threading.Event,
        next_claims: Callable[[], list[ClaimRequest]],
        claimed: Callable[[int, list[Claimed], float], None],
        report: Callable[[], None],
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
        self._room = room
        self._next_claims = next_claims
        self._claimed = claimed
        self._report = report
        self._holding = holding
        self._tasks = sorted(app.tasks)
        self._versions = versions_continued(app.tasks)
        self._isolation = DamageIsolation("claim", store)
        self._after_tenant: str | None = None
        self._pause = _PAUSE_FIRST
        self._is_woken = True
        self._refill: float | None = None
        self._ask_limits_at = 0.0
        self._claimed_at = -math.inf
        self.is_limited = False
        """Whether the end of one of our attempts may make room under a limit, so that the claimer should look again."""

    def run(self) -> None:
        """Claim until stopping."""
        while not self._stopping.is_set():
            self._room.clear()
            requests = [] if self._board.claims_forbidden() else self._next_claims()
            if not requests:
                self._room.wait(_ROOM_POLL)
            elif not self._is_woken or not self._claim_first(requests):
                self._wait_for_work(requests)

    def interrupt(self) -> None:
        """End the claimer's waits, so that it sees that `stopping` is set. From any thread."""
        self._room.set()
        self._store.wake.interrupt()

    def _claim_first(self, requests: list[ClaimRequest]) -> bool:
        """Try the requests in turn; return whether one of them gave jobs. It may have used up all the room."""
        for request in requests:
            if self._claim(request):
                self._is_woken, self._pause = True, _PAUSE_FIRST
                return True
        return False

    def _wait_for_work(self, requests: list[ClaimRequest]) -> None:
        """Register as waiting, look once more, then wait.

        Only a job whose commit was in progress at that moment can be missed. So the first pauses are short, and then
        grow.
        """
        if self._stopping.is_set():
            return
        try:
            with self._answering():
                refill = self._known_refill()
                self.is_limited = refill is not None and self._holding() > 0
                pause = min(self._pause, self._longest_pause(refill))
                version = self._store.wake.version(pause)
            if not self._claim_first(requests) and not self._stopping.is_set():
                if self._options.drain:
                    self._channel.send("idle", holding=self._holding())
                with self._answering():
                    claim = self._prepare_claim(requests[0])
                woken = self._store.wake.wait(version, pause)
                self._pause = _PAUSE_FIRST if woken else pause * _PAUSE_GROWTH
                taken = claim() if woken else 0
                # A claim that gave less than it asked for has most likely left nothing: register as waiting before the
                # next one. If that finds something even so, jobs are streaming in: claim until nothing is left.
                self._is_woken = woken and (taken == requests[0].limit or len(requests) > 1)
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
            return look_interval(refill)
        return _PAUSE_LONGEST if self._store.wake.is_sure and refill is None else _PAUSE_UNSURE

    def _claim(self, request: ClaimRequest) -> int:
        lease_id = self._new_lease()
        terms = self._terms(lease_id, request)
        return self._take(lease_id, partial(self._claim_around_damage, partial(self._store.job_claim, **terms), terms))

    def _claim_around_damage(self, claim: Callable[[], list[Claimed]], terms: ClaimTerms) -> list[Claimed]:
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

    def _prepare_claim(self, request: ClaimRequest) -> Callable[[], int]:
        """Do as much of a claim as possible before there is any work; return the rest. No more jobs are held
        meanwhile, so the request stays right."""
        lease_id = self._new_lease()
        terms = self._terms(lease_id, request)
        claim = partial(self._claim_around_damage, self._store.claim_ahead(**terms), terms)
        return partial(self._take, lease_id, claim, had_waited=True)

    def _take(self, lease_id: int, claim: Callable[[], list[Claimed]], *, had_waited: bool = False) -> int:
        """Make one claim and pass on its jobs; return their number.

        If a claim fails, its answer may be lost: the jobs it may have claimed are looked up and adopted. Such a claim
        was made by the time the first call returned.
        """
        ask = claim
        claimed_at: float | None = None
        while not self._stopping.is_set() and not self._board.claims_forbidden():
            try:
                with self._answering():
                    jobs = ask()
            except DetentError as error:
                claimed_at = claimed_at or self._clock.monotonic()
                ask = partial(self._store.claim_find, lease_id)
                self._backoff.failed("claiming", error)
                continue
            if ask is claim:
                # A look-up is only a read: it does not show that the database accepts writes again.
                self._backoff.worked()
            if jobs:
                self._board.count_claim(len(jobs))
                self._claimed_at = self._clock.monotonic()
                self._after_tenant = jobs[-1].tenant
                self._claimed(lease_id, jobs, claimed_at or self._claimed_at)
                if had_waited:
                    self._clock.sleep(_LET_BEGIN)
                self._report()
            return len(jobs)
        return 0

    def _new_lease(self) -> int:
        """Return the id of a new lease. It is on the board before the claim: if this process dies before it has the
        answer, the supervisor knows where to look."""
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

    def _terms(self, lease_id: int, request: ClaimRequest) -> ClaimTerms:
        return {
            "lease_id": lease_id,
            "worker": self._options.name,
            "queues": request.queues,
            "tasks": self._tasks,
            "limit": request.limit,
            "lease": self._options.lease,
            "after_tenant": self._after_tenant,
            "versions": self._versions,
        }
