"""Lifecycles as Mermaid, Markdown and SVG, generated from their declaration.

`python -m detent.lifecycle.diagrams [FILE]` writes the page of all lifecycles, by default `docs/lifecycles.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from detent.lifecycle.definition import Fold, Lifecycle, Transition
from detent.lifecycle.library import LIBRARY
from detent.lifecycle.svg_drawing import svg

__all__ = ["PAGE", "markdown", "mermaid", "page", "svg"]

PAGE = Path("docs/lifecycles.md")

# Keywords of Mermaid at the start of a line.
_RESERVED = frozenset({"class", "default", "direction", "end", "note", "scale", "state", "style", "title"})

_HEADING = """\
# Lifecycles

Everything that can happen to a job, an execution, a run and its parts. A transition that is not in these tables is
refused, in Python and by the database itself. A transition to the current state is a no-op.

This page is written by `python -m detent.lifecycle.diagrams` from `src/detent/lifecycle/library.py`.
"""


def mermaid(lifecycle: Lifecycle) -> str:
    """Return a Mermaid state diagram with every state and transition; the triggers of a pair share an arrow."""
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{state}" as {_node(state)}' for state in lifecycle.states if _node(state) != state]
    lines.append(f"    [*] --> {_node(lifecycle.initial)}")
    for source, target in lifecycle.pairs:
        triggers = ", ".join(t.trigger for t in lifecycle.between(source, target))
        lines.append(f"    {_node(source)} --> {_node(target)}: {triggers}")
    lines += [f"    {_node(state)} --> [*]" for state in lifecycle.states if state in lifecycle.final]
    return "\n".join(lines) + "\n"


def markdown(lifecycle: Lifecycle) -> str:
    """Return the tables of states, transitions and folds as Markdown."""
    parts = [
        _table(("State", "", "Meaning"), ((f"`{s}`", _kind(lifecycle, s), m) for s, m in lifecycle.states.items())),
        _table(("From", "To", "Trigger", "Actor", "When", "Record"), map(_move, lifecycle.transitions)),
    ]
    if lifecycle.folds:
        parts.append("Folds: several transitions made in one write, each of them on record:\n")
        parts.append(_table(("Steps", "Trigger", "When"), map(_fold, lifecycle.folds)))
    return "\n".join(parts)


def page(lifecycles: Iterable[Lifecycle]) -> str:
    """Return the whole page: for each lifecycle its meaning, its diagram and its tables."""
    parts = [_HEADING]
    for lifecycle in lifecycles:
        parts.append(f"## {lifecycle.name}\n")
        if lifecycle.means:
            parts.append(f"{lifecycle.means}\n")
        parts.append(f"```mermaid\n{mermaid(lifecycle)}```\n")
        parts.append(markdown(lifecycle))
    return "\n".join(parts)


def _node(state: str) -> str:
    """Return the name of a state in Mermaid. Names of states have no capital letters, so a prefixed one is unique."""
    return f"S_{state}" if state in _RESERVED else state


def _kind(lifecycle: Lifecycle, state: str) -> str:
    kinds = {"initial": state == lifecycle.initial, "final": state in lifecycle.final}
    kinds["rests"] = state in lifecycle.rests and state not in lifecycle.final
    return ", ".join(kind for kind, holds in kinds.items() if holds)


def _move(t: Transition) -> tuple[str, ...]:
    trigger = f"`{t.trigger}`" + (" (in a fold)" if t.folded else "")
    return f"`{t.source}`", f"`{t.target}`", trigger, t.actor, t.means, t.record


def _fold(fold: Fold) -> tuple[str, ...]:
    return " → ".join(f"`{state}`" for state in fold.path), f"`{fold.trigger}`", fold.means


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def main(arguments: list[str]) -> None:
    """Write the page of the library to the named file, or into the documentation."""
    target = Path(arguments[0]) if arguments else PAGE
    target.write_text(page(LIBRARY.values()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
