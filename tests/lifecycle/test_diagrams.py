"""Drawings say all that the declaration says, and the committed page is the one that would be written."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from detent.lifecycle.definition import Lifecycle, Transition
from detent.lifecycle.diagrams import PAGE, markdown, mermaid, page, svg
from detent.lifecycle.library import JOB, LIBRARY
from detent.lifecycle.svg_layout import lay_out
from tests.deadlines import scaled
from tests.lifecycle.orders import order

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
every_lifecycle = pytest.mark.parametrize("lifecycle", LIBRARY.values(), ids=LIBRARY.keys())


def test_the_page_is_what_the_library_says(tmp_path: Path) -> None:
    """L1: the documentation follows from the declaration; `python -m detent.lifecycle.diagrams` writes it."""
    written = tmp_path / "lifecycles.md"
    subprocess.run([sys.executable, "-m", "detent.lifecycle.diagrams", str(written)], check=True, timeout=scaled(60))
    assert written.read_text(encoding="utf-8") == page(LIBRARY.values())
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(LIBRARY.values())


@every_lifecycle
def test_mermaid_has_every_state_and_transition(lifecycle: Lifecycle) -> None:
    """L1: one arrow a pair, with all its triggers."""
    lines = mermaid(lifecycle).splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert f"    [*] --> {lifecycle.initial}" in lines
    for transition in lifecycle.transitions:
        (arrow,) = [line for line in lines if line.startswith(f"    {transition.source} --> {transition.target}: ")]
        assert transition.trigger in arrow.partition(": ")[2].split(", ")
    assert {line for line in lines if line.endswith("--> [*]")} == {f"    {state} --> [*]" for state in lifecycle.final}


def test_mermaid_takes_states_that_it_has_words_for() -> None:
    write = Transition("note", "end", "write", "clerk", "It is written down.")
    states = {"note": "Noted.", "end": "Over."}
    lines = mermaid(Lifecycle("memo", states=states, initial="note", final=frozenset({"end"}), transitions=(write,)))
    assert '    state "note" as S_note\n' in lines
    assert "    S_note --> S_end: write\n" in lines


@every_lifecycle
def test_markdown_has_every_state_and_transition(lifecycle: Lifecycle) -> None:
    """L1: what each state means, who makes each move and when."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in markdown(lifecycle).splitlines()]
    for state, means in lifecycle.states.items():
        assert [row[2] for row in rows if row and row[0] == f"`{state}`" and len(row) == 3] == [means]
    for t in lifecycle.transitions:
        told = [row for row in rows if row[:2] == [f"`{t.source}`", f"`{t.target}`"] and f"`{t.trigger}`" in row[2]]
        assert [row[3:] for row in told] == [[t.actor, t.means, t.record]]
    for fold in lifecycle.folds:
        assert [" → ".join(f"`{state}`" for state in fold.path), f"`{fold.trigger}`", fold.means] in rows


def test_markdown_keeps_a_meaning_in_its_cell() -> None:
    text = markdown(order(states={**order().states, "paid": "Cash | card,\nor <b>cheque</b>."}))
    assert "| `paid` |  | Cash \\| card, or &lt;b>cheque&lt;/b>. |\n" in text


@every_lifecycle
def test_svg_has_every_state_and_transition(lifecycle: Lifecycle) -> None:
    """L1: well-formed, a box for every state, an arrow for every pair, a word for every trigger."""
    root = ElementTree.fromstring(svg(lifecycle))
    groups = list(root.iter(f"{SVG}g"))
    assert sorted(g.attrib["data-state"] for g in groups if "data-state" in g.attrib) == sorted(lifecycle.states)
    arrows = {(g.get("data-from"), g.get("data-to")): g for g in groups if g.get("data-from")}
    assert set(arrows) == set(lifecycle.pairs)
    for t in lifecycle.transitions:
        assert f"{t.trigger} ({t.actor}): {t.means}" in (arrows[t.source, t.target].findtext(f"{SVG}title") or "")
    words = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "label"]
    assert sorted(map(str, words)) == sorted(t.trigger for t in lifecycle.transitions)


@every_lifecycle
def test_svg_marks_initial_and_final_states(lifecycle: Lifecycle) -> None:
    root = ElementTree.fromstring(svg(lifecycle))
    assert len([c for c in root.iter(f"{SVG}circle") if c.get("class") == "start"]) == 1
    assert len([r for r in root.iter(f"{SVG}rect") if r.get("class") == "inner"]) == len(lifecycle.final)


@every_lifecycle
def test_svg_is_readable(lifecycle: Lifecycle) -> None:
    """No label covers a box or another label, and no box another box."""
    layout = lay_out(lifecycle)
    rectangles = [*layout.boxes.items(), *((arrow.pair, arrow.label) for arrow in layout.arrows)]
    for (one, a), (other, b) in combinations(rectangles, 2):
        apart = abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
        assert apart, f"{one} covers {other}"


def test_svg_shows_counts_also_of_unknown_states() -> None:
    """L8: what a newer version has written is shown apart, not dropped."""
    root = ElementTree.fromstring(svg(JOB, {"pending": 12345, "running": 0, "suspended": 2}))
    counts = {
        group.get("data-state"): text.text
        for group in root.iter(f"{SVG}g")
        for text in group.iter(f"{SVG}text")
        if text.get("class") == "count"
    }
    assert counts == {"pending": "12,345", "running": "0"}
    assert "unknown to this version: suspended 2" in [text.text for text in root.iter(f"{SVG}text")]


def test_svg_escapes_what_people_write() -> None:
    root = ElementTree.fromstring(svg(order(means="Less <than> & more"), {"<script>": 1}))
    assert root.findtext(f"{SVG}desc") == "Less <than> & more"
    assert "unknown to this version: <script> 1" in [text.text for text in root.iter(f"{SVG}text")]


def test_svg_draws_a_lifecycle_of_one_state() -> None:
    alone = Lifecycle(
        "stone", states={"lying": "It lies."}, initial="lying", final=frozenset({"lying"}), transitions=()
    )
    root = ElementTree.fromstring(svg(alone))
    assert [g.get("data-state") for g in root.iter(f"{SVG}g")] == ["lying"]
