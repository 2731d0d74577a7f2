"""The declaration answers questions about itself, and the validator agrees with it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.errors import InvalidTransition, UnknownState
from detent.lifecycle.definition import Lifecycle, Transition
from tests.lifecycle.orders import PAID_SENT, PLACED_DROPPED, PLACED_PAID, order


def test_a_users_own_lifecycle_answers_from_its_declaration() -> None:
    """L1, L6: states, triggers and moves are data that anyone can read."""
    lifecycle = order()
    assert tuple(lifecycle.states) == ("placed", "paid", "sent", "dropped")
    assert lifecycle.triggers == ("pay", "send", "drop")
    assert lifecycle.pairs == (("placed", "paid"), ("paid", "sent"), ("placed", "dropped"))
    assert lifecycle.allowed("placed") == ("paid", "dropped")
    assert lifecycle.allowed("sent") == ()
    assert lifecycle.find("placed", "paid") is PLACED_PAID
    assert lifecycle.find("paid", "placed") is None
    assert lifecycle.by_trigger("placed", "drop") == (PLACED_DROPPED,)
    assert lifecycle.by_trigger("paid", "drop") == ()


def test_what_a_user_declares_is_logged() -> None:
    """L6: without an engine behind it, every move of a user's entity needs its line in the log."""
    lifecycle = order()
    assert lifecycle.ordinary_pairs() == ()
    assert lifecycle.logged_pairs() == lifecycle.pairs


def test_final_states_rest() -> None:
    assert order().rests == {"sent", "dropped"}
    assert order(rests=frozenset({"paid"})).rests == {"sent", "dropped", "paid"}


def test_a_pair_may_have_several_triggers() -> None:
    lost = Transition("placed", "dropped", "lose", "warehouse", "There is none left.")
    lifecycle = order(transitions=(PLACED_PAID, PAID_SENT, PLACED_DROPPED, lost))
    assert lifecycle.between("placed", "dropped") == (PLACED_DROPPED, lost)
    assert lifecycle.find("placed", "dropped") is PLACED_DROPPED
    assert lifecycle.allowed("placed") == ("paid", "dropped")


def test_a_declared_move_is_valid() -> None:
    assert order().validate(7, "placed", "paid") is PLACED_PAID


@pytest.mark.parametrize("state", ["placed", "paid", "sent", "dropped"])
def test_a_move_to_the_same_state_is_a_no_op(state: str) -> None:
    """L3: no transition is taken, so there is nothing to record."""
    assert order().validate("o-1", state, state) is None


def test_an_undeclared_move_says_what_would_have_been_allowed() -> None:
    """L2: the refusal names the entity, from, to and what is allowed."""
    with pytest.raises(InvalidTransition) as caught:
        order().validate(7, "placed", "sent")
    refusal = caught.value
    assert (refusal.entity, refusal.entity_id) == ("order", "7")
    assert (refusal.from_state, refusal.to_state) == ("placed", "sent")
    assert refusal.allowed == ("paid", "dropped")
    assert str(refusal) == "order 7 cannot go from placed to sent; allowed from placed: paid, dropped"


def test_no_move_leaves_a_final_state() -> None:
    with pytest.raises(InvalidTransition, match="it is final"):
        order().validate(7, "sent", "placed")


@pytest.mark.parametrize("target", ["paid", "returned"])
def test_an_unknown_state_is_reported_not_guessed(target: str) -> None:
    """L8: a row written by a newer version is reported as it is, even for a move to the very same state."""
    with pytest.raises(UnknownState) as caught:
        order().validate(7, "returned", target)
    assert (caught.value.entity, caught.value.entity_id, caught.value.state) == ("order", "7", "returned")
    assert caught.value.known == ("placed", "paid", "sent", "dropped")


def test_an_unknown_target_is_an_undeclared_move() -> None:
    with pytest.raises(InvalidTransition, match="cannot go from placed to returned"):
        order().validate(7, "placed", "returned")


def test_a_new_version_adds_states_and_keeps_the_old_moves() -> None:
    """L8: what the old version allowed, the new one allows."""
    old = order()
    back = Transition("sent", "returned", "send_back", "customer", "It did not fit.")
    new = replace(
        old,
        states={**old.states, "returned": "Back in the warehouse."},
        transitions=(*old.transitions, back),
        final=frozenset({"returned", "dropped"}),
        rests=frozenset({"sent"}),
        version=2,
    )
    assert set(old.pairs) < set(new.pairs)
    assert new.validate(7, "sent", "returned") is back
    assert "sent" in new.rests


def test_a_declaration_cannot_be_changed_afterwards() -> None:
    """L1: nobody widens a lifecycle after it was checked, not even through what it was built from."""
    states = {"on": "Lit.", "off": "Dark."}
    flip = Transition("on", "off", "flip", "hand", "Somebody flips it.")
    lamp = Lifecycle("lamp", states=states, initial="on", final=frozenset({"off"}), transitions=(flip,))
    states["broken"] = "In pieces."
    assert "broken" not in lamp.states
    with pytest.raises(TypeError):
        lamp.states["broken"] = "In pieces."  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        lamp.initial = "off"  # type: ignore[misc]
    assert lamp == replace(lamp)
    assert hash(lamp) == hash(replace(lamp))


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


@st.composite
def lifecycles(draw: st.DrawFn) -> Lifecycle:
    """Any moves over a tree that makes every state reachable; all states rest, so there are no traps."""
    states = draw(st.lists(NAMES, min_size=1, unique=True))
    tree = [(draw(st.sampled_from(states[:i])), states[i]) for i in range(1, len(states))]
    others = draw(st.lists(st.tuples(st.sampled_from(states), st.sampled_from(states)), max_size=12))
    moves = dict.fromkeys((s, t, draw(NAMES)) for s, t in [*tree, *others] if s != t)
    return Lifecycle(
        "thing",
        states={state: f"State {state}." for state in states},
        initial=states[0],
        final=frozenset(states) - {source for source, _, _ in moves},
        rests=frozenset(states),
        transitions=tuple(Transition(s, t, trigger, "somebody", "It is time.") for s, t, trigger in moves),
    )


@given(lifecycle=lifecycles(), entity_id=st.integers())
def test_the_validator_agrees_with_the_declaration(lifecycle: Lifecycle, entity_id: int) -> None:
    """L1, L2, L3: over any lifecycle, a move is let through if and only if it is declared or none."""
    declared = {(t.source, t.target) for t in lifecycle.transitions}
    for source in lifecycle.states:
        for target in lifecycle.states:
            if source == target:
                assert lifecycle.validate(entity_id, source, target) is None
            elif (source, target) in declared:
                transition = lifecycle.validate(entity_id, source, target)
                assert transition is not None
                assert (transition.source, transition.target) == (source, target)
            else:
                with pytest.raises(InvalidTransition) as caught:
                    lifecycle.validate(entity_id, source, target)
                assert {(source, allowed) for allowed in caught.value.allowed} == {
                    p for p in declared if p[0] == source
                }
