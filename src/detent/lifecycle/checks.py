"""Checks of a lifecycle's declaration. The first fault is raised, with the part that is wrong.

A later check may rely on the earlier ones, so the order of `CHECKS` matters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from detent.errors import InvalidLifecycle

if TYPE_CHECKING:
    from detent.lifecycle.definition import Fold, Lifecycle, Transition

__all__ = ["CHECKS", "NAME_MAX", "Fault", "check", "reach"]

NAME_MAX = 48
"""Maximum length of a name: names become parts of trigger and constraint names, which PostgreSQL cuts at 63 bytes."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Fault(NamedTuple):
    """One contradiction: which part is wrong, what was found, what is allowed."""

    culprit: str
    found: str
    allowed: str


def check(lifecycle: Lifecycle) -> None:
    """Raise `InvalidLifecycle` for the first fault of a declaration."""
    for look in CHECKS:
        for fault in look(lifecycle):
            raise InvalidLifecycle(f"lifecycle {lifecycle.name!r}, {fault.culprit}", fault.found, fault.allowed)


def reach(start: Iterable[str], ways: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """Return every state that can be reached from `start`, itself included."""
    seen: set[str] = set()
    ahead = list(start)
    while ahead:
        state = ahead.pop()
        if state not in seen:
            seen.add(state)
            ahead.extend(ways.get(state, ()))
    return frozenset(seen)


def names(lifecycle: Lifecycle) -> Iterator[Fault]:
    """Names are identifiers, since they are used in SQL, in URLs and in diagrams."""
    given = [("name", lifecycle.name)]
    given += [(f"state {state!r}", state) for state in lifecycle.states]
    given += [(f"trigger of {_arrow(t)}", t.trigger) for t in lifecycle.transitions]
    given += [(f"trigger of fold {_path(fold)}", fold.trigger) for fold in lifecycle.folds]
    for culprit, name in given:
        if len(name) > NAME_MAX or not _NAME.fullmatch(name):
            yield Fault(culprit, repr(name), f"a-z first, then a-z, 0-9 and _, at most {NAME_MAX} characters")


def meanings(lifecycle: Lifecycle) -> Iterator[Fault]:
    """Every state and transition has a meaning, and every transition an actor."""
    given = [(f"meaning of state {state!r}", means) for state, means in lifecycle.states.items()]
    given += [(f"means of {_move(t)}", t.means) for t in lifecycle.transitions]
    given += [(f"actor of {_move(t)}", t.actor) for t in lifecycle.transitions]
    given += [(f"means of fold {_path(fold)}", fold.means) for fold in lifecycle.folds]
    for culprit, text in given:
        if not text.strip():
            yield Fault(culprit, repr(text), "a few words")


def version(lifecycle: Lifecycle) -> Iterator[Fault]:
    """Versions count from 1."""
    if lifecycle.version < 1:
        yield Fault("version", str(lifecycle.version), "1 or more")


def declared(lifecycle: Lifecycle) -> Iterator[Fault]:
    """Every state that is named is declared."""
    given = [("initial", lifecycle.initial)]
    given += [("final", state) for state in sorted(lifecycle.final)]
    given += [("rests", state) for state in sorted(lifecycle.rests)]
    given += [(_move(t), state) for t in lifecycle.transitions for state in (t.source, t.target)]
    given += [(f"fold {_path(fold)}", state) for fold in lifecycle.folds for state in fold.path]
    for culprit, state in given:
        if state not in lifecycle.states:
            yield Fault(culprit, f"state {state!r}, which is not declared", ", ".join(lifecycle.states) or "no state")


def moves(lifecycle: Lifecycle) -> Iterator[Fault]:
    """A transition changes the state, is declared once, and names a valid record."""
    seen: set[tuple[str, str, str]] = set()
    for t in lifecycle.transitions:
        if t.source == t.target:
            yield Fault(_move(t), "a move to the same state", "two different states: staying is always a no-op")
        if (t.source, t.target, t.trigger) in seen:
            yield Fault(_move(t), "declared twice", "each pair once for each trigger")
        if t.record not in ("execution", "log"):
            yield Fault(f"record of {_move(t)}", repr(t.record), "'execution' or 'log'")
        seen.add((t.source, t.target, t.trigger))


def finals(lifecycle: Lifecycle) -> Iterator[Fault]:
    """A final state has no transition."""
    for t in lifecycle.transitions:
        if t.source in lifecycle.final:
            yield Fault(f"final state {t.source!r}", f"{_move(t)}", "no transition from a final state")


def ways_out(lifecycle: Lifecycle) -> Iterator[Fault]:
    """A state that is neither final nor resting has a transition."""
    sources = {t.source for t in lifecycle.transitions}
    for state in lifecycle.states:
        if state not in sources and state not in lifecycle.rests:
            yield Fault(
                f"state {state!r}", "no transition from it", "a transition from it, or its name in final or rests"
            )


def reachable(lifecycle: Lifecycle) -> Iterator[Fault]:
    """Every state can be reached from the initial one."""
    met = reach([lifecycle.initial], _ways(lifecycle))
    for state in lifecycle.states:
        if state not in met:
            yield Fault(f"state {state!r}", f"no way to it from {lifecycle.initial!r}", "states that can be reached")


def traps(lifecycle: Lifecycle) -> Iterator[Fault]:
    """From every state a final or resting state can be reached."""
    ways = _ways(lifecycle)
    for state in lifecycle.states:
        if not reach([state], ways) & lifecycle.rests:
            yield Fault(f"state {state!r}", "a trap: no final or resting state can be reached", "a way to one of them")


def folds(lifecycle: Lifecycle) -> Iterator[Fault]:
    """A fold consists of declared transitions with record `execution`, and ends in another state. A folded transition
    is part of a fold."""
    ordinary = {(t.source, t.target) for t in lifecycle.transitions if t.record == "execution"}
    paths: set[tuple[str, ...]] = set()
    inside: set[tuple[str, str]] = set()
    for fold in lifecycle.folds:
        where = f"fold {_path(fold)}"
        if len(fold.path) < 3:
            yield Fault(where, f"{len(fold.path)} states", "3 or more: a single step is a transition")
        elif fold.path[0] == fold.path[-1]:
            yield Fault(where, "the same state at both ends", "ends that differ: the row must show the move")
        if fold.path in paths:
            yield Fault(where, "declared twice", "each path once")
        for source, target in fold.steps:
            if (source, target) not in ordinary:
                yield Fault(where, f"step {source} → {target}", "declared transitions with record 'execution'")
        paths.add(fold.path)
        inside.update(fold.steps[1:])
    for t in lifecycle.transitions:
        if t.folded and (t.record != "execution" or (t.source, t.target) not in inside):
            yield Fault(_move(t), "folded, but no later step of a fold", "folded only where a fold passes")


CHECKS: tuple[Callable[[Lifecycle], Iterator[Fault]], ...] = (
    names,
    meanings,
    version,
    declared,
    moves,
    finals,
    ways_out,
    reachable,
    traps,
    folds,
)


def _ways(lifecycle: Lifecycle) -> dict[str, list[str]]:
    ways: dict[str, list[str]] = {}
    for t in lifecycle.transitions:
        ways.setdefault(t.source, []).append(t.target)
    return ways


def _arrow(transition: Transition) -> str:
    return f"{transition.source} → {transition.target}"


def _move(transition: Transition) -> str:
    return f"transition {_arrow(transition)} ({transition.trigger})"


def _path(fold: Fold) -> str:
    return " → ".join(fold.path)
