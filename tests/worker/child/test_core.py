"""The pure core under every order of events, and the few rules that a number can state."""

from __future__ import annotations

from collections import Counter
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from detent.model.records import Claimed
from detent.worker.child.core import ClaimRequest, Core, HeldJob

QUEUES = ("a", "b", "c")
RESERVE_MAX = 8


def job(job_id: int, queue: str = "a", attempt: int = 1) -> Claimed:
    return Claimed(job_id, attempt, "task", "{}", "", queue, None, None, None, None, 0, 4)


def filled(slots: int, jobs: int) -> Core:
    core = Core(slots=slots, reserve_max=RESERVE_MAX)
    core.add_claimed(1, [job(number) for number in range(jobs)])
    return core


def begin_all(core: Core, now: float = 0.0) -> list[HeldJob]:
    begun = []
    while some := core.begin(now, 3):
        begun += some
    return begun


class Shell(RuleBasedStateMachine):
    """Plays the shell: claims what is wanted, begins, ends, loses leases, stops, in any order."""

    @initialize(
        slots=st.integers(1, 4),
        caps=st.dictionaries(st.sampled_from(QUEUES), st.integers(1, 3), max_size=3),
        all_queues=st.booleans(),
    )
    def start(self, slots: int, caps: dict[str, int], all_queues: bool) -> None:
        queues = None if all_queues and not caps else QUEUES
        self.core = Core(slots=slots, reserve_max=RESERVE_MAX, queues=queues, queue_slots=caps)
        self.now = 0.0
        self.numbers = count(1)
        self.begun: list[HeldJob] = []
        self.claimed: dict[int, set[HeldJob]] = {}
        self.ends: Counter[HeldJob] = Counter()
        self.leases_done: Counter[int] = Counter()
        self.stopped = False

    @rule(seconds=st.floats(0, 0.5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        wants = self.core.next_claims(self.now)
        assert not (self.stopped and wants)
        for want in wants:
            assert 1 <= want.limit <= self.core.slots + RESERVE_MAX - len(self.core.held)
        if not wants:
            return
        want = data.draw(st.sampled_from(wants))
        queue = data.draw(st.sampled_from(want.queues or QUEUES))
        self._take([job(next(self.numbers), queue) for _ in range(data.draw(st.integers(1, want.limit)))])

    def _take(self, jobs: list[Claimed]) -> None:
        before = set(self.core.held)
        lease = next(self.numbers)
        self.core.add_claimed(lease, jobs)
        self.claimed[lease] = self.core.held - before

    @precondition(lambda self: not self.stopped and self.begun)
    @rule(data=st.data())
    def claim_again_what_is_still_in_hand(self, data: st.DataObject) -> None:
        earlier = data.draw(st.sampled_from(self.begun)).claimed
        if earlier.queue not in self.core.queue_slots:
            self._take([job(earlier.job_id, earlier.queue, earlier.attempt + 1)])

    @rule(most=st.integers(1, 3))
    def begin(self, most: int) -> None:
        begun = self.core.begin(self.now, most)
        assert len(begun) <= most
        for held in begun:
            assert held.begun_at == self.now
            assert held not in self.begun
            assert not self.stopped
            self.begun.append(held)

    @precondition(lambda self: self.begun)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self._end(data.draw(st.sampled_from(self.begun)))

    @precondition(lambda self: self.claimed)
    @rule(data=st.data())
    def lose_a_lease(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(sorted(self.claimed)))
        for held in list(self.core.held):
            if held.lease_id == lease:
                self._end(held)

    @rule()
    def hand_back_the_surplus(self) -> None:
        for held in self.core.take_surplus():
            assert held.begun_at is None
            self._end(held)

    @precondition(lambda self: not self.stopped)
    @rule(chance=st.integers(0, 9))
    def stop(self, chance: int) -> None:
        if chance == 0:
            self.stopped = True
            for held in self.core.stop():
                assert held.begun_at is None
                self._end(held)

    def _end(self, held: HeldJob) -> None:
        was_held = held in self.core.held
        self.leases_done.update(self.core.end([held]))
        self.ends[held] += was_held

    @invariant()
    def slots_and_caps_hold(self) -> None:
        in_hand = [held for held in self.begun if held in self.core.held]
        assert self.core.running == len(in_hand) <= self.core.slots
        by_queue = Counter(held.claimed.queue for held in self.core.held)
        assert all(by_queue[queue] <= cap for queue, cap in self.core.queue_slots.items())

    @invariant()
    def every_job_ends_once_and_every_lease_with_its_last(self) -> None:
        for lease, jobs in self.claimed.items():
            assert all(self.ends[held] == (held not in self.core.held) for held in jobs)
            assert self.leases_done[lease] == jobs.isdisjoint(self.core.held)

    def teardown(self) -> None:
        for held in [*self.core.stop(), *self.core.held]:
            self._end(held)
        assert self.core.is_empty
        assert self.core.running == 0
        self.every_job_ends_once_and_every_lease_with_its_last()


TestShell = Shell.TestCase
TestShell.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_the_first_claim_asks_for_as_many_as_there_are_slots() -> None:
    core = Core(slots=4, reserve_max=100)
    assert core.next_claims(0.0) == [ClaimRequest(None, 4)]
    core.add_claimed(1, [job(1), job(2)])
    assert core.next_claims(0.01) == [ClaimRequest(None, 2)]


def test_slow_jobs_make_no_reserve() -> None:
    core = filled(slots=2, jobs=2)
    begin_all(core)
    assert [core.next_claims(second) for second in (0.0, 1.0, 10.0)] == [[], [], []]


def test_quick_jobs_make_a_reserve_of_a_tenth_of_a_second_within_its_bound() -> None:
    core = Core(slots=1, reserve_max=50)
    numbers = count(1)
    for step in range(40):
        (want,) = core.next_claims(step * 0.05)
        core.add_claimed(step, [job(next(numbers)) for _ in range(20)])
        while begun := core.begin(step * 0.05, 3):
            core.end(begun)
    assert want == ClaimRequest(None, 1 + 40)  # 400 a second
    core.reserve_max = 10
    assert core.next_claims(2.0) == [ClaimRequest(None, 1 + 10)]


def test_the_reserve_grows_by_steps_as_soon_as_all_that_was_in_hand_has_ended() -> None:
    core = Core(slots=16, reserve_max=3000)
    assert core.next_claims(0.0) == [ClaimRequest(None, 16)]
    core.add_claimed(1, [job(number) for number in range(16)])
    core.end(core.begin(0.005, 16)[:15])
    assert core.next_claims(0.0051) == [ClaimRequest(None, 15)]
    core.end(list(core.held))
    assert core.next_claims(0.0052) == [ClaimRequest(None, 16 + 8 * 16)]
    core.add_claimed(2, [job(number) for number in range(144)])
    while begun := core.begin(0.0053, 16):
        core.end(begun)
    assert core.next_claims(0.0054) == [ClaimRequest(None, 16 + 8 * 144)]


def test_a_few_quick_jobs_make_no_reserve_of_what_may_be_slow() -> None:
    """W2: others could begin it at once."""
    core = Core(slots=1, reserve_max=3000)
    for number in range(15):
        assert core.next_claims(number * 0.0001) == [ClaimRequest(None, 1)]
        core.add_claimed(number, [job(number)])
        core.end(core.begin(number * 0.0001, 1))
    assert core.next_claims(0.0016) == [ClaimRequest(None, 1)]


def test_one_claim_has_a_bound_whatever_there_is_room_for() -> None:
    core = Core(slots=4000, reserve_max=RESERVE_MAX, queues=("a", "b"), queue_slots={"b": 3000})
    assert sorted(want.limit for want in core.next_claims(0.0)) == [2000, 2000]


def test_what_was_claimed_ahead_is_handed_back_when_jobs_turn_out_slow() -> None:
    core = filled(slots=2, jobs=10)
    begin_all(core)
    assert [held.job_id for held in core.take_surplus()] == [4, 5, 6, 7, 8, 9]
    assert core.take_surplus() == []
    assert core.stop() != []


def test_a_queue_at_its_cap_is_not_asked_for_and_the_others_are() -> None:
    core = Core(slots=8, reserve_max=0, queues=("a", "b"), queue_slots={"b": 2})
    core.add_claimed(1, [job(1, "b"), job(2, "b")])
    assert core.next_claims(0.0) == [ClaimRequest(("a",), 6)]


def test_queues_take_turns_to_be_asked_first() -> None:
    core = Core(slots=8, reserve_max=0, queues=("a", "b", "c"), queue_slots={"b": 2, "c": 3})
    first = [core.next_claims(0.0)[0].queues for _ in range(3)]
    assert sorted(map(str, first)) == ["('a',)", "('b',)", "('c',)"]


def test_an_attempt_that_lost_its_lease_does_not_end_the_next_one_of_the_same_job() -> None:
    """The same child may claim a job again before it hears that its lease was lost."""
    core = filled(slots=2, jobs=1)
    (zombie,) = begin_all(core)
    core.add_claimed(2, [job(0, attempt=2)])
    (fresh,) = begin_all(core)
    assert core.end([zombie]) == [1]
    assert list(core.held) == [fresh]
    assert core.running == 1
    assert core.end([zombie, fresh]) == [2]
