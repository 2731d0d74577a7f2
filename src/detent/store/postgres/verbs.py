"""Every verb of the contract, as one statement each, over whatever session there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar, Unpack

from detent.errors import DetentError
from detent.lifecycle.declare import Lifecycle
from detent.model.alike import gathered, ids_of, kinds
from detent.model.figure_records import BatchCount, TransitionCount
from detent.model.records import (
    Abort,
    Aborted,
    Appended,
    Cancelled,
    Claimed,
    ClaimedEach,
    Commit,
    Committed,
    Count,
    EachDone,
    EffectBegun,
    Enqueued,
    EventRow,
    ExecutionRow,
    Finish,
    Finished,
    JobDetails,
    JobPage,
    JobPlace,
    JobRow,
    Moved,
    NewEvent,
    NewJob,
    Pruned,
    Reaped,
    RecordPage,
    RecordPlace,
    Renewal,
    Started,
    ToldBy,
    TransitionRow,
)
from detent.store.ahead import ClaimTerms
from detent.store.contract import JobSearch
from detent.store.postgres.driver.bounds import Bounds
from detent.store.postgres.driver.lanes import Lanes
from detent.store.postgres.driver.session import Session
from detent.store.postgres.entity import move
from detent.store.postgres.statements import apart, enqueue, holding, looking, moving
from detent.store.postgres.verbs_alerting import PostgresAlerting
from detent.store.postgres.verbs_batching import PostgresBatching
from detent.store.postgres.verbs_keeping import PostgresKeeping
from detent.store.postgres.verbs_ops import PostgresOps
from detent.store.postgres.verbs_pipelining import PostgresPipelining
from detent.store.words import LOOKS_MAX, RecordSearch

__all__ = ["PostgresVerbs"]

T = TypeVar("T")
_STATEMENTS_MAX = 4
"""Statements of one claim, each of which passed over lanes without room."""
Answers = list[Enqueued | DetentError]


class PostgresVerbs(PostgresKeeping, PostgresAlerting, PostgresBatching, PostgresOps, PostgresPipelining):
    """The contract's words hold; nothing is asked of the database where nothing is asked for."""

    def __init__(self, session: Session, name: str, bounds: Bounds | None = None, lanes: Lanes | None = None) -> None:
        self._session = session
        self._lanes = lanes
        self._name = name
        self._bounds = bounds
        # A caller's transaction may stay open for long, so it must not hold the row that says that somebody waits.
        self._callers_own = bounds is None

    def ids_reserve(self, count: int) -> int:
        """Out of a sequence."""
        return self._session.run(enqueue.ids_reserve(count))

    def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        """Set by set, and item by item only where keys or groups are to be judged."""
        if not items:
            return []
        items = gathered(items)
        if self._lanes is not None:
            self._lanes.ensure(kinds(items))
        if len(items) == 1 and enqueue.may_go_alone(items[0]):
            created = self._session.run(enqueue.job_enqueue_one(items[0], notify=self._callers_own))
            if created:
                return self._admitted(items, [Enqueued(items[0].id, True)])
        return self._admitted(items, self._session.run(enqueue.job_enqueue(items, notify=self._callers_own)))

    def _admitted(self, items: Sequence[NewJob], answers: Answers) -> Answers:
        """New jobs may stand below what was emptied."""
        if self._bounds is not None:
            self._bounds.admit(ids_of(items))
        return answers

    def job_claim(
        self,
        *,
        lease_id: int,
        worker: str,
        queues: Sequence[str] | None,
        tasks: Sequence[str],
        limit: int,
        lease: float,
        tenants: Sequence[str] | None = None,
        after_tenant: str | None = None,
    ) -> list[Claimed]:
        """Above the bounds first, and below them where that was not enough. One statement passes over some
        hundred lanes that have no room under their limits."""
        if limit <= 0:
            return []
        claimed: list[Claimed] = []
        for _ in range(_STATEMENTS_MAX):
            known, reached = (None, None) if self._bounds is None else (self._bounds.known(), self._bounds.after_lane)
            statement = holding.job_claim(
                lease_id, worker, queues, tasks, limit, lease, tenants, after_tenant, known, reached
            )
            claimed = self._noted(self._session.run(statement), limit)
            if claimed or self._bounds is None or self._bounds.after_lane is None:
                break
        return claimed

    def _noted(self, claim: holding.Claim, limit: int) -> list[Claimed]:
        """What was claimed; how far it came is remembered for the next one."""
        claimed, places, reached = claim
        if self._bounds is not None:
            self._bounds.after_lane = reached
            if len(claimed) == limit:
                self._bounds.reach(places)
            else:
                self._bounds.forget()
        return claimed

    def claim_find(self, lease_id: int) -> list[Claimed]:
        """By the ids in the lease's row."""
        return self._session.run(holding.claim_find(lease_id))

    def job_start(self, items: Sequence[tuple[int, int]]) -> list[Started | DetentError]:
        """One update for each attempt number."""
        return self._session.run(holding.job_start(items)) if items else []

    def effect_begin(self, job_id: int, attempt: int, told_by: ToldBy) -> EffectBegun | DetentError:
        """The holder's row is locked while it is asked."""
        return self._session.run(holding.effect_begin(job_id, attempt, told_by))

    def lease_renew(
        self, lease_ids: Sequence[int], lease: float, begun: Mapping[int, float] | None = None
    ) -> list[Renewal]:
        """All at once."""
        return self._session.run(holding.lease_renew(lease_ids, lease, begun or {})) if lease_ids else []

    def cancel_find(self, items: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """By the keys of the jobs; nothing is locked."""
        return self._session.run(holding.cancel_find(items)) if items else []

    def event_append(self, items: Sequence[NewEvent]) -> list[Appended | DetentError]:
        """Job by job, so that each is locked once."""
        return self._session.run(holding.event_append(items)) if items else []

    def job_commit(self, item: Commit) -> Committed | DetentError:
        """The intents with the mark, in one statement."""
        return self._session.run(holding.job_commit(item))

    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        """One update for each attempt number, and the row of the attempt in the same statement."""
        return self._session.run(holding.job_finish(items, worker)) if items else []

    def job_abort(self, items: Sequence[Abort], worker: str) -> list[Aborted | DetentError]:
        """What goes back to pending may stand below what was claimed since."""
        return self._put_back(self._session.run(holding.job_abort(items, worker))) if items else []

    def job_cancel(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Cancelled | DetentError]:
        """In the order of the ids, so that nobody waits crosswise."""
        return self._session.run(moving.job_cancel(ids, actor, reason)) if ids else []

    def job_retry(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        """In the order of the ids, so that nobody waits crosswise."""
        return (
            self._put_back(self._session.run(moving.job_retry(ids, actor, reason, notify=self._callers_own)))
            if ids
            else []
        )

    def job_discard(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        """In the order of the ids, so that nobody waits crosswise."""
        return self._session.run(moving.job_discard(ids, actor, reason)) if ids else []

    def job_force(self, job_id: int, to_state: str, actor: str, reason: str) -> Moved | DetentError:
        """Along what is declared as force."""
        return self._session.run(moving.job_force(job_id, to_state, actor, reason))

    def effect_settle(
        self, job_id: int, done: bool, actor: str, reason: str, result: str | None = None
    ) -> Moved | DetentError:
        """On record."""
        return self._put_back(self._session.run(moving.effect_settle(job_id, done, actor, reason, result)))

    def job_promote(self, limit: int) -> int:
        """What has come due stands where its time puts it, which may be below what was claimed."""
        return self._put_back(self._session.run(moving.job_promote(limit)))

    def job_expire(self, limit: int) -> list[int]:
        """The longest expired first."""
        return self._session.run(moving.job_expire(limit))

    def lease_reap(self, limit: int, grace: float | None = None) -> Reaped:
        """The longest expired first."""
        return self._put_back(self._session.run(holding.lease_reap(limit, grace)))

    def job_claim_each(self, skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> ClaimedEach:
        """One statement; each job has a subtransaction of its own."""
        return self._put_back(self._session.run(apart.job_claim_each(skip, **terms)))

    def job_promote_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """In the order of their time."""
        return self._put_back(self._session.run(apart.job_promote_each(limit, skip)))

    def job_expire_each(self, limit: int, skip: Sequence[int]) -> EachDone:
        """The longest expired first."""
        return self._session.run(apart.job_expire_each(limit, skip))

    def lease_reap_each(self, limit: int, skip: Sequence[int], grace: float | None = None) -> Reaped:
        """The longest expired first."""
        return self._put_back(self._session.run(apart.lease_reap_each(limit, skip, grace)))

    def job_recover(self, ids: Sequence[int]) -> list[Finished | DetentError]:
        """In the order of the ids, so that nobody waits crosswise."""
        return self._session.run(holding.job_recover(ids)) if ids else []

    def job_prune(
        self, before: datetime, after_id: int, limit: int, actor: str, states: Sequence[str] | None = None
    ) -> Pruned:
        """The horizon first: the guards let nothing go that is not below it."""
        return self._session.run(moving.job_prune(before, after_id, limit, actor, states))

    def queue_pause(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """On record."""
        return self._session.run(moving.queue_pause(queue, actor, reason))

    def queue_resume(self, queue: str, actor: str, reason: str | None = None) -> Moved:
        """On record."""
        return self._session.run(moving.queue_resume(queue, actor, reason))

    def entity_move(
        self,
        lifecycle: Lifecycle,
        table: str,
        id_column: str,
        state_column: str,
        entity_id: str,
        trigger: str,
        actor: str,
        reason: str | None = None,
        metadata: str | None = None,
    ) -> Moved | DetentError:
        """The row with the caller's own rights, its record by the engine, in one transaction."""
        names = (table, id_column, state_column)
        told = (actor, reason, metadata)
        return self._session.together(
            lambda session: move(session, self._name, lifecycle, names, entity_id, trigger, told)
        )

    def job_get(self, ids: Sequence[int]) -> list[JobRow | None]:
        """In the order asked."""
        return self._session.run(looking.job_get(ids, self._name)) if ids else []

    def job_list(
        self, chosen: JobSearch, after: JobPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> JobPage:
        """Portion by portion, until the page is full."""
        return self._session.run(looking.job_list(chosen, after, limit, looks))

    def job_details(self, ids: Sequence[int]) -> list[JobDetails]:
        """One statement for all."""
        return self._session.run(looking.job_details(ids)) if ids else []

    def job_executions(self, job_id: int) -> list[ExecutionRow]:
        """Ended and in flight."""
        return self._session.run(looking.job_executions(job_id))

    def job_events(self, job_id: int, after_seq: int = 0, limit: int = 1000) -> list[EventRow]:
        """In the order of their numbers."""
        return self._session.run(looking.job_events(job_id, after_seq, limit))

    def transitions(self, entity: str, entity_id: str) -> list[TransitionRow]:
        """Out of the view `transition`."""
        return self._session.run(looking.transitions(entity, entity_id))

    def record_search(
        self, chosen: RecordSearch, after: RecordPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> RecordPage:
        """Portion by portion, until the page is full."""
        return self._session.run(looking.record_search(chosen, after, limit, looks))

    def state_as_of(self, entity: str, entity_id: str, at: datetime) -> str | None:
        """The last line that is not younger than the moment."""
        return self._session.run(looking.state_as_of(entity, entity_id, at))

    def counts(self) -> list[Count]:
        """From the jobs themselves."""
        return self._session.run(looking.counts())

    def counts_as_of(self, at: datetime) -> list[Count]:
        """From the last line of each job."""
        return self._session.run(looking.counts_as_of(at))

    def figures(self, since: datetime, task: str | None = None) -> list[TransitionCount]:
        """From the hours, and what is not added to them yet."""
        return self._session.run(looking.figures(since, task))

    def batch_figures(self, since: datetime) -> list[BatchCount]:
        """From the runs that ended since."""
        return self._session.run(looking.batch_figures(since))

    def now(self) -> datetime:
        """The server's clock."""
        return self._session.run(looking.now())

    def _put_back(self, answer: T) -> T:
        if self._bounds is not None:
            self._bounds.forget()
        return answer
