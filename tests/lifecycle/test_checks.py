"""A declaration that contradicts itself is refused, and the refusal names the culprit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.errors import InvalidLifecycle
from detent.lifecycle.checks import NAME_MAX
from detent.lifecycle.definition import Fold, Lifecycle, Transition
from tests.lifecycle.orders import GOOD, PAID_SENT, PLACED_DROPPED, PLACED_PAID, STATES, folded, order

ALL = GOOD["transitions"]
LOST = {**STATES, "lost": "Nobody knows where it is."}
TO_LOST = Transition("paid", "lost", "lose", "carrier", "It fell off.")
TO_FOUND = Transition("found", "lost", "lose", "carrier", "It fell off again.")
BY_HEARSAY = replace(PLACED_DROPPED, record=cast(Any, "none"))
TO_AND_FRO = Transition("lost", "found", "find", "carrier", "It was found.")

SPOILED: list[tuple[str, dict[str, Any], str, str]] = [
    ("name", {"name": "Order"}, "name", "'Order'"),
    ("empty name", {"name": ""}, "name", "''"),
    ("name with newline", {"name": "order\n"}, "name", "'order\\n'"),
    ("long name", {"name": "o" * (NAME_MAX + 1)}, "name", "oooo"),
    ("state name", {"states": {**STATES, "on its way": "Moving."}}, "state 'on its way'", "'on its way'"),
    ("trigger", {"transitions": (*ALL[:2], replace(PLACED_DROPPED, trigger="x;"))}, "placed → dropped", "'x;'"),
    ("state without meaning", {"states": {**STATES, "paid": " "}}, "meaning of state 'paid'", "' '"),
    ("move without meaning", {"transitions": (*ALL[:2], replace(PLACED_DROPPED, means=""))}, "means of", "''"),
    ("move without actor", {"transitions": (*ALL[:2], replace(PLACED_DROPPED, actor=""))}, "actor of", "''"),
    ("version", {"version": 0}, "version", "0"),
    ("initial", {"initial": "new"}, "initial", "state 'new'"),
    ("final", {"final": frozenset({"sent", "dropped", "gone"})}, "final", "state 'gone'"),
    ("rests", {"rests": frozenset({"asleep"})}, "rests", "state 'asleep'"),
    ("no states", {"states": {}}, "initial", "state 'placed'"),
    ("source", {"transitions": (*ALL, replace(PAID_SENT, source="owed"))}, "owed → sent (send)", "state 'owed'"),
    ("target", {"transitions": (*ALL, replace(PAID_SENT, target="shot"))}, "paid → shot (send)", "state 'shot'"),
    ("self loop", {"transitions": (*ALL, replace(PAID_SENT, target="paid"))}, "paid → paid (send)", "same state"),
    ("duplicate", {"transitions": (*ALL, PLACED_PAID)}, "placed → paid (pay)", "declared twice"),
    ("record", {"transitions": (*ALL[:2], BY_HEARSAY)}, "record of", "'none'"),
    ("way out of final", {"final": frozenset({"paid", "sent", "dropped"})}, "final state 'paid'", "paid → sent (send)"),
    ("no way out", {"final": frozenset({"sent"})}, "state 'dropped'", "no transition from it"),
    ("unreachable", {"transitions": (*ALL, replace(TO_LOST, source="lost", target="sent")), "states": LOST},
     "state 'lost'", "no way to it from 'placed'"),
    ("trap", {"transitions": (*ALL, TO_LOST, TO_AND_FRO, TO_FOUND), "states": {**LOST, "found": "Seen again."}},
     "state 'lost'", "a trap"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "culprit", "found"), [s[1:] for s in SPOILED], ids=[s[0] for s in SPOILED])
def test_a_contradiction_is_refused_with_its_culprit(parts: dict[str, Any], culprit: str, found: str) -> None:
    """L1: one initial state, all reachable, no traps, finals final; checked when it is declared."""
    with pytest.raises(InvalidLifecycle) as caught:
        order(**parts)
    assert culprit in caught.value.field
    assert found in caught.value.found
    assert caught.value.allowed


def test_the_unspoiled_declarations_are_taken() -> None:
    """What the refusals of this module differ from."""
    assert order().name == "order"
    assert folded().ordinary_pairs() == (("a", "b"), ("b", "a"), ("a", "c"))


def test_a_resting_state_needs_no_way_out_and_springs_the_trap() -> None:
    """L1: waiting may end where nothing is final."""
    lifecycle = order(
        states={**LOST, "found": "Seen again."},
        transitions=(*ALL, TO_LOST, TO_AND_FRO, TO_FOUND),
        rests=frozenset({"found"}),
    )
    assert lifecycle.allowed("lost") == ("found",)


FOLDS: list[tuple[str, tuple[Fold, ...], str]] = [
    ("short", (Fold(("a", "b"), "rush", "One step."),), "2 states"),
    ("empty", (Fold((), "rush", "No step."),), "0 states"),
    ("undeclared step", (Fold(("a", "c", "d"), "rush", "Over b."),), "step a → c"),
    ("logged step", (Fold(("b", "c", "d"), "rush", "Past the log."),), "step c → d"),
    ("undeclared state", (Fold(("a", "b", "x"), "rush", "Away."),), "state 'x'"),
    ("round trip", (Fold(("a", "b", "a"), "rush", "There and back."),), "same state at both ends"),
    ("twice", (Fold(("a", "b", "c"), "rush", "Once."), Fold(("a", "b", "c"), "hurry", "Twice.")), "declared twice"),
    ("trigger", (Fold(("a", "b", "c"), "Rush", "Loud."),), "'Rush'"),
    ("meaning", (Fold(("a", "b", "c"), "rush", ""),), "''"),
]


@pytest.mark.parametrize(("folds", "found"), [f[1:] for f in FOLDS], ids=[f[0] for f in FOLDS])
def test_a_fold_takes_declared_steps_of_the_ordinary_path(folds: tuple[Fold, ...], found: str) -> None:
    """L1, L2: a fold opens no way that its steps do not have, and none past the log."""
    with pytest.raises(InvalidLifecycle) as caught:
        folded(*folds)
    assert "fold" in caught.value.field
    assert found in caught.value.found


def test_a_folded_transition_is_part_of_a_fold() -> None:
    lonely = Transition("a", "b", "go", "machine", "It goes.", "execution", folded=True)
    end = Transition("b", "c", "stop", "machine", "It stops.", "execution")
    with pytest.raises(InvalidLifecycle) as caught:
        folded(transitions=(lonely, end), folds=(), states=dict.fromkeys("abc", "A place."), final=frozenset("c"))
    assert "a → b (go)" in caught.value.field
    assert "no later step of a fold" in caught.value.found


STATE = st.sampled_from("abcd")


@given(
    pairs=st.sets(st.tuples(STATE, STATE).filter(lambda pair: pair[0] != pair[1])),
    final=st.frozensets(STATE),
    rests=st.frozensets(STATE),
)
def test_the_checks_agree_with_the_closure_of_the_moves(
    pairs: set[tuple[str, str]], final: frozenset[str], rests: frozenset[str]
) -> None:
    """L1: over any graph of four states, declared if and only if its transitive closure has no fault."""
    closure = {(state, state) for state in "abcd"} | pairs
    for middle in "abcd":
        closure |= {(s, t) for s in "abcd" for t in "abcd" if {(s, middle), (middle, t)} <= closure}
    sound = (
        all(("a", state) in closure for state in "abcd")
        and all(any((state, rest) in closure for rest in final | rests) for state in "abcd")
        and not any(source in final for source, _ in pairs)
    )
    try:
        Lifecycle(
            "graph",
            states={state: f"State {state}." for state in "abcd"},
            initial="a",
            final=final,
            rests=rests,
            transitions=tuple(Transition(s, t, "go", "somebody", "It is time.") for s, t in sorted(pairs)),
        )
    except InvalidLifecycle:
        assert not sound
    else:
        assert sound
