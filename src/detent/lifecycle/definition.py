"""Lifecycles: states, transitions and folds, as immutable data.

The validation here, the guards of the database, the diagrams, the documentation and the exhaustive tests all follow
from this declaration. A declaration that contradicts itself is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

from detent.errors import InvalidTransition, UnknownState
from detent.lifecycle.checks import check

__all__ = ["Fold", "Lifecycle", "Pair", "Transition"]

Pair: TypeAlias = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Transition:
    """One declared move: from `source` to `target`, by a `trigger`, made by an `actor`; `means` says when.

    `record` is where the move is recorded: "execution" for ordinary moves, which follow from the attempt that started
    or ended; "log" for explicit moves, which need a line in the transition log. A `folded` transition only happens as a
    step of a fold.
    """

    source: str
    target: str
    trigger: str
    actor: str
    means: str
    record: Literal["execution", "log"] = "log"
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """Several transitions made in one UPDATE; the record shows each of them."""

    path: tuple[str, ...]
    trigger: str
    means: str

    @property
    def pair(self) -> Pair:
        """The first and the last state: the change that the row shows."""
        return self.path[0], self.path[-1]

    @property
    def steps(self) -> tuple[Pair, ...]:
        """Each step: the changes that the record shows."""
        return tuple(zip(self.path, self.path[1:], strict=False))


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The states of one kind of entity, and every allowed move between them.

    `states` maps each name to its meaning. A `final` state has no transition out of it. In a state of `rests`, nothing
    more happens by itself, and waiting ends; final states always rest. Raise `version` with every change.
    `InvalidLifecycle` if the declaration contradicts itself.
    """

    name: str
    _: KW_ONLY
    states: Mapping[str, str] = field(hash=False)
    initial: str
    transitions: tuple[Transition, ...]
    final: frozenset[str] = frozenset()
    rests: frozenset[str] = frozenset()
    folds: tuple[Fold, ...] = ()
    version: int = 1
    means: str = ""

    def __post_init__(self) -> None:
        settled = {
            "states": MappingProxyType(dict(self.states)),
            "transitions": tuple(self.transitions),
            "final": frozenset(self.final),
            "rests": frozenset(self.rests) | frozenset(self.final),
            "folds": tuple(self.folds),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        check(self)

    @property
    def triggers(self) -> tuple[str, ...]:
        """Names of the triggers, each once, in declared order."""
        return _once(transition.trigger for transition in self.transitions)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Declared moves as (source, target), each once, in declared order."""
        return _once((transition.source, transition.target) for transition in self.transitions)

    def allowed(self, state: str) -> tuple[str, ...]:
        """Return the states to which `state` may move, in declared order; none for a final or an unknown state."""
        return tuple(target for source, target in self.pairs if source == state)

    def between(self, source: str, target: str) -> tuple[Transition, ...]:
        """Return every transition between two states; a move may have several triggers."""
        return tuple(t for t in self.transitions if (t.source, t.target) == (source, target))

    def find(self, source: str, target: str) -> Transition | None:
        """Return the first declared transition between two states, or None."""
        return next(iter(self.between(source, target)), None)

    def by_trigger(self, source: str, trigger: str) -> tuple[Transition, ...]:
        """Return every transition of a trigger from a state. There may be several; then the caller names the target."""
        return tuple(t for t in self.transitions if (t.source, t.trigger) == (source, trigger))

    def ordinary_pairs(self) -> tuple[Pair, ...]:
        """Return the moves that a row may make without a line in the log: single steps, then folds."""
        single = [(t.source, t.target) for t in self.transitions if t.record == "execution" and not t.folded]
        return _once([*single, *(fold.pair for fold in self.folds)])

    def logged_pairs(self) -> tuple[Pair, ...]:
        """Return the moves that need a line in the log, in declared order."""
        return _once((t.source, t.target) for t in self.transitions if t.record == "log")

    def validate(self, entity_id: str | int, source: str, target: str) -> Transition | None:
        """Return the transition from `source` to `target`; None if they are the same.

        `InvalidTransition` if the move is not declared, `UnknownState` if this version does not know the source state.
        """
        if source not in self.states:
            raise UnknownState(
                database="-",
                detail="nothing was changed; a newer version may have written it",
                entity=self.name,
                entity_id=str(entity_id),
                state=source,
                known=tuple(self.states),
            )
        if source == target:
            return None
        transition = self.find(source, target)
        if transition is None:
            raise InvalidTransition(self.name, str(entity_id), source, target, self.allowed(source))
        return transition


def _once(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
