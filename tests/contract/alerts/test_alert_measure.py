"""alert_measure: what several policies look at, in one trip."""

from __future__ import annotations

from detent.model.alert_records import MEASURES, Asked, Figure
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import rested
from tests.contract.jobs.sample_jobs import enqueue


def test_each_question_has_the_answer_it_has_alone(store: Store, clock: StoreClock) -> None:
    """M2: in the order they were asked, also the same one twice, and what has no answer."""
    store.alert_tally(1000)
    clock.advance(1)
    rested(store, succeeded=2, failed=1)
    rested(store, failed=2, queue="mail")
    store.alert_tally(1000)
    enqueue(store, queue="later")
    clock.advance(5)
    asked: list[Asked] = [(measure, "whole", 300.0) for measure in MEASURES]
    asked += [("dead_letters", "queue", 0), ("success_rate", "queue", 300.5), ("dead_letters", "queue", 0)]
    answers = store.alert_measure(asked)
    assert answers == [store.alert_figures(*one) for one in asked]
    assert answers[-1] == [Figure("default", 1.0, 1), Figure("mail", 2.0, 2)]
    assert [] in answers


def test_nothing_was_asked(store: Store) -> None:
    assert store.alert_measure([]) == []
