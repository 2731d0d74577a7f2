"""Text that somebody else wrote, made safe to look at."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.model import terminal_text

ANY_TEXT = st.text(st.characters(codec=None))
REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def dangerous(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(letter) in REORDERING


@given(ANY_TEXT)
def test_a_line_has_nothing_dangerous_in_it(text: str) -> None:
    assert not any(map(dangerous, terminal_text.line(text)))


@given(ANY_TEXT)
def test_a_block_keeps_lines_and_tabs_alone(text: str) -> None:
    assert {letter for letter in terminal_text.block(text) if dangerous(letter)} <= {"\n", "\t"}


@given(st.text())
def test_json_means_the_same_as_before(text: str) -> None:
    encoded = json.dumps({"text": text}, ensure_ascii=False)
    safe = terminal_text.json_safe(encoded)
    assert json.loads(safe) == {"text": text}
    assert not any(map(dangerous, safe))


@pytest.mark.parametrize("text", ["grüße", "漢字", "שלום", "e\u0301", "👩\u200d🔬"])
def test_letters_of_any_language_stay(text: str) -> None:
    assert terminal_text.line(text) == text
