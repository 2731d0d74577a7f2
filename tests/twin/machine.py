"""The twin: the reference model and both databases, driven with the same ids, the same clock and the same calls.

After every call the three answers must be equal, errors by type and fields, and so must the whole dumps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import astuple

from detent.lifecycle.library import JOB
from detent.model.clock import from_micros, to_micros
from detent.model.records import Abort, Commit, Finish, JobPlace, NewEvent, NewJob, Outcome
from detent.store.contract import Store, Verbs
from detent.store.jobs.filters import JobFilter, JobSearch, RecordSearch
from detent.testing.stores import START, StoreClock
from prove.reference.answers import answer_of, comparable, through_block
from prove.reference.dump import Reader, difference, dump_model
from prove.reference.keeping import WholeModel
from prove.reference.rows import Job
from tests.twin import strategies as some

NO_SUCH_ID = 10**12
JOBS_MAX = 8


class Side(NamedTuple):
    """One database of the twin, with its clock and a connection that reads it."""

    name: str
    store: Store
    clock: StoreClock
    reader: Reader


ACTIONS: list[st.SearchStrategy[tuple[str, bool, dict[str, Any]]]] = []
Method = TypeVar("Method", bound=Callable[..., None])


def action(held: bool = False, **arguments: st.SearchStrategy[Any]) -> Callable[[Method], Method]:
    """Something the machine may do. With `held` it needs running jobs, and where there are none some are claimed."""

    def keep(method: Method) -> Method:
        ACTIONS.append(st.tuples(st.just(method.__name__), st.just(held), st.fixed_dictionaries(arguments)))
        return method

    return keep


class Twin(RuleBasedStateMachine):
    """Its actions are the verbs. `open_sides` gives empty databases and puts them away at the end.

    One rule chooses evenly among all actions: of many rules each would be switched off in every other run.
    """

    def __init__(self, open_sides: Callable[[], AbstractContextManager[list[Side]]]) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.sides = self.opened.enter_context(open_sides())
        self.model = WholeModel(to_micros(START, field="START"))
        self.leases: list[int] = []

    def teardown(self) -> None:
        self.opened.close()

    # -- the comparison ----------------------------------------------------------------------------------------

    def everywhere(self, verb: str, *args: Any, **named: Any) -> Any:
        """Make the call on all three, compare answers and dumps, and give the model's answer."""
        return self.compared(verb, lambda side: getattr(side, verb)(*args, **named))

    def compared(self, name: str, call: Callable[[Any], Any]) -> Any:
        expected = answer_of(call, self.model)
        for side in self.sides:
            found = answer_of(call, side.store)
            assert comparable(found) == comparable(expected), (
                f"{name}: {side.name} answers {found!r}, the model {expected!r}"
            )
        if name == "ids_reserve":
            return expected  # no row changes, and it comes before every other call
        wanted = dump_model(self.model)
        for side in self.sides:
            apart = difference(wanted, side.reader.dump())
            assert not apart, f"after {name} {side.name} (+) differs from the model (-):\n{apart}"
        return expected

    def counts_are_right(self) -> None:
        """Counts and lists by state are those of the model's jobs, before and after changes are added up. That does not
        change the figures."""
        jobs = self.model.job.values()
        wanted = Counter((job.tenant, job.queue, job.state) for job in jobs)
        before = None
        for _ in range(2):
            assert {one[:3]: one[3] for one in map(astuple, self.looked_at("counts"))} == wanted
            figures = self.looked_at("figures", from_micros(self.model.clock) - timedelta(days=1))
            assert before in (None, figures), f"figures were {before}, and are {figures} when moves are added up"
            before = figures
            for side in self.sides:
                side.store.counts_fold(2)
        for state in JOB.states:
            assert self.looked_at("job_count", JobFilter(state)) == sum(job.state == state for job in jobs)

    def looked_at(self, verb: str, *args: Any) -> Any:
        """What every database says to a question; it must be the same."""
        said = [answer_of(lambda store: getattr(store, verb)(*args), side.store) for side in self.sides]
        for side, answer in zip(self.sides, said, strict=True):
            assert comparable(answer) == comparable(said[0]), (
                f"{verb}{args}: {side.name} says {answer!r}, not {said[0]!r}"
            )
        return said[0]

    # -- naming things -----------------------------------------------------------------------------------------

    def job(self, place: int) -> Job | None:
        """The job at this place, running ones first; None behind the last."""
        jobs = sorted(self.model.job.values(), key=lambda job: (job.state != "running", job.id))
        return jobs[place] if place < len(jobs) else None

    def id_of(self, place: int) -> int:
        job = self.job(place)
        return NO_SUCH_ID + place if job is None else job.id

    def place_of(self, place: int) -> JobPlace | None:
        """Return where a pass over jobs continues; None for the first place, and if there is no such job."""
        job = self.job(place) if place else None
        return None if job is None else JobPlace(from_micros(job.created_at), job.id)

    def attempt_of(self, ref: tuple[int, int]) -> tuple[int, int]:
        place, distance = ref
        job = self.job(place)
        return self.id_of(place), max(0, (job.attempt if job else 1) + distance)

    def attempts_of(self, refs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """One attempt of a job in a call: which of several a batch takes first is not promised. Twice the same is."""
        one: dict[int, int] = {}
        return [(job_id, one.setdefault(job_id, attempt)) for job_id, attempt in map(self.attempt_of, refs)]

    def some_in(self, *states: str) -> bool:
        return any(job.state in states for job in self.model.job.values())

    def take_id(self) -> int:
        number: int = self.everywhere("ids_reserve", 1)
        return number

    def new_job(self, wish: dict[str, Any]) -> NewJob:
        """A job of the wish; with the id of one that is there, where the wish says so."""
        wish = dict(wish)
        again = wish.pop("again")
        old = None if again is None else self.job(again)
        now = from_micros(self.model.clock)
        for column in ("due_at", "expires_at"):
            seconds = wish.pop(column.replace("_at", "_in"))
            wish[column] = None if seconds is None else now + timedelta(seconds=seconds)
        wish["unique_pending"] &= wish["key"] is not None
        fingerprint = f"{wish['task']} {wish['payload']}"
        return NewJob(id=old.id if old else self.take_id(), nonce=1, fingerprint=fingerprint, **wish)

    @rule(step=st.deferred(lambda: st.one_of(ACTIONS)))
    def act(self, step: tuple[str, bool, dict[str, Any]]) -> None:
        name, held, arguments = step
        if held and not self.some_in("running"):
            self.claim_everything("w1", 30.0)
        getattr(self, name)(**arguments)

    # -- the way in --------------------------------------------------------------------------------------------

    @initialize(wishes=st.lists(some.new_jobs, min_size=2, max_size=4))
    def begin(self, wishes: list[dict[str, Any]]) -> None:
        """Some jobs that can be claimed at once, so that there is something to do."""
        plain = {"again": None, "due_in": None, "expires_in": None, "key": None, "group": None}
        self.everywhere("job_enqueue", [self.new_job(wish | plain) for wish in wishes])

    @action(wishes=st.lists(some.new_jobs, min_size=1, max_size=4))
    def enqueue(self, wishes: list[dict[str, Any]]) -> None:
        if len(self.model.job) < JOBS_MAX:
            self.everywhere("job_enqueue", [self.new_job(wish) for wish in wishes])

    @action(wish=some.new_jobs, count=st.integers(2, 3))
    def enqueue_the_same_twice(self, wish: dict[str, Any], count: int) -> None:
        if len(self.model.job) < JOBS_MAX:
            self.everywhere("job_enqueue", [self.new_job(wish)] * count)

    # -- the holder's verbs ------------------------------------------------------------------------------------

    @action(
        worker=st.sampled_from(some.WORKERS),
        limit=some.limits,
        lease=some.leases,
        tasks=some.subsets["tasks"],
        queues=some.subsets["queues"],
        tenants=some.subsets["tenants"],
        after_tenant=some.turns,
        versions=some.versions,
    )
    def claim(self, **asked: Any) -> None:
        lease_id = self.take_id()
        if self.everywhere("job_claim", lease_id=lease_id, **asked):
            self.leases.append(lease_id)

    @action(
        worker=st.sampled_from(some.WORKERS),
        limit=some.limits,
        lease=some.leases,
        tasks=some.subsets["tasks"],
        queues=some.subsets["queues"],
        tenants=some.subsets["tenants"],
        after_tenant=some.turns,
        versions=some.versions,
    )
    def claim_each(self, **asked: Any) -> None:
        lease_id = self.take_id()
        if self.everywhere("job_claim_each", (), lease_id=lease_id, **asked).jobs:
            self.leases.append(lease_id)

    @action(worker=st.sampled_from(some.WORKERS), lease=some.leases)
    def claim_everything(self, worker: str, lease: float) -> None:
        self.everywhere("job_promote", 100)
        self.claim(
            worker=worker,
            limit=100,
            lease=lease,
            tasks=some.TASKS,
            queues=None,
            tenants=None,
            after_tenant=None,
            versions=None,
        )

    @action(held=True, lease=st.integers(0, 4))
    def find(self, lease: int) -> None:
        self.everywhere("claim_find", self.lease_at(lease))

    @action(held=True, refs=st.lists(some.refs, min_size=1, max_size=3))
    def start(self, refs: list[tuple[int, int]]) -> None:
        self.everywhere("job_start", self.attempts_of(refs))

    @action(
        held=True,
        places=st.lists(st.integers(0, 4), max_size=3, unique=True),
        lease=some.leases,
        begun=st.dictionaries(some.places, some.begun),
    )
    def renew(self, places: list[int], lease: float, begun: dict[int, float]) -> None:
        told = {self.id_of(n): after for n, after in begun.items()}
        self.everywhere("lease_renew", [self.lease_at(n) for n in places], lease, told)

    @action(held=True, refs=st.lists(some.refs, max_size=3))
    def cancels(self, refs: list[tuple[int, int]]) -> None:
        self.everywhere("cancel_find", self.attempts_of(refs))

    def lease_at(self, place: int) -> int:
        return self.leases[-1 - place] if place < len(self.leases) else NO_SUCH_ID + place

    @action(held=True, wishes=st.lists(some.events, min_size=1, max_size=3))
    def append(self, wishes: list[dict[str, Any]]) -> None:
        self.everywhere("event_append", [self.new_event(**wish) for wish in wishes])

    def new_event(self, ref: tuple[int, int], note: bool, **words: Any) -> NewEvent:
        job_id, attempt = self.attempt_of(ref)
        return NewEvent(job_id=job_id, attempt=None if note else attempt, **words)

    @action(
        held=True, ref=some.refs, result=some.texts, wishes=st.lists(some.new_jobs, max_size=2), in_block=st.booleans()
    )
    def commit(self, ref: tuple[int, int], result: str | None, wishes: list[dict[str, Any]], in_block: bool) -> None:
        job_id, attempt = self.attempt_of(ref)
        room = len(self.model.job) < JOBS_MAX
        intents = tuple(self.new_job(wish) for wish in wishes) if room else ()
        item = Commit(job_id=job_id, attempt=attempt, result=result, intents=intents)
        if in_block:
            self.compared("a commit block", lambda side: through_block(side, item))
        else:
            self.everywhere("job_commit", item)

    @action(
        held=True,
        wishes=st.lists(st.tuples(some.refs, some.texts, st.none() | some.begun), min_size=1, max_size=3),
        worker=st.sampled_from(some.WORKERS),
    )
    def finish(self, wishes: list[tuple[tuple[int, int], str | None, float | None]], worker: str) -> None:
        attempts = self.attempts_of([wish[0] for wish in wishes])
        items = [Finish(*attempt, result, after) for attempt, (_, result, after) in zip(attempts, wishes, strict=True)]
        self.everywhere("job_finish", items, worker)

    @action(held=True, ref=some.refs, wish=some.events)
    def append_and_finish_together(self, ref: tuple[int, int], wish: dict[str, Any]) -> None:
        """Two verbs in one transaction: as a worker flushes its lines with the end."""
        line, end = self.new_event(**wish), Finish(*self.attempt_of(ref))

        def work(verbs: Verbs | WholeModel) -> list[Any]:
            return [verbs.event_append([line]), verbs.job_finish([end], "w1")]

        self.compared("together", lambda side: work(side) if isinstance(side, WholeModel) else side.together(work))

    @action(held=True, wishes=st.lists(some.aborts, min_size=1, max_size=3), worker=st.sampled_from(some.WORKERS))
    def abort(self, wishes: list[dict[str, Any]], worker: str) -> None:
        self.everywhere("job_abort", [self.new_abort(**wish) for wish in wishes], worker)

    def new_abort(self, ref: tuple[int, int], **words: Any) -> Abort:
        job_id, attempt = self.attempt_of(ref)
        return Abort(job_id=job_id, attempt=attempt, **words)

    @action(held=True, outcome=some.failures, started=st.booleans(), fatal=some.fatal)
    def all_fail(self, outcome: Outcome, started: bool, fatal: bool) -> None:
        """Everything that is running ends: the way to later attempts and to every state of rest."""
        held = [(job.id, job.attempt) for job in self.model.job.values() if job.state == "running"]
        if started:
            self.everywhere("job_start", held)
        ends = [Abort(job_id=job_id, attempt=attempt, outcome=outcome, fatal=fatal) for job_id, attempt in held]
        self.everywhere("job_abort", ends, "w1")

    @action(held=True)
    def all_workers_die(self) -> None:
        self.time_passes(31.0)
        self.everywhere("lease_reap", 100)

    # -- anyone's and the services' verbs ----------------------------------------------------------------------

    @action(
        verb=st.sampled_from(("job_cancel", "job_retry", "job_discard")),
        places=st.lists(some.places, min_size=1, max_size=3),
        actor=some.actors,
        reason=some.reasons,
    )
    def move(self, verb: str, places: list[int], actor: str, reason: str | None) -> None:
        self.everywhere(verb, [self.id_of(place) for place in places], actor, reason)

    @action(place=some.places, to_state=some.states, actor=some.actors)
    def force(self, place: int, to_state: str, actor: str) -> None:
        self.everywhere("job_force", self.id_of(place), to_state, actor, "it is so")

    @action(place=some.places, done=st.booleans(), actor=some.actors, result=some.texts)
    def settle(self, place: int, done: bool, actor: str, result: str | None) -> None:
        self.everywhere("effect_settle", self.id_of(place), done, actor, "looked", result)

    @action(held=True, ref=some.refs, evidence=st.sampled_from(("probe", "marker")))
    def begin_effect(self, ref: tuple[int, int], evidence: str) -> None:
        self.everywhere("effect_begin", *self.attempt_of(ref), evidence)

    @action(verb=st.sampled_from(("job_promote", "job_expire")), limit=some.limits)
    def serve(self, verb: str, limit: int) -> None:
        self.everywhere(verb, limit)

    @action(limit=some.limits, grace=st.sampled_from((None, 10.0, 60.0)))
    def reap(self, limit: int, grace: float | None) -> None:
        self.everywhere("lease_reap", limit, grace)

    @action(places=st.lists(some.places, min_size=1, max_size=3))
    def recover(self, places: list[int]) -> None:
        self.everywhere("job_recover", [self.id_of(place) for place in places])

    @action(ago=st.sampled_from((0.0, 1.0, 20.0)), after=st.integers(0, 5), limit=some.limits, actor=some.actors)
    def prune(self, ago: float, after: int, limit: int, actor: str) -> None:
        before = from_micros(self.model.clock) - timedelta(seconds=ago)
        self.everywhere("job_prune", before, self.place_of(after), limit, actor)
        self.everywhere("job_drop", sorted(self.model.job)[:1], before + timedelta(seconds=1), actor)
        self.everywhere("key_expire", 1000)
        self.everywhere("limit_close", "", 1)
        self.everywhere("limit_prune", "", 1000)
        self.everywhere("key_forget", ("", ""), 1000)

    @action(
        verb=st.sampled_from(("queue_pause", "queue_resume")), queue=st.sampled_from(some.QUEUES), reason=some.reasons
    )
    def door(self, verb: str, queue: str, reason: str | None) -> None:
        self.everywhere(verb, queue, "ana", reason)

    @action(seconds=some.steps)
    def time_passes(self, seconds: float) -> None:
        for side in self.sides:
            side.clock.advance(seconds)
        self.model.clock = to_micros(self.sides[0].clock.now(), field="now")

    # -- looking -----------------------------------------------------------------------------------------------

    @action(ago=st.sampled_from((0.0, 1.0, 12.0)))
    def look(self, ago: float) -> None:
        """Every question is answered alike; and what the views fold from the record is the state of the job."""
        at = from_micros(self.model.clock) - timedelta(seconds=ago)
        ids = [*self.model.job, NO_SUCH_ID]
        self.looked_at("job_get", ids)
        self.looked_at("job_list", JobSearch())
        for state in ("pending", "running", "quarantined", "cancelled"):
            self.looked_at("job_list", JobSearch(state=state), None, 2)
        self.looked_at("job_list", JobSearch(error="o"))
        self.looked_at("job_details", ids)
        self.looked_at("record_search", RecordSearch(actor="ana"), None, 5)
        for verb in ("counts", "now"):
            self.looked_at(verb)
        self.counts_are_right()
        self.looked_at("counts_as_of", at)
        for job_id in ids:
            self.looked_at("job_executions", job_id)
            self.looked_at("job_events", job_id)
            self.looked_at("transitions", "job", str(job_id))
            self.looked_at("state_as_of", "job", str(job_id), at)
            folded = self.looked_at("state_as_of", "job", str(job_id), from_micros(self.model.clock))
            row = self.model.job.get(job_id)
            assert folded == (row.state if row else None)
